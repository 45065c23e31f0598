"""Asks the provider's REST side, no faster than it likes, as often as it takes (interface, "Errors").

What an answer leads to:

    200                     read while it comes; no JSON, another shape or too much of it is an ApiError
    404, where foreseen     no content
    401                     the token is read again for a while, and what is there then or was good before is
                            tried; then AuthError
    403                     asked once more, unless the endpoint's last answer was one, too; then Forbidden
    429                     everybody waits, the rate is halved, and it is tried again
    5xx, none, half of one  tried again, then ApiError
    anything else           ApiError at once: 400, 404 elsewhere, 204, a redirect

Any of them with a `Date` too far from our clock is a ClockError.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from math import inf
from types import TracebackType
from typing import Final, Self, TypeVar

from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception_type,
    stop_after_attempt,
    wait_exponential,
    wait_random_exponential,
)

from bridge import clock as instant
from bridge.clock import Clock, Instant
from bridge.clock_skew import Skew, from_dates, must_be_near
from bridge.config import ApiSettings
from bridge.errors import ApiError, AuthError, Forbidden, Rejected, Unanswered
from bridge.formatting import duration
from bridge.log import get
from bridge.rest.answers import Reader
from bridge.rest.endpoints import Answered, Request
from bridge.rest.json_stream import Unfinished
from bridge.rest.pacing import Pace, retry_after
from bridge.rest.token import Token, validity_of
from bridge.rest.transport import Answer, Network, Transport, Unavailable

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]

WAIT: Final = wait_exponential(max=30) + wait_random_exponential(max=30)
"""Before another try: 1 to 2 s, then 2 to 4, 4 to 8, and at last 30 to 60."""
CALM_SECONDS: Final = 60.0
"""Trouble that comes again sooner is the same trouble: one line in the log."""
FORBIDDEN_PAUSE_SECONDS: Final = 2.0
"""Before a 403 that is the first is asked once more."""
TOKEN_PAUSES_SECONDS: Final = (0.0, 1.0, 2.0)
"""After a 401, before each look at the token: who is writing it has ended then."""


class Client:
    """Asks questions, several at once, at one pace for all of them. To be used by `async with`.

    Raises SettingsError when the base address or the token is missing, or a setting cannot be used.
    `network` stands in for the real one.
    """

    def __init__(
        self,
        settings: ApiSettings,
        clock: Clock = instant.now,
        sleep: Sleep = asyncio.sleep,
        network: Network | None = None,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._token = Token(settings)
        self._token.read(clock().wall)
        self._transport = Transport(settings, network)
        self._pace = Pace(settings.requests_per_second)
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._line = asyncio.Lock()
        """Only its holder waits for the pace; whoever else wants to send waits for it, in order."""
        self._doubt = asyncio.Lock()
        self._refused_token: str | None = None
        """The one that was refused twice: nobody sends it any more."""
        self._doubtful_token: str | None = None
        """The one that was refused when the last good one was not: that one is sent in its place."""
        self._forbidden: set[str] = set()
        """The endpoints whose last answer was a 403."""
        self._slowed = _Spell()
        self._troubled = _Spell()
        self.requests = 0
        """How many were sent, those that were tried again included."""
        self.refusals = 0
        """How many of them were answered with 429."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.aclose()

    @property
    def rate(self) -> float:
        """Requests a second at present: the configured ones, or fewer after a 429."""
        return self._pace.rate

    @property
    def pause(self) -> float:
        """Seconds until the next request may be sent."""
        return self._pace.left(self._clock().monotonic)

    async def ask(self, request: Request[T], attempts: int | None = None) -> Answered[T]:
        """The answer, without content for a 404 where the interface has one.

        `attempts` makes it fewer tries than the settings say. Raises AuthError (401), Forbidden (403),
        ClockError, ApiError (anything else that is no answer, after as many tries where another may help, and
        a 401 while the token's file is away), SettingsError when the file holds what can be none.
        """
        most = min(attempts or self._settings.attempts, self._settings.attempts)
        # A question keeps its place while it waits for its next try: a provider in trouble is left alone.
        async with self._slots:
            answer, content = await self._persist(request, most)
            if answer.status == 403 and request.endpoint not in self._forbidden:
                await self._sleep(FORBIDDEN_PAUSE_SECONDS)
                if request.endpoint not in self._forbidden:  # nobody else has been told so meanwhile
                    answer, content = await self._persist(request, most)
        if answer.status == 403:
            self._forbidden.add(request.endpoint)
        return content or self._judge(request, answer)

    async def _persist(self, request: Request[T], attempts: int) -> tuple[Answer, Answered[T] | None]:
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_attempt(attempts),
            wait=WAIT,
            sleep=self._sleep,
            before_sleep=self._tell_of_trouble,
            reraise=True,
        )
        try:
            result: tuple[Answer, Answered[T] | None] = await retrying(self._try, request)
        except Unavailable as error:
            times = "once" if attempts == 1 else f"{attempts} times"
            raise Unanswered(
                f"{request} failed, tried {times}; at last: {error} (BRIDGE_API__BASE_URL is "
                f"{self._transport.base})"
            ) from None
        return result

    def _judge(self, request: Request[T], answer: Answer) -> Answered[T]:
        """What is not answered with 200."""
        if answer.status == 404 and request.may_be_missing:
            return Answered(None)
        if answer.status == 403:
            raise Forbidden(f"the token gives no right to {request.endpoint}: {request} answered {answer}")
        if 300 <= answer.status < 400 and (location := answer.headers.get("Location")):
            host = self._transport.pointed_to(request.target, location)
            raise ApiError(
                f"{request} answered HTTP {answer.status}, which points to {host}. Redirects are not "
                "followed: the token is for one address. Set BRIDGE_API__BASE_URL to the right one."
            )
        hint = f". Is BRIDGE_API__BASE_URL ({self._transport.base}) right?" if answer.status == 404 else ""
        if answer.status in (400, 404):
            raise Rejected(f"{request} answered {answer}{hint}", answer.status)
        raise ApiError(f"{request} answered {answer}")

    async def _try(self, request: Request[T]) -> tuple[Answer, Answered[T] | None]:
        """One try, and what was read. Raises Unavailable when another may go better."""
        reader = request.reader(self._settings.max_answer_bytes)
        answer = await self._send_authorized(request, reader)
        if _is_passing(answer.status):
            raise Unavailable(str(answer))
        if answer.status != 403:
            self._forbidden.discard(request.endpoint)
        try:
            return answer, reader.answer() if answer.status == 200 else None
        except Unfinished as error:
            raise Unavailable(str(error)) from None

    async def _send_authorized(self, request: Request[T], reader: Reader[T]) -> Answer:
        """Any answer but a 401: at that it is sent again, with what the token is then or was before."""
        answer, token = await self._send(request, reader)
        if answer.status != 401:
            return answer
        async with self._doubt:  # the others that were refused with it learn from the first
            refused = {token}
            for pause in TOKEN_PAUSES_SECONDS:
                await self._sleep(pause)
                present = self._present_token(request)
                for other in (present, self._token.accepted):
                    if other is not None and other not in refused:
                        answer, _ = await self._send(request, reader, other)
                        if answer.status != 401:
                            self._doubtful_token = present if other != present else None
                            return answer
                        refused.add(other)
            answer, token = await self._send(request, reader, present)
            if answer.status == 401:
                if trouble := self._token.trouble:
                    raise ApiError(f"{request} answered {answer}, and its file cannot be read: {trouble}")
                self._refused_token = token
                raise self._unauthorized(request, token, str(answer))
        return answer

    def _present_token(self, request: Request[T]) -> str:
        token = self._token.read(self._clock().wall)
        if token == self._refused_token:
            raise self._unauthorized(request, token, "not sent, for it was refused before")
        return token

    def _likely_token(self, request: Request[T]) -> str:
        token = self._present_token(request)
        return self._token.accepted or token if token == self._doubtful_token else token

    async def _send(
        self, request: Request[T], reader: Reader[T], token: str | None = None
    ) -> tuple[Answer, str]:
        """One request, when it is its turn, and the token that it had. The pace learns from its status."""
        sent_at = await self._turn()
        token = token or self._likely_token(request)
        self.requests += 1
        asked = self._clock()
        answer = await self._transport.get(request.target, token, reader.feed, request.body)
        now = self._clock()
        self._check_clock(answer, asked, now)
        if answer.status == 429:
            self.refusals += 1
            self._pace.refused(now.monotonic, sent_at)
        if not _is_passing(answer.status):
            self._pace.answered()
            if answer.status != 401:
                self._token.accept(token)
        elif pause := retry_after(answer.headers.get("Retry-After"), answer.headers.get("Date"), now.wall):
            self._pace.pause(now.monotonic, pause)
        if answer.status == 429 and self._slowed.begins(now.monotonic):
            get().warning("the provider says too many requests", rate=self.rate, pause=duration(self.pause))
        return answer, token

    def _check_clock(self, answer: Answer, asked: Instant, received: Instant) -> None:
        skew = from_dates(answer.dates, asked.wall, received.wall)
        if skew is None:
            return
        # What was kept on the way for so long was written before it was asked for.
        if (age := answer.headers.get("Age", "")).isdecimal():
            skew = Skew(skew.low, skew.high + float(age))
        must_be_near(
            skew.seconds,
            self._settings.max_clock_skew_seconds,
            "api.max_clock_skew_seconds (BRIDGE_API__MAX_CLOCK_SKEW_SECONDS)",
            "what is published would have a wrong time",
        )

    async def _turn(self) -> float:
        """Wait until a request may be sent. Returns the moment, in monotonic seconds."""
        async with self._line:
            # Not once: the pace may have become slower meanwhile.
            while left := self.pause:
                await self._sleep(left)
            now = self._clock().monotonic
            self._pace.sent(now)
        return now

    def _unauthorized(self, request: Request[T], token: str, answer: str) -> AuthError:
        validity = validity_of(token, self._clock().wall)
        return AuthError(
            f"the provider refuses the token ({request}: {answer}). Give a valid one by "
            f"{self._token.setting}; this one {validity}."
        )

    def _tell_of_trouble(self, state: RetryCallState) -> None:
        if self._troubled.begins(self._clock().monotonic):
            assert state.outcome is not None
            get().warning(
                "the provider is tried again",
                endpoint=state.args[0].endpoint,
                reason=str(state.outcome.exception()),
                pause=duration(max(state.upcoming_sleep, self.pause)),
            )


class _Spell:
    """A time of trouble. It is over when none has come for a while."""

    def __init__(self) -> None:
        self._last_at = -inf

    def begins(self, now: float) -> bool:
        """Whether trouble that comes now is the first of its spell."""
        calm = now - self._last_at
        self._last_at = now
        return calm > CALM_SECONDS


def _is_passing(status: int) -> bool:
    """Whether it speaks of the provider's state, and not of the question."""
    return status == 429 or status >= 500

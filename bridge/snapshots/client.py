"""Asks the provider's REST side, no faster than it likes, as often as it takes (interface, "Errors").

What an answer leads to:

    200                     read; as it came whole, bad JSON or another shape is an ApiError at once
    404, where foreseen     None
    401                     the token is read again and tried once more, then AuthError
    403                     Forbidden
    429                     everybody waits, the rate is halved, and it is tried again
    5xx, none, half of one  tried again, then ApiError
    anything else           ApiError at once: 400, 404 elsewhere, 204, a redirect
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

from bridge import instant
from bridge.config import ApiSettings
from bridge.errors import ApiError, AuthError, Forbidden
from bridge.instant import Clock
from bridge.log import get
from bridge.snapshots.pace import Pace, retry_after
from bridge.snapshots.requests import Request
from bridge.snapshots.token import Token, validity_of
from bridge.snapshots.transport import Answer, Network, Transport, Unavailable
from bridge.text import duration

T = TypeVar("T")

Sleep = Callable[[float], Awaitable[None]]

WAIT: Final = wait_exponential(max=30) + wait_random_exponential(max=30)
"""Before another try: 1 to 2 s, then 2 to 4, 4 to 8, and at last 30 to 60."""
CALM_SECONDS: Final = 60.0
"""Trouble that comes again sooner is the same trouble: one line in the log."""


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
        self._attempts = settings.attempts
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
        return self._pace.left(self._clock().steady)

    async def ask(self, request: Request[T]) -> T | None:
        """The answer; None for a 404 where the interface has one.

        Raises AuthError (401), Forbidden (403), ApiError (anything else that is no answer, after as many
        tries as the settings say where another try may help, and a 401 while the token's file is away),
        SettingsError when the file holds what can be none.
        """
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Unavailable),
            stop=stop_after_attempt(self._attempts),
            wait=WAIT,
            sleep=self._sleep,
            before_sleep=self._tell_of_trouble,
            reraise=True,
        )
        # A question keeps its place while it waits for its next try: a provider in trouble is left alone.
        async with self._slots:
            try:
                answer: Answer = await retrying(self._try, request)
            except Unavailable as error:
                times = "once" if self._attempts == 1 else f"{self._attempts} times"
                raise ApiError(
                    f"{request} failed, tried {times}; at last: {error} (BRIDGE_API__BASE_URL is "
                    f"{self._transport.base})"
                ) from None
        return self._judge(request, answer)

    def _judge(self, request: Request[T], answer: Answer) -> T | None:
        if answer.status == 200:
            return request.read(answer.body)
        if answer.status == 404 and request.may_be_missing:
            return None
        if answer.status == 403:
            raise Forbidden(f"the token gives no right to {request.endpoint}: {request} answered {answer}")
        if 300 <= answer.status < 400 and (location := answer.headers.get("Location")):
            host = self._transport.pointed_to(request.target, location)
            raise ApiError(
                f"{request} answered HTTP {answer.status}, which points to {host}. Redirects are not "
                "followed: the token is for one address. Set BRIDGE_API__BASE_URL to the right one."
            )
        hint = f". Is BRIDGE_API__BASE_URL ({self._transport.base}) right?" if answer.status == 404 else ""
        raise ApiError(f"{request} answered {answer}{hint}")

    async def _try(self, request: Request[T]) -> Answer:
        """One try. Raises Unavailable when another may go better."""
        answer = await self._send_authorized(request)
        if _is_passing(answer.status):
            raise Unavailable(str(answer))
        return answer

    async def _send_authorized(self, request: Request[T]) -> Answer:
        """Any answer but a 401: at that it is sent once more, with the token as it is then."""
        answer, _ = await self._send(request)
        if answer.status == 401:
            async with self._doubt:  # the others that were refused with it learn from the first
                answer, token = await self._send(request)
                if answer.status == 401:
                    if trouble := self._token.trouble:
                        raise ApiError(f"{request} answered {answer}, and its file cannot be read: {trouble}")
                    self._refused_token = token
                    raise self._unauthorized(request, token, str(answer))
        return answer

    async def _send(self, request: Request[T]) -> tuple[Answer, str]:
        """One request, when it is its turn, and the token that it had. The pace learns from its status."""
        sent_at = await self._turn()
        token = self._token.read(self._clock().wall)
        if token == self._refused_token:
            raise self._unauthorized(request, token, "not sent, for it was refused before")
        self.requests += 1
        answer = await self._transport.get(request.target, token)
        now = self._clock()
        if answer.status == 429:
            self.refusals += 1
            self._pace.refused(now.steady, sent_at)
        if not _is_passing(answer.status):
            self._pace.answered()
        elif pause := retry_after(answer.headers.get("Retry-After"), answer.headers.get("Date"), now.wall):
            self._pace.pause(now.steady, pause)
        if answer.status == 429 and self._slowed.begins(now.steady):
            get().warning("the provider says too many requests", rate=self.rate, pause=duration(self.pause))
        return answer, token

    async def _turn(self) -> float:
        """Wait until a request may be sent. Returns the moment, in steady seconds."""
        async with self._line:
            # Not once: the pace may have become slower meanwhile.
            while left := self.pause:
                await self._sleep(left)
            now = self._clock().steady
            self._pace.sent(now)
        return now

    def _unauthorized(self, request: Request[T], token: str, answer: str) -> AuthError:
        validity = validity_of(token, self._clock().wall)
        return AuthError(
            f"the provider refuses the token ({request}: {answer}). Give a valid one by "
            f"{self._token.setting}; this one {validity}."
        )

    def _tell_of_trouble(self, state: RetryCallState) -> None:
        if self._troubled.begins(self._clock().steady):
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

"""Client of the provider's REST API, with pacing and retries (interface, "Errors").

An answer whose `Date` is too far from our clock raises ClockError. `consequence` has the table of all others.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from itertools import count
from math import inf
from random import uniform
from typing import Final, Self, TypeVar

from bridge import clock as instant
from bridge.clock import Clock, Instant
from bridge.clock_skew import Skew, from_dates, must_be_near
from bridge.config import ApiSettings
from bridge.errors import ApiError, AuthError, Forbidden, ProviderPause, Rejected, Unanswered
from bridge.formatting import format_duration, format_utc, retry_after
from bridge.log import get
from bridge.rest.answers import Answered, AnswerReader
from bridge.rest.endpoints import Request
from bridge.rest.json_stream import Unfinished
from bridge.rest.pacing import LONGEST_PAUSE_SECONDS, Pace
from bridge.rest.token import Token, validity_of
from bridge.rest.transport import Answer, Network, Transport, Unavailable

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[None]]

LONGEST_WAIT_SECONDS: Final = 30.0
"""Before another attempt: 1 to 2 s, then 2 to 4, 4 to 8, and finally 30 to 60."""
CALM_SECONDS: Final = 60.0
"""Failures with shorter intervals are one spell, and log one line."""
FORBIDDEN_PAUSE_SECONDS: Final = 2.0
"""Before the second attempt after an endpoint's first 403."""
TOKEN_PAUSES_SECONDS: Final = (0.0, 1.0, 2.0)
"""After a 401, before each new read of the token: its writer has finished by then."""


class Consequence(Enum):
    """What the client does about an answer. ApiError is raised after the last attempt."""

    READ = (
        "it was parsed while it arrived; ApiError if it is invalid or too large, AGAIN if it is HTML or cut"
    )
    UNKNOWN = "no content: the interface allows a 404 here"
    UNAUTHORIZED = (
        "the token is read again for a few seconds; a new one and the last accepted one are tried; AuthError"
    )
    RIGHT = "one more attempt, unless the endpoint's last answer was the same; then Forbidden"
    AGAIN = "the request is sent again, as when there is no answer at all"
    SLOWER = "the same; all requests wait, and the rate is halved"
    NEVER = "ApiError at once"


def consequence(answer: Answer, request: Request[T]) -> Consequence:
    """Return what to do about the status of an answer.

    A pause in `Retry-After` is kept; ProviderPause, for all requests, if it is longer than an hour.
    """
    match answer.status:
        case 200:
            return Consequence.READ
        case 404 if request.may_be_unknown:
            return Consequence.UNKNOWN
        case 401:
            return Consequence.UNAUTHORIZED
        case 403:
            return Consequence.AGAIN if "Retry-After" in answer.headers else Consequence.RIGHT
        case 429:
            return Consequence.SLOWER
        case 408 | 421 | 425:
            return Consequence.AGAIN
    # Never: 400, 404 elsewhere, 204, a redirect.
    return Consequence.AGAIN if answer.status >= 500 else Consequence.NEVER


class Client:
    """Sends requests, several at once, at one pace for all of them. An async context manager.

    Raises SettingsError if there is no usable token, or a setting cannot be used. `network` replaces the real
    network in tests.
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
        """Its holder waits for the pace; the other requests queue for the lock, in order."""
        self._doubt = asyncio.Lock()
        self._forbidden: set[str] = set()
        """Endpoints whose last answer was 403."""
        self._stopped: ProviderPause | None = None
        """Why nothing is sent any more."""
        self._slowed = _Spell()
        self._troubled = _Spell()
        self.requests = 0
        """Requests sent, retries included."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._transport.aclose()

    @property
    def pause(self) -> float:
        """Seconds until the next request may be sent."""
        return self._pace.left(self._clock().monotonic)

    async def ask(self, request: Request[T], attempts: int | None = None) -> Answered[T]:
        """Send a request and return its answer, without content after a 404 that the interface allows.

        `attempts` lowers the limit of the settings. Raises AuthError (401), Forbidden (403), ClockError,
        ProviderPause, SettingsError if the token's file holds no token, and ApiError for any other failure
        (after the last attempt if another could help) and for a 401 while the token's file is missing.
        """
        most = min(attempts or self._settings.attempts, self._settings.attempts)
        # A request keeps its slot between attempts, so that a provider in trouble gets fewer requests.
        async with self._slots:
            answer, content = await self._persist(request, most)
            if answer.status == 403 and request.endpoint not in self._forbidden:
                await self._sleep(FORBIDDEN_PAUSE_SECONDS)
                if request.endpoint not in self._forbidden:  # no other request was answered since
                    answer, content = await self._persist(request, most)
        if answer.status == 403:
            self._forbidden.add(request.endpoint)
        return content or self._judge(request, answer)

    async def _persist(self, request: Request[T], attempts: int) -> tuple[Answer, Answered[T] | None]:
        begun = self._clock().monotonic
        for made in count(1):
            try:
                return await self._try(request)
            except Unavailable as error:
                reason = str(error)
            now = self._clock().monotonic
            if made >= attempts or now + self.pause - begun > LONGEST_PAUSE_SECONDS:
                break
            wait = min(LONGEST_WAIT_SECONDS, 2.0 ** (made - 1))
            wait += uniform(0, wait)
            if self._troubled.begins(now):
                pause = format_duration(max(wait, self.pause))
                get().warning(
                    "request failed, retrying", endpoint=request.endpoint, reason=reason, pause=pause
                )
            await self._sleep(wait)
        times = "once" if made == 1 else f"{made} times"
        base = self._transport.base
        raise Unanswered(
            f"{request} failed, tried {times}; at last: {reason} (BRIDGE_API__BASE_URL is {base})"
        )

    def _judge(self, request: Request[T], answer: Answer) -> Answered[T]:
        """Return or raise the consequence of a status other than 200."""
        found = consequence(answer, request)
        if found is Consequence.UNKNOWN:
            return Answered(None)
        if found is Consequence.RIGHT:
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
        """Make one attempt; returns response and content. Raises Unavailable if another may succeed."""
        reader = request.reader(self._settings.max_answer_bytes)
        answer = await self._send_authorized(request, reader)
        if consequence(answer, request) in _PASSES:
            raise Unavailable(str(answer))
        if answer.status != 403:
            self._forbidden.discard(request.endpoint)
        try:
            return answer, reader.answer() if answer.status == 200 else None
        except Unfinished as error:
            raise Unavailable(str(error)) from None

    async def _send_authorized(self, request: Request[T], reader: AnswerReader[T]) -> Answer:
        """Send a request; after a 401, again with a new token or the last accepted one. Raises AuthError."""
        answer, token = await self._send(request, reader)
        if answer.status != 401:
            return answer
        async with self._doubt:  # later refused requests wait for the outcome of the first
            refused = {token}
            for pause in TOKEN_PAUSES_SECONDS:
                await self._sleep(pause)
                self._usable_token(request)  # raises if an earlier request found none
                for other in self._token.candidates(self._clock().wall):
                    if other not in refused:
                        answer, _ = await self._send(request, reader, other)
                        if answer.status != 401:
                            self._token.refused |= refused
                            return answer
                        refused.add(other)
            token = self._token.read(self._clock().wall)
            answer, _ = await self._send(request, reader, token)
            if answer.status == 401:
                if trouble := self._settings.secret.problem():  # its file cannot be read now
                    raise ApiError(f"{request} answered {answer}, and its token cannot be read: {trouble}")
                self._token.refused |= refused | {token}
                raise self._unauthorized(request, token, str(answer))
        return answer

    def _usable_token(self, request: Request[T]) -> str:
        candidates = self._token.candidates(self._clock().wall)
        for token in candidates:
            if token not in self._token.refused:
                return token
        raise self._unauthorized(request, candidates[0], "not sent, because it was refused before")

    async def _send(
        self, request: Request[T], reader: AnswerReader[T], token: str | None = None
    ) -> tuple[Answer, str]:
        """Wait for the pace and send one request; returns the response and the token that was sent."""
        sent_at = await self._turn()
        token = token or self._usable_token(request)
        self.requests += 1
        asked = self._clock()
        answer = await self._transport.get(request.target, token, reader.feed, request.body)
        now = self._clock()
        self._check_clock(answer, asked, now)
        found = consequence(answer, request)
        if found is Consequence.SLOWER:
            self._pace.refused(now.monotonic, sent_at)
        if found not in _PASSES:
            self._pace.answered()
            if answer.status != 401:
                self._token.accept(token)
        elif pause := retry_after(answer.headers.get("Retry-After"), answer.headers.get("Date"), now.wall):
            if pause > LONGEST_PAUSE_SECONDS:
                until = format_utc(round(now.wall + pause)) if pause < 366 * 86_400 else "a time years ahead"
                self._stopped = ProviderPause(
                    f"{request} answered HTTP {answer.status}: the provider accepts no request before "
                    f"{until} (Retry-After), and a run waits for an hour at most. Is it a quota?",
                    pause,
                )
                raise self._stopped
            self._pace.pause(now.monotonic, pause)
        if found is Consequence.SLOWER and self._slowed.begins(now.monotonic):
            wait = format_duration(self.pause)
            get().warning("rate limited by the provider", rate=self._pace.rate, pause=wait)
        return answer, token

    def _check_clock(self, answer: Answer, asked: Instant, received: Instant) -> None:
        skew = from_dates(answer.headers.get_list("Date"), asked.wall, received.wall)
        if skew is None:
            return
        # A cached answer is dated before the request, by its `Age`.
        if (age := answer.headers.get("Age", "")).isdecimal():
            skew = Skew(skew.low, skew.high + float(age))
        must_be_near(
            skew.seconds,
            self._settings.max_clock_skew_seconds,
            "api.max_clock_skew_seconds (BRIDGE_API__MAX_CLOCK_SKEW_SECONDS)",
            "what is published would have a wrong time",
        )

    async def _turn(self) -> float:
        """Wait until a request may be sent. Returns that moment in monotonic seconds."""
        async with self._line:
            # In a loop: the pace may slow down during the wait.
            while left := self.pause:
                await self._sleep(left)
            if self._stopped is not None:
                raise self._stopped
            now = self._clock().monotonic
            self._pace.sent(now)
        return now

    def _unauthorized(self, request: Request[T], token: str, answer: str) -> AuthError:
        validity = validity_of(token, self._clock().wall)
        return AuthError(
            f"the provider refuses the token ({request}: {answer}). Give a valid one by "
            f"{self._token.setting}; this one {validity}."
        )


class _Spell:
    """A series of failures; it ends after `CALM_SECONDS` without one."""

    def __init__(self) -> None:
        self._last_at = -inf

    def begins(self, now: float) -> bool:
        """Note a failure at `now`; returns whether it is the first of its spell."""
        calm = now - self._last_at
        self._last_at = now
        return calm > CALM_SECONDS


_PASSES: Final = (Consequence.AGAIN, Consequence.SLOWER)
"""The answer is about the provider's condition, not about the request."""

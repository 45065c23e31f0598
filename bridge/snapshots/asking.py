"""Step 3: asks about things, some at a time, and keeps account of those that are refused.

A thing that fails is left out: its record stays, the report names it, and it is owed, so that the next run
asks again. A run fails if too large a share of its things does.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol, TypeVar

from bridge import clock as instant
from bridge.clock import Clock
from bridge.config import ApiSettings
from bridge.errors import ApiError, Forbidden, Rejected, Unanswered
from bridge.rest.answers import Answered
from bridge.rest.endpoints import EntityTranslation, Request
from bridge.snapshots.model import MAX_LEFT_OUT, NO_RIGHT, Omission

T = TypeVar("T")

FEW: Final = 10
"""This many things may fail whatever their share: in a small run one is much."""
UNANSWERED_AFTER: Final = 5
"""Unanswered requests in a row, after which what is owed waits for the next run."""
SILENT_AFTER: Final = 20
SILENT_SECONDS: Final = 300.0
"""After so many in a row, given up over at least this time, an endpoint is not asked any more in this run."""
LONGEST_SILENCE_SECONDS: Final = 3600.0
"""However few they were: the provider may ask for a long pause each time."""
MOST_KEPT: Final = 10 * MAX_LEFT_OUT
"""Of an endpoint: an answer may have thousands of flaws."""
CLOSED_AFTER: Final = 3
"""403 answers in a row, after which an endpoint is not asked any more in this run."""

AHEAD: Final = 8
"""So many times the concurrency are asked about ahead of one that is late: several may be late at once."""

ProgressCallback = Callable[[str, int, int], None]
"""Called with a step, the number of things done in it, and their total."""


class Asks(Protocol):
    """Answers requests, as `bridge.rest.client.Client` does."""

    async def ask(self, request: Request[T], attempts: int | None = None) -> Answered[T]:
        """Return the answer, after at most `attempts`. Raises ApiError, AuthError and ClockError."""


@dataclass(slots=True)
class Thing:
    """A thing to ask about; its kind determines the endpoint. It is owed under its name, `kind:id`."""

    kind: str
    id: int | str
    sport: int | None = None
    """The sport of a market type."""
    suspected: bool = False
    """Asked about only to learn whether it is gone: nothing is owed if that fails."""
    answered: bool = False
    flawed: bool = False
    """Whether a part of its answer was invalid."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.sport is None else f"{self.kind}:{self.sport}:{self.id}"


@dataclass
class _Endpoint:
    """The answers of one endpoint in this run. Times are monotonic seconds."""

    answered: bool = False
    refusals: int = 0
    """Its last 403 answers in a row."""
    answered_at: float = 0.0
    unanswered: int = 0
    """Its last requests in a row without an answer."""
    silent_since: float = 0.0
    """From when on the first of these waited for one while nothing else was answered."""
    first_failed_at: float = 0.0
    failed_at: float = 0.0
    """When the first and the last of these were given up."""
    reason: str = ""
    """Why the last of these had no answer."""

    @property
    def is_silent(self) -> bool:
        """Whether to ask it nothing more. The time in which nobody asked does not count."""
        if self.unanswered >= SILENT_AFTER and self.failed_at - self.first_failed_at >= SILENT_SECONDS:
            return True
        return self.unanswered > 0 and self.failed_at - self.silent_since >= LONGEST_SILENCE_SECONDS

    def not_answered(self, asked_at: float, now: float, reason: str) -> None:
        """Note a request that is given up."""
        if not self.unanswered:
            self.silent_since, self.first_failed_at = max(asked_at, self.answered_at), now
        self.unanswered, self.failed_at, self.reason = self.unanswered + 1, now, reason


async def _nothing() -> None:
    """Do nothing after an answer."""


class Account:
    """The account of one run. `owed` has the names of things that earlier runs failed to learn.

    `progress` and `after_each` are called whenever an answer has been taken.
    """

    def __init__(
        self,
        asks: Asks,
        settings: ApiSettings,
        owed: Iterable[str] = (),
        progress: ProgressCallback = lambda what, done, total: None,
        after_each: Callable[[], Awaitable[None]] = _nothing,
        clock: Clock = instant.now,
    ) -> None:
        self.owed = {*owed}
        """Names of things not learnt yet."""
        self.asked: set[str] | None = None
        """Names of things asked about, if somebody wants to know: there may be many."""
        self.progress = progress
        self._after_each = after_each
        self._clock = clock
        self._before = frozenset(self.owed)
        self._asks = asks
        self._settings = settings
        self._left_out: list[Omission] = []
        self._kept: Counter[str] = Counter()
        """How many of them are of an endpoint."""
        self._endpoints: defaultdict[str, _Endpoint] = defaultdict(_Endpoint)
        self._all_failures = self._failures = self._things = 0
        """Failures; new ones in the current step, and its number of things."""

    @property
    def forbidden(self) -> tuple[str, ...]:
        """Paths of the endpoints without a right: they answered nothing but 403, or too many in a row."""
        found = self._endpoints.items()
        return tuple(sorted(p for p, x in found if x.refusals >= (CLOSED_AFTER if x.answered else 1)))

    @property
    def left_out(self) -> tuple[Omission, ...]:
        """Everything left out, sorted."""
        forbidden = self.forbidden
        others = {left for left in self._left_out if left.endpoint not in forbidden}
        no_right = [Omission(endpoint, None, NO_RIGHT) for endpoint in forbidden]
        return tuple(sorted((*no_right, *others), key=lambda left: (left.endpoint, left.id or "", left.why)))

    def was_owed(self, thing: Thing) -> bool:
        """Return whether an earlier run failed to learn it."""
        return str(thing) in self._before

    async def ask_each(
        self,
        what: str,
        things: Sequence[Thing],
        ask: Callable[[Thing], Awaitable[T | None]],
        take: Callable[[Thing, T], None],
    ) -> None:
        """Ask about each thing. One that fails is left out, too many of them raise ApiError.

        `take` receives the answers in the order of the things, so that the result does not depend on who
        answers first. Raises AuthError and ClockError, too.
        """

        async def attempt(part: Sequence[Thing]) -> T | None:
            [thing] = part
            try:
                found = await ask(thing)
            except ApiError as error:
                self._fail(thing, error)
                return None
            thing.answered = True
            return found

        parts = [[thing] for thing in self.begin(things)]
        await self._in_order(what, parts, attempt, lambda part, found: take(part[0], found))

    async def ask_chunks(
        self,
        what: str,
        chunks: Sequence[Sequence[Thing]],
        request_of: Callable[[Sequence[Thing]], Request[list[EntityTranslation]]],
        take: Callable[[Sequence[Thing], list[EntityTranslation]], None],
    ) -> None:
        """Ask about the things of each chunk, after `begin`, with one request. Otherwise as `ask_each`.

        A request that is refused is halved until the responsible things are found.
        """
        await self._in_order(what, chunks, lambda part: self._ask_chunk(part, request_of), take)

    async def _in_order(
        self,
        what: str,
        parts: Sequence[Sequence[Thing]],
        ask: Callable[[Sequence[Thing]], Coroutine[Any, Any, T | None]],
        take: Callable[[Sequence[Thing], T], None],
    ) -> None:
        concurrency, todo = self._settings.concurrency, iter(parts)
        turns, asked = asyncio.Semaphore(concurrency), deque[asyncio.Task[T | None]]()

        async def ask_in_turn(part: Sequence[Thing]) -> T | None:
            await turns.acquire()
            answer = await ask(part)
            turns.release()  # not after a failure, which ends the run
            return answer

        try:
            for done, part in enumerate(parts, 1):
                for other in islice(todo, AHEAD * concurrency - len(asked)):
                    asked.append(asyncio.create_task(ask_in_turn(other)))
                answer = await asked[0]
                asked.popleft()
                if answer is not None:
                    take(part, answer)
                self._settle(part)
                self.progress(what, done, len(parts))
                await self._after_each()
        finally:
            for task in asked:
                task.cancel()
            await asyncio.gather(*asked, return_exceptions=True)

    def _settle(self, things: Sequence[Thing]) -> None:
        """Note which of these things are owed, now that they were asked about."""
        for thing in things:
            name = str(thing)
            if thing.answered and not thing.flawed:
                self.owed.discard(name)
            elif not thing.suspected:
                self.owed.add(name)
            if self.asked is not None and not thing.suspected:
                self.asked.add(name)

    def begin(self, things: Sequence[Thing]) -> list[Thing]:
        """Begin a step. Returns its things in the order in which to ask: what is owed last.

        A run does not ask about all that is owed if many fail, so it begins with any of them: what always
        fails must not be what it always begins with.
        """
        self._failures, self._things = 0, len(things)
        owed = [thing for thing in things if self.was_owed(thing)]
        start = random.randrange(len(owed)) if owed else 0
        return [*(x for x in things if not self.was_owed(x)), *owed[start:], *owed[:start]]

    async def ask(self, request: Request[T], *, patient: bool = True) -> Answered[T]:
        """Return the answer to a request. Raises ApiError with its endpoint, AuthError and ClockError.

        Each failure in this run takes one from the number of attempts, down to two. A request that is not
        `patient` gets two. An endpoint that has been silent for long is not asked.
        """
        path = request.endpoint
        endpoint = self._endpoints[path]
        if endpoint.refusals >= CLOSED_AFTER:
            raise Forbidden(f"{path} is not asked any more: there is no right", path)
        if endpoint.is_silent or (not patient and endpoint.unanswered >= UNANSWERED_AFTER):
            reason = f"because {endpoint.unanswered} before it had no answer. The last: {endpoint.reason}"
            raise Unanswered(f"it is left to the next run, {reason}", path)
        failures = max(self._all_failures, endpoint.unanswered)
        attempts = max(2, self._settings.attempts - failures) if patient else 2
        asked_at = self._clock().monotonic
        try:
            answered = await self._asks.ask(request, attempts)
        except ApiError as error:
            error.endpoint = path
            if isinstance(error, Forbidden):
                endpoint.refusals += 1
            elif isinstance(error, Unanswered):
                endpoint.not_answered(asked_at, self._clock().monotonic, str(error))
            raise
        endpoint.answered, endpoint.refusals, endpoint.unanswered = True, 0, 0
        endpoint.answered_at = self._clock().monotonic
        return answered

    async def ask_about(
        self, thing: Thing, request: Request[T], id_of: Callable[[T], int] | None = None
    ) -> T | None:
        """Return the valid content of the answer about a thing, whose id is `id_of` it. Raises as `ask`."""
        answered = await self.ask(request, patient=not self.was_owed(thing))
        for flaw in answered.flaws:
            thing.flawed = True
            self.leave_out(request.endpoint, str(thing.id), flaw.why)
        content = answered.content
        if content is not None and id_of and (other := id_of(content)) != thing.id:
            raise ApiError(f"{request} answered about another id: {other}", request.endpoint)
        return content

    async def _ask_chunk(
        self,
        things: Sequence[Thing],
        request_of: Callable[[Sequence[Thing]], Request[list[EntityTranslation]]],
        *,
        halved: bool = False,
    ) -> list[EntityTranslation]:
        request = request_of(things)
        patient = not (halved or all(map(self.was_owed, things)))
        try:
            answered = await self.ask(request, patient=patient)
        except ApiError as error:
            if len(things) == 1 or isinstance(error, Forbidden):
                for thing in things:
                    self._fail(thing, error)
                return []
            middle = len(things) // 2
            first = await self._ask_chunk(things[:middle], request_of, halved=True)
            return first + await self._ask_chunk(things[middle:], request_of, halved=True)
        content = answered.content or []
        flawed, found = {flaw.id for flaw in answered.flaws}, {entity["id"] for entity in content}
        is_foreign = bool(found - {thing.id for thing in things})  # it may answer another request
        for flaw in answered.flaws:
            self.leave_out(request.endpoint, None if flaw.id is None else str(flaw.id), flaw.why)
        for thing in things:
            thing.flawed = thing.id in flawed or None in flawed
            thing.answered = not is_foreign or thing.id in found
            if not thing.answered:
                self.leave_out(request.endpoint, str(thing.id), "answered about other ids")
        return content

    async def ask_list(self, request: Request[list[T]], part: str | None) -> Answered[list[T]] | None:
        """Return a list; None if there is no right to it, and this `part` of all lists is left out.

        Raises ApiError if the list fails or too large a share of it is invalid, AuthError and ClockError.
        """
        try:
            answered = await self.ask(request)
        except Forbidden as error:
            self.leave_out(request.endpoint, part, str(error))
            return None
        flaws, items = answered.flaws, len(answered.content or ())
        number = len(flaws) + answered.more
        if flaws and (not items or number > max(FEW, self._settings.max_left_out_share * items)):
            raise ApiError(
                f"{request} answered with a list of {items:,} valid and {number:,} invalid items, more than "
                f"api.max_left_out_share. The first: {flaws[0].why}"
            )
        return answered

    def leave_out(self, endpoint: str, id_: str | None, why: str) -> None:
        """Report something as left out."""
        if self._kept[endpoint] < MOST_KEPT:
            self._kept[endpoint] += 1
            self._left_out.append(Omission.of(endpoint, id_, why))

    def _fail(self, thing: Thing, error: ApiError) -> None:
        """Leave a thing out. Raises ApiError if that is one too many."""
        if thing.id == 0 and isinstance(error, Rejected):
            thing.answered = True  # 0 may be how the provider writes "none"
            return
        self.leave_out(error.endpoint, str(thing.id), str(error))
        if isinstance(error, Forbidden):
            return
        self._all_failures += 1
        self._failures += not (self.was_owed(thing) or thing.suspected)
        if self._failures > max(FEW, self._settings.max_left_out_share * self._things):
            raise ApiError(
                f"{self._failures:,} of {self._things:,} things failed, which is more than "
                f"api.max_left_out_share = {self._settings.max_left_out_share:g} allows. The last: {error}"
            )

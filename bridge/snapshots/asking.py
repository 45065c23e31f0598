"""Asks the provider about one thing after the other, and keeps account of what it does not tell.

What is not told of one thing is left out: its record stands, the report says so, and it is owed, so that the
next run asks again. A run fails where too large a share of what it asks about does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

from bridge.config import ApiSettings
from bridge.errors import ApiError, Forbidden, Rejected, Unanswered
from bridge.rest.endpoints import Answered, EntityTranslation, Flaw, Request
from bridge.snapshots.model import NO_RIGHT, LeftOut

T = TypeVar("T")

FEW: Final = 10
"""So many things may fail whatever share of all they are: in a small run one is much."""
UNANSWERED_AFTER: Final = 5
"""Questions about what is owed, one after the other, without an answer: the rest waits for the next run."""
CLOSED_AFTER: Final = 3
"""Refusals for a missing right (403), one after the other: then the endpoint is not asked any more."""

ProgressCallback = Callable[[str, int, int], None]
"""Told what is asked about, how many of these are done, and of how many."""


class Asks(Protocol):
    """The provider, as `bridge.rest.client.Client`."""

    async def ask(self, request: Request[T], attempts: int | None = None) -> Answered[T]:
        """The answer, after at most so many attempts. Raises ApiError, AuthError and ClockError."""


class Refused(Exception):
    """A question was not answered."""

    def __init__(self, request: Request[Any], error: ApiError) -> None:
        super().__init__(str(error))
        self.endpoint = request.endpoint
        self.error = error

    @property
    def forbidden(self) -> bool:
        """Whether for a missing right."""
        return isinstance(self.error, Forbidden)

    @property
    def rejected(self) -> int | None:
        """With which status the question itself was refused, where it was."""
        return self.error.status if isinstance(self.error, Rejected) else None


@dataclass
class Thing:
    """What is asked about: `kind` says by which question. Its name, under which it is owed, is `kind:id`."""

    kind: str
    id: int | str
    sport: int | None = None
    """Of a market type."""
    doubted: bool = False
    """Asked about only to learn whether it is gone: if that is not told, nothing is owed."""
    flawed: bool = False
    """Whether something of its answer could not be used."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.sport is None else f"{self.kind}:{self.sport}:{self.id}"


class Account:
    """Of one run. `owed` has the names of what earlier ones were not told."""

    def __init__(self, asks: Asks, settings: ApiSettings, owed: frozenset[str] = frozenset()) -> None:
        self.owed = set(owed)
        """What is still to be told."""
        self.asked: set[str] = set()
        """What was asked about."""
        self._before = owed
        self._asks = asks
        self._attempts = settings.attempts
        self._share = settings.max_left_out_share
        self._left_out: list[LeftOut] = []
        self._refusals: dict[str, int] = {}
        """Endpoint → how often in a row it was refused for a missing right."""
        self._answered: set[str] = set()
        self._unanswered: dict[str, tuple[int, str]] = {}
        """Endpoint → how often in a row it did not answer what was asked only twice; why the last time."""
        self._all_failures = 0
        self._failures = self._things = 0
        """Of what is asked about at present: new failures, and of how many."""

    @property
    def forbidden(self) -> tuple[str, ...]:
        """Paths of the endpoints to which there is no right: there never was, or there is none any more."""
        return tuple(
            sorted(
                endpoint
                for endpoint, times in self._refusals.items()
                if times >= CLOSED_AFTER or endpoint not in self._answered
            )
        )

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """What was not told, in order."""
        no_right = [LeftOut(endpoint, None, NO_RIGHT) for endpoint in self.forbidden]
        others = {left for left in self._left_out if left.endpoint not in self.forbidden}
        return tuple(sorted((*no_right, *others), key=lambda left: (left.endpoint, left.id or "", left.why)))

    def begin(self, things: int) -> None:
        """So many things are asked about now, of one sort."""
        self._failures, self._things = 0, things

    async def ask(self, request: Request[T], *, patient: bool = True) -> Answered[T]:
        """The answer. Raises Refused, AuthError and ClockError.

        The more was left out, the less often anything is tried, but twice; what is not `patient`, twice.
        """
        if self._refusals.get(request.endpoint, 0) >= CLOSED_AFTER:
            raise Refused(request, Forbidden(f"{request.endpoint} is not asked any more: there is no right"))
        unanswered, last = self._unanswered.get(request.endpoint, (0, ""))
        if not patient and unanswered >= UNANSWERED_AFTER:
            reason = (
                f"it is left to the next run, because {unanswered} before it had no answer. The last: {last}"
            )
            raise Refused(request, Unanswered(reason))
        try:
            attempts = max(2, self._attempts - self._all_failures) if patient else 2
            answered = await self._asks.ask(request, attempts)
        except ApiError as error:
            if not patient and isinstance(error, Unanswered):
                others, _ = self._unanswered.get(request.endpoint, (0, ""))  # some were asked meanwhile
                self._unanswered[request.endpoint] = others + 1, str(error)
            if isinstance(error, Forbidden):
                self._refusals[request.endpoint] = self._refusals.get(request.endpoint, 0) + 1
            raise Refused(request, error) from None
        self._answered.add(request.endpoint)
        self._refusals.pop(request.endpoint, None)
        self._unanswered.pop(request.endpoint, None)
        return answered

    async def about(self, thing: Thing, request: Request[T]) -> T | None:
        """The answer's content: all of it, or what can be used of it. Raises as `ask`."""
        if not thing.doubted:
            self._ask_about([thing])
        answered = await self.ask(request, patient=str(thing) not in self._before)
        for flaw in answered.flaws:
            thing.flawed = True
            self.leave_out(request.endpoint, str(thing.id), flaw.why)
        return answered.content

    async def tell(self, thing: Thing, questions: Callable[[Thing], Awaitable[T]]) -> T | None:
        """What the questions about a thing bring; None where it is left out.

        Raises ApiError when more is left out than may be, AuthError and ClockError.
        """
        try:
            told = await questions(thing)
        except Refused as refused:
            self.fail(thing, refused)
            return None
        if not thing.flawed:
            self.owed.discard(str(thing))
        return told

    async def chunk(
        self,
        things: Sequence[Thing],
        request_of: Callable[[Sequence[Thing]], Request[list[EntityTranslation]]],
        *,
        halved: bool = False,
    ) -> list[EntityTranslation]:
        """What one question about several things brings. One that is refused is halved until the thing is
        found for which it is. Raises as `tell`.
        """
        names = self._ask_about(things)
        request = request_of(things)
        try:
            answered = await self.ask(request, patient=not halved and not names <= self._before)
        except Refused as refused:
            if len(things) == 1 or refused.forbidden:
                for thing in things:
                    self.fail(thing, refused)
                return []
            middle = len(things) // 2
            first = await self.chunk(things[:middle], request_of, halved=True)
            return first + await self.chunk(things[middle:], request_of, halved=True)
        content = answered.content or []
        self._take_flaws(request, things, answered.flaws)
        told, numbers = {entity["id"] for entity in content}, {thing.id for thing in things}
        if told - numbers:  # it may have answered another question
            for thing in things:
                if thing.id not in told:
                    self.owed.add(str(thing))
                    self.leave_out(request.endpoint, str(thing.id), "answered about other ids")
        return content

    def _ask_about(self, things: Sequence[Thing]) -> set[str]:
        names = {str(thing) for thing in things}
        self.asked |= names
        self.owed |= names
        return names

    def _take_flaws(self, request: Request[Any], things: Sequence[Thing], flaws: Sequence[Flaw]) -> None:
        flawed = {flaw.id for flaw in flaws}
        for flaw in flaws:
            self.leave_out(request.endpoint, None if flaw.id is None else str(flaw.id), flaw.why)
        for thing in things:
            thing.flawed = thing.id in flawed or None in flawed
            if not thing.flawed:
                self.owed.discard(str(thing))

    def must_believe(self, request: Request[Any], answered: Answered[list[T]]) -> None:
        """Raises ApiError where so many items of a list cannot be used that it is not to be believed."""
        flaws, items = answered.flaws, len(answered.content or ())
        number = len(flaws) + answered.more
        if flaws and (not items or number > max(FEW, self._share * items)):
            raise ApiError(
                f"{request} answered a list of which {number:,} items cannot be used and {items:,} can, "
                f"which is not believed (api.max_left_out_share). The first: {flaws[0].why}"
            )

    def leave_out(self, endpoint: str, id_: str | None, why: str) -> None:
        """Tell of what was not told."""
        self._left_out.append(LeftOut.of(endpoint, id_, why))

    def fail(self, thing: Thing, refused: Refused) -> None:
        """Leave a thing out. Raises ApiError when that is one too many."""
        if thing.id == 0 and refused.rejected:
            # It may be how the provider writes that there is none: nobody waits for its name.
            self.owed.discard(str(thing))
            return
        self.leave_out(refused.endpoint, str(thing.id), str(refused))
        if refused.forbidden:
            return
        self._all_failures += 1
        self._failures += str(thing) not in self._before and not thing.doubted
        if self._failures > max(FEW, self._share * self._things):
            raise ApiError(
                f"{self._failures:,} of {self._things:,} things failed, which is more than "
                f"api.max_left_out_share = {self._share:g} lets be left out. The last: {refused}"
            )

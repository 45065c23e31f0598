"""When the provider may be dialled, and why not now, sans-IO: the limits of the interface ("Limits").

    initial    connections without a revision, with 0, or with one older than the feed's memory
    proper     connections with any other revision
    large      connections with any revision older than an hour, 0 and what is too old included
    bucket     the rest of the proper ones: the seconds they ask for fill a bucket, which leaks

What the provider makes of an attempt is known to within bounds only. It arrives up to `reach` seconds
after it was decided, and is older by then; it is judged by a clock up to `skew` seconds from ours. So an
attempt counts in every class that it could belong to, at the last moment at which it may have arrived,
whether it was refused or not. What is let in here is within the limits whatever the truth.

The ledger of attempts is part of the checkpoint: it is committed before the dial, so that a crash loop
cannot spend the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from bridge.clock import Instant
from bridge.config import LimitsSettings

DECIDED_SECONDS = 10.0
"""How long after its decision a dial may begin: Kafka has to commit the attempt first."""
MARGIN_SECONDS = 2.0
"""Between our clock and the moment at which the provider may have counted an attempt."""
RESOLUTION_SECONDS = 0.001
"""How exactly the moment is found at which the bucket has room."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One dial of the provider, as the ledger keeps it. Times are Unix seconds."""

    at: float
    """When it was decided; written before the dial."""
    recovery_seconds: int
    """How far back it asked, rounded up; 0 for the interface's `revision=0`."""
    initial: bool
    """Whether it went without a revision."""
    answered_at: float | None = None
    refused: bool = False
    own: bool = field(default=True, compare=False)
    """Whether this process made it: by its own clock, not by that of another machine."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Dial now, when `until` is not after now; else wait until then, because of `reason`."""

    until: float
    reason: str


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """How much of a limit is used: attempts, or seconds for the bucket."""

    name: str
    used: float
    allowed: float
    free_at: float | None
    """When some of it is free again; None when some is."""


class _Window(NamedTuple):
    """At most `connections` attempts of a class in any `seconds`."""

    name: str
    connections: int
    seconds: float


class _Level(NamedTuple):
    """What is in the bucket, and since when it has not been empty: infinity when it is."""

    seconds: float
    since: float


class _Ages(NamedTuple):
    """How old a revision may be, seconds, when the provider looks at it. `low` is infinite for none."""

    low: float
    high: float


class Limiter:
    """The provider's limits and the attempts that count against them.

    `connect_timeout` bounds how long after its intent an attempt may reach the provider, `skew` how far
    the provider's clock may be from ours; both in seconds.
    """

    def __init__(
        self,
        settings: LimitsSettings,
        connect_timeout: float,
        skew: float = 0.0,
        ledger: Iterable[Attempt] = (),
    ) -> None:
        s, scale = settings, settings.scale
        self._windows = (
            _Window("initial", s.initial_connections, s.initial_window_seconds / scale),
            _Window("proper", s.proper_connections, s.proper_window_seconds / scale),
            _Window("large", s.large_connections, s.large_window_seconds / scale),
        )
        self._bucket = s.bucket_seconds / scale
        self._drain = s.bucket_drain
        self._large_age = s.large_age_seconds / scale
        self._memory = settings.memory_seconds
        self._reach = DECIDED_SECONDS + connect_timeout + MARGIN_SECONDS
        self._skew = skew
        self._last: Instant | None = None
        self.ledger: tuple[Attempt, ...] = tuple(ledger)

    # What may be asked.

    def oldest_replayable(self, now: float) -> int:
        """The oldest revision that is within the feed's memory whenever a dial of now arrives."""
        # The ledger keeps whole seconds, rounded up: one more, so that it too has it within the memory.
        return math.ceil(now + self._reach + self._skew - self._memory) + 1

    def decide(self, now: Instant, revision: int | None) -> Decision:
        """When an attempt with this revision is let in; None is the interface's `revision=0`.

        The answer is the earliest such moment, to a millisecond, for a recovery as long as it will be by
        then. A revision that falls out of the feed's memory while it waits is taken for the edge of it.
        """
        self.observe(now)
        decision = Decision(now.wall, "")
        # Each step goes to the first moment at which what forbids this one does not. A class that is left
        # behind, or entered, meanwhile is seen at the next.
        while (later := self._forbidden(decision.until, revision)) is not None:
            decision = later
        return decision

    def _forbidden(self, at: float, revision: int | None) -> Decision | None:
        """What forbids a dial at this moment, and until when at least."""
        ages = self._asking(at, revision)
        for window in self._windows:
            if self._may_be(window.name, ages):
                free_at = self._free_at(window)
                if free_at > at:
                    reason = f"{window.connections} {window.name} connections in {window.seconds:g} s"
                    return Decision(free_at, reason)
        if self._may_be_small(ages):
            excess = self._level(at).seconds + self._length(ages) - self._bucket
            if excess > 0:
                reason = f"{self._bucket:g} s of small recovery in the leaking bucket"
                return Decision(at + self._until_room(at, revision, ages, excess), reason)
        return None

    def _seen(self, window: _Window) -> list[float]:
        """When the attempts that may count in the window were seen, in order."""
        return sorted(self._seen_at(a) for a in self.ledger if self._may_be(window.name, self._ages(a)))

    def _free_at(self, window: _Window) -> float:
        """From when on one more attempt fits into the window."""
        seen = self._seen(window)
        return seen[-window.connections] + window.seconds if len(seen) >= window.connections else -math.inf

    def _until_room(self, at: float, revision: int | None, ages: _Ages, excess: float) -> float:
        """Seconds until there may be room for what is too much by `excess`, or something else happens.

        Attempts on their way, which are added then, are seen at the next step.
        """
        # A recovery grows while it waits: until it is as long as a small one can be, then until it is a large
        # one, and in no case once it asks for the edge of memory.
        growing, older = self._large_age - ages.high, (revision or 0) - self.oldest_replayable(at)
        room = excess / self._drain
        if older > 0:
            if ages.high >= 0 and growing > 0:
                room = min(growing, excess / (self._drain - 1) if self._drain > 1 else math.inf)
            room = min(room, older, self._large_age - ages.low)
        return room + RESOLUTION_SECONDS

    def usage(self, now: Instant) -> tuple[LimitUsage, ...]:
        """How much of each limit is used."""
        self.observe(now)
        usage = []
        for window in self._windows:
            used = sum(at > now.wall - window.seconds for at in self._seen(window))
            free_at = self._free_at(window)
            usage.append(
                LimitUsage(window.name, used, window.connections, free_at if free_at > now.wall else None)
            )
        level = self._level(now.wall).seconds
        full_until = now.wall + (level - self._bucket) / self._drain
        usage.append(LimitUsage("bucket", level, self._bucket, full_until if level >= self._bucket else None))
        return tuple(usage)

    # What was asked.

    def attempt(self, now: Instant, revision: int | None) -> Attempt:
        """Enter an attempt into the ledger; to be committed before the dial."""
        self.observe(now)
        length = 0 if revision is None else max(0, math.ceil(now.wall - revision))
        entry = Attempt(now.wall, length, initial=revision is None)
        longest = max(window.seconds for window in self._windows)
        oldest = min(now.wall - longest, self._level(now.wall).since)
        self.ledger = (*(old for old in self.ledger if self._seen_at(old) >= oldest), entry)
        return entry

    def withdraw(self) -> None:
        """The last attempt was never made."""
        self.ledger = self.ledger[:-1]

    def answered(self, now: Instant, *, refused: bool) -> None:
        """The provider has answered the last attempt: it has counted it by now, whatever it said.

        An attempt that was let in may still be refused, by a close code; the first answer is its time.
        """
        self.observe(now)
        last = self.ledger[-1]
        at = now.wall if last.answered_at is None else last.answered_at
        self.ledger = (*self.ledger[:-1], replace(last, answered_at=at, refused=refused))

    def observe(self, now: Instant) -> None:
        """Keep the ledger as old as it is: by the monotonic clock, however the wall clock was set meanwhile.

        At first only the wall clock is known. A ledger from its future happened now at the latest.
        """
        last, self._last = self._last or now, now
        ahead = (now.wall - last.wall) - (now.monotonic - last.monotonic)
        self.ledger = tuple(_moved(attempt, ahead, now.wall) for attempt in self.ledger)

    # What counts, and for how much.

    def _seen_at(self, attempt: Attempt) -> float:
        """The last moment at which the provider may have counted it."""
        # Each of two clocks may be that far from the provider's.
        clocks = 0.0 if attempt.own else 2 * self._skew
        if attempt.answered_at is None:
            return attempt.at + self._reach + clocks
        return attempt.answered_at + MARGIN_SECONDS + clocks

    def _ages(self, attempt: Attempt) -> _Ages:
        if attempt.initial:
            return _NONE
        on_its_way = self._seen_at(attempt) - attempt.at
        asked = attempt.recovery_seconds
        return _Ages(asked - 1 - self._skew, asked + on_its_way + self._skew)

    def _asking(self, at: float, revision: int | None) -> _Ages:
        if revision is None:
            return _NONE
        age = at - max(revision, self.oldest_replayable(at))
        return _Ages(age - self._skew, age + self._reach + self._skew)

    def _may_be(self, name: str, ages: _Ages) -> bool:
        """Whether the provider may put a revision so old into this class."""
        match name:
            case "initial":
                return ages.high > self._memory
            case "proper":
                return ages.low <= self._memory
            case _:
                return ages.high > self._large_age

    def _may_be_small(self, ages: _Ages) -> bool:
        """Whether it may be a recovery that goes into the bucket."""
        return ages.low <= self._large_age

    def _length(self, ages: _Ages) -> float:
        """What it may add to the bucket, seconds: a longer recovery is a large one."""
        return min(max(ages.high, 0.0), self._large_age)

    def _level(self, at: float) -> _Level:
        """What may be in the bucket."""
        level, then, since = 0.0, -math.inf, math.inf
        for attempt in sorted(self.ledger, key=self._seen_at):
            ages = self._ages(attempt)
            if self._may_be_small(ages):
                seen = min(at, self._seen_at(attempt))
                level -= (seen - then) * self._drain
                if level <= 0:
                    level, since = 0.0, seen
                level += self._length(ages)
                then = seen
        level = max(0.0, level - (at - then) * self._drain)
        return _Level(level, since if level else math.inf)


_NONE = _Ages(math.inf, math.inf)


def _moved(attempt: Attempt, by: float, latest: float) -> Attempt:
    """Later by so much, but not beyond `latest`, and as long on its way as it was."""
    at, answered = attempt.at, attempt.answered_at
    by = min(by, latest - (at if answered is None else answered))
    return replace(attempt, at=at + by, answered_at=None if answered is None else answered + by)

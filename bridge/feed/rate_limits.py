"""When a connection to the provider is allowed, and why not now, sans-IO (interface, "Limits").

    initial    connections without a revision, with 0, or with one older than the feed's memory
    proper     connections with any other revision; all others count as well, for a provider that allows five
               of any kind
    large      connections with any revision older than an hour, 0 and what is too old included
    bucket     the other proper ones: the seconds they ask for fill a leaky bucket

How the provider counts an attempt is known only within bounds. It arrives up to `reach` seconds after the
decision, and its revision is older by then; the provider's clock is up to `skew` seconds from ours. So an
attempt counts in every class that it may belong to, at the last moment at which it may have arrived, refused
or not. An attempt that is allowed here is within the limits in any case.

The ledger of attempts is part of the checkpoint and committed before each attempt, so that a crash loop
cannot use up the limits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import ceil, inf
from typing import NamedTuple, Self

from bridge.clock import Instant
from bridge.config import LimitsSettings, Settings
from bridge.formatting import format_duration, plural

DECIDED_SECONDS = 10.0
"""How long after the decision an attempt may begin: Kafka has to commit it first."""
MARGIN_SECONDS = 2.0
"""Margin for the moment at which the provider may have counted an attempt."""
STEP_SECONDS = 1.0
"""A clock that moves forward by more than this may show a pause of the machine."""
RECENT_SECONDS = 60.0
"""How long after the answer to an attempt the clock may still be corrected because of a pause during it."""
RESOLUTION_SECONDS = 0.001
"""Resolution of the moment at which the bucket has room."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An entry of the ledger: an attempt to connect. Times are Unix seconds."""

    at: float
    """When it was decided."""
    recovery_seconds: int
    """Age of the requested revision, rounded up; 0 for the interface's `revision=0`."""
    initial: bool
    """Whether it was made without a revision."""
    answered_at: float | None = None
    refused: bool = False
    retry_at: float | None = None
    """When the answer allows the next attempt, if it says so (`Retry-After`)."""
    own: bool = field(default=True, compare=False)
    """Whether this process made it, by its own clock."""
    grown_seconds: float = field(default=0.0, compare=False)
    """How much older its revision may have been on arrival: the clock moved forward. Not committed."""

    @property
    def last_at(self) -> float:
        """When it was answered, or decided if it was not."""
        return self.at if self.answered_at is None else self.answered_at


@dataclass(frozen=True, slots=True)
class Decision:
    """Connect now if `until` is not in the future; else wait until then, because of `reason`."""

    until: float
    reason: str


@dataclass(frozen=True, slots=True)
class LimitUsage:
    """Usage of a limit: attempts, or seconds for the bucket."""

    name: str
    used: float
    allowed: float
    free_at: float | None
    """When an attempt is allowed again; None if it is now."""

    @property
    def words(self) -> str:
        """Used and allowed, in words."""
        if self.name == "bucket":
            return f"{format_duration(round(self.used))} of {format_duration(self.allowed)}"
        return f"{self.used:.0f} of {self.allowed:g}"

    @property
    def counted(self) -> str:
        """What counts against it, in words."""
        return _COUNTED[self.name]


_COUNTED = {
    "initial": "attempts without a revision, or with one too old",
    "proper": "attempts of any kind",
    "large": "attempts with a revision older than an hour",
    "bucket": "shorter recoveries, in a leaky bucket",
}


class _Level(NamedTuple):
    """Contents of the bucket, and since when it has not been empty; infinity if it is."""

    seconds: float
    since: float


class _Ages(NamedTuple):
    """Bounds of a revision's age, seconds, when it reaches the provider. `low` is infinite for none."""

    low: float
    high: float


class _Window(NamedTuple):
    """At most `connections` attempts in any `seconds` with a revision of an age in (`above`, `up_to`]."""

    name: str
    above: float
    up_to: float
    connections: int
    seconds: float

    def may_count(self, ages: _Ages) -> bool:
        """Return whether the provider may count a revision of this age."""
        return ages.high > self.above and ages.low <= self.up_to


class Limiter:
    """The provider's limits and the attempts that count against them.

    `connect_timeout` bounds how long an attempt may take to reach the provider, `skew` how far the provider's
    clock may be from ours; both in seconds.
    """

    @classmethod
    def of(cls, settings: Settings, ledger: Iterable[Attempt] = ()) -> Self:
        """Return the limiter of these settings, after these attempts."""
        feed = settings.feed
        return cls(settings.limits, feed.connect_timeout_seconds, feed.max_clock_skew_seconds, ledger)

    def __init__(
        self, limits: LimitsSettings, connect_timeout: float, skew: float, ledger: Iterable[Attempt]
    ) -> None:
        scale, memory, large = limits.scale, limits.memory_seconds, limits.large_age_seconds / limits.scale
        self._windows = (
            _Window(
                "initial", memory, inf, limits.initial_connections, limits.initial_window_seconds / scale
            ),
            _Window("proper", -inf, inf, limits.proper_connections, limits.proper_window_seconds / scale),
            _Window("large", large, inf, limits.large_connections, limits.large_window_seconds / scale),
        )
        self._large_age = large
        self._memory = memory
        self._bucket = limits.bucket_seconds / scale
        self._drain = limits.bucket_drain
        self._may_overflow = limits.bucket_may_overflow
        self._longest_retry_after = limits.max_retry_after_seconds
        self._reach = DECIDED_SECONDS + connect_timeout + MARGIN_SECONDS
        self._skew = skew
        self._last: Instant | None = None
        self.ledger: tuple[Attempt, ...] = tuple(ledger)

    # Decisions.

    def oldest_replayable(self, now: float) -> int:
        """Return the oldest revision that the feed can still replay when an attempt of now arrives."""
        # One more, because the ledger rounds ages up to whole seconds.
        return ceil(now + self._reach + self._skew - self._memory) + 1

    def decide(self, now: Instant, revision: int | None) -> Decision:
        """Return when an attempt with this revision is allowed; None is the interface's `revision=0`.

        This is the earliest such moment, to a millisecond, for a recovery as long as it will be by then. A
        revision that becomes too old while it waits is replaced by the oldest replayable one.
        """
        self.observe(now)
        decision = Decision(now.wall, "")
        # Each step goes to the moment at which the present obstacle ends; the next step sees new ones.
        while (later := self._forbidden(decision.until, revision)) is not None:
            decision = later
        return decision

    def _forbidden(self, at: float, revision: int | None) -> Decision | None:
        """Return what forbids an attempt at this moment, and until when at least."""
        for attempt in self.ledger:
            if attempt.retry_at is not None:
                pause = min(attempt.retry_at - attempt.last_at, self._longest_retry_after)
                if attempt.last_at + pause > at:
                    reason = f"the provider asked for a pause of {format_duration(pause)} (Retry-After)"
                    return Decision(attempt.last_at + pause, reason)
        ages = self._asking(at, revision)
        for window in self._windows:
            if window.may_count(ages):
                free_at = self._free_at(window)
                if free_at > at:
                    attempts = plural(window.connections, f"{window.name} connection attempt")
                    return Decision(free_at, f"{attempts} in {format_duration(window.seconds)}")
        if self._may_be_small(ages):
            room = RESOLUTION_SECONDS if self._may_overflow else self._length(ages)
            level = self._level(at)
            excess = level.seconds + room - self._bucket
            if excess > 0:
                reason = f"{format_duration(self._bucket)} of small recovery in the leaky bucket"
                return Decision(at + self._until_room(at, revision, ages, excess, level.since), reason)
        return None

    def _seen(self, window: _Window) -> list[float]:
        """Return when the attempts that may count in the window were seen, in order."""
        return sorted(self._seen_at(a) for a in self.ledger if window.may_count(self._ages(a)))

    def _free_at(self, window: _Window) -> float:
        """Return from when on another attempt fits into the window."""
        seen = self._seen(window)
        return seen[-window.connections] + window.seconds if len(seen) >= window.connections else -inf

    def _until_room(self, at: float, revision: int | None, ages: _Ages, excess: float, since: float) -> float:
        """Return the seconds until `excess` may have leaked out, or until the recovery changes its class.

        Attempts that arrive in the meantime are seen at the next step.
        """
        # A recovery grows while it waits, until it is as long as a small one can be, or a large one; it does
        # not grow once it asks for the oldest replayable revision.
        growing, older = self._large_age - ages.high, (revision or 0) - self.oldest_replayable(at)
        room = excess / self._drain
        if older > 0 and ages.high >= 0 and growing > 0 and not self._may_overflow:
            room = min(growing, excess / (self._drain - 1) if self._drain > 1 else inf)
        if since == at:  # what is on its way leaks from its arrival on
            room = max(room, min((s - at for a in self.ledger if (s := self._seen_at(a)) >= at), default=0.0))
        if older > 0:
            room = min(room, older, self._large_age - ages.low)
        return room + RESOLUTION_SECONDS

    def usage(self, now: Instant) -> tuple[LimitUsage, ...]:
        """Return the usage of each limit."""
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

    # The ledger.

    def attempt(self, now: Instant, revision: int | None) -> Attempt:
        """Enter an attempt into the ledger, which must be committed before the attempt is made."""
        self.observe(now)
        length = 0 if revision is None else max(0, ceil(now.wall - revision))
        entry = Attempt(now.wall, length, initial=revision is None)
        longest = max(window.seconds for window in self._windows)
        oldest = min(now.wall - longest, self._level(now.wall).since)
        self.ledger = (*(old for old in self.ledger if self._seen_at(old) >= oldest), entry)
        return entry

    def withdraw(self) -> None:
        """Remove the last attempt: it was not made."""
        self.ledger = self.ledger[:-1]

    def answered(self, now: Instant, *, refused: bool, retry_after: float | None = None) -> None:
        """Note the provider's answer to the last attempt, which it has counted by now in any case.

        An accepted attempt may still be refused by a close code; the first answer is its time. `retry_after`
        is the pause that the answer asks for, in seconds.
        """
        self.observe(now)
        last = self.ledger[-1]
        at = now.wall if last.answered_at is None else last.answered_at
        retry_at = None if retry_after is None else at + min(retry_after, self._longest_retry_after)
        answered = replace(last, answered_at=at, refused=refused, retry_at=retry_at)
        self.ledger = (*self.ledger[:-1], answered)

    def observe(self, now: Instant) -> None:
        """Age the ledger by the monotonic clock, however the wall clock was set.

        A restored ledger has wall-clock times only. Entries from the future are taken to have happened now.
        """
        last, self._last = self._last or now, now
        ahead = (now.wall - last.wall) - (now.monotonic - last.monotonic)
        ledger = [_moved(attempt, ahead, now.wall) for attempt in self.ledger]
        # The machine may have been paused while the last attempt was made.
        if ahead > STEP_SECONDS and ledger and now.wall - ledger[-1].last_at < RECENT_SECONDS:
            ledger[-1] = replace(ledger[-1], grown_seconds=ledger[-1].grown_seconds + ahead)
        self.ledger = tuple(ledger)

    # How attempts count.

    def _seen_at(self, attempt: Attempt) -> float:
        """Return the last moment at which the provider may have counted it."""
        # Both clocks, of that process and of this one, may be that far from the provider's.
        clocks = 0.0 if attempt.own else 2 * self._skew
        if attempt.answered_at is None:
            return attempt.at + self._reach + clocks
        return attempt.answered_at + MARGIN_SECONDS + clocks

    def _ages(self, attempt: Attempt) -> _Ages:
        if attempt.initial:
            return _NONE
        on_its_way = self._seen_at(attempt) - attempt.at
        asked = attempt.recovery_seconds
        return _Ages(asked - 1 - self._skew, asked + on_its_way + self._skew + attempt.grown_seconds)

    def _asking(self, at: float, revision: int | None) -> _Ages:
        if revision is None:
            return _NONE
        age = at - max(revision, self.oldest_replayable(at))
        return _Ages(age - self._skew, age + self._reach + self._skew)

    def _may_be_small(self, ages: _Ages) -> bool:
        """Return whether it may be a recovery that counts in the bucket."""
        return ages.low <= self._large_age

    def _length(self, ages: _Ages) -> float:
        """Return what it may add to the bucket, seconds: a longer recovery is a large one."""
        return min(max(ages.high, 0.0), self._large_age)

    def _level(self, at: float) -> _Level:
        """Return what may be in the bucket."""
        level, then, since = 0.0, -inf, inf
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
        return _Level(level, since if level else inf)


_NONE = _Ages(inf, inf)


def _moved(attempt: Attempt, by: float, latest: float) -> Attempt:
    """Move an attempt by seconds, not beyond `latest`, together with its answer."""
    by = min(by, latest - attempt.last_at)
    answered, retry = (
        None if time is None else time + by for time in (attempt.answered_at, attempt.retry_at)
    )
    return replace(attempt, at=attempt.at + by, answered_at=answered, retry_at=retry)

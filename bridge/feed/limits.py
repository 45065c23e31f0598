"""When the provider may be dialled, sans-IO: as careful as the strictest of its limits.

Each attempt counts, whatever its kind and its outcome, against the smallest number of connections and
the longest window of any kind, and its recovery fills the bucket (interface, "Limits"). So an attempt
that is let in here breaks no limit, whichever class the provider puts it in.

The ledger of attempts is part of the checkpoint: it is committed before the dial, so that a crash loop
cannot spend the budget. All times are Unix seconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from bridge.config import LimitsSettings

MARGIN_SECONDS = 2.0
"""Between our clock and the moment at which the provider may have counted an attempt."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One dial of the provider, as the ledger keeps it."""

    at: float
    """When it was decided; written before the dial."""
    recovery_seconds: int
    """How far back it asked, rounded up; 0 for the interface's `revision=0`."""
    initial: bool
    """Whether it went without a proper revision."""
    answered_at: float | None = None
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """Dial now, when `until` is not after now; else wait until then, because of `reason`."""

    until: float
    reason: str


class Limiter:
    """The provider's limits and the attempts that count against them.

    `connect_timeout` bounds how long after its intent an attempt without an answer may have reached
    the provider.
    """

    def __init__(
        self, settings: LimitsSettings, connect_timeout: float, ledger: Iterable[Attempt] = ()
    ) -> None:
        scale = settings.scale
        self._connections = min(
            settings.initial_connections, settings.proper_connections, settings.large_connections
        )
        windows = (
            settings.initial_window_seconds,
            settings.proper_window_seconds,
            settings.large_window_seconds,
        )
        self._window = max(windows) / scale
        self._bucket = settings.bucket_seconds / scale
        self._drain = settings.bucket_drain
        self._margin = MARGIN_SECONDS / scale
        self._large = settings.large_age_seconds / scale + self._margin
        """From this length on, seconds, a recovery is a large one by the provider's clock as well."""
        self._timeout = connect_timeout
        self.ledger: tuple[Attempt, ...] = tuple(ledger)

    def decide(self, now: float, revision: int | None) -> Decision:
        """When an attempt with this revision is let in; None is the interface's `revision=0`.

        The answer is the earliest such moment, for a recovery as long as it will be by then.
        """
        decision = Decision(now, "")
        seen = sorted(map(self._seen_at, self.ledger))
        if len(seen) >= self._connections:
            free = seen[-self._connections] + self._window
            if free > now:
                decision = Decision(free, f"{self._connections} connections in {self._window:g} s")
        if revision is not None:
            room = self._room_at(decision.until, revision)
            if room > decision.until:
                decision = Decision(room, f"recovery of {self._bucket:g} s in the leaking bucket")
        return decision

    def attempt(self, now: float, revision: int | None) -> Attempt:
        """Enter an attempt into the ledger; to be committed before the dial."""
        entry = Attempt(
            at=now,
            recovery_seconds=0 if revision is None else max(0, math.ceil(now - revision)),
            initial=revision is None,
        )
        _, filled_since = self._level_at(now)
        oldest = min(filled_since, now - self._window)
        self.ledger = (*(old for old in self.ledger if self._seen_at(old) >= oldest), entry)
        return entry

    def withdraw(self) -> None:
        """The last attempt was never made."""
        self.ledger = self.ledger[:-1]

    def answered(self, at: float, *, refused: bool) -> None:
        """The provider has answered the last attempt: it has counted it by now, whatever it said."""
        last = self.ledger[-1]
        self.ledger = (*self.ledger[:-1], replace(last, answered_at=at, refused=refused))

    def _seen_at(self, attempt: Attempt) -> float:
        """The last moment at which the provider may have counted it."""
        answer = attempt.at + self._timeout if attempt.answered_at is None else attempt.answered_at
        return answer + self._margin

    def _level_at(self, now: float) -> tuple[float, float]:
        """What is in the bucket, seconds, and since when it has not been empty; never: infinity."""
        level, at, since = 0.0, 0.0, math.inf
        for attempt in sorted(self.ledger, key=self._seen_at):
            seen = self._seen_at(attempt)
            level = max(0.0, level - (seen - at) * self._drain)
            if not level:
                since = seen
            if not attempt.initial:
                # Its revision was older by the time at which the provider looked at it.
                level += min(self._bucket, attempt.recovery_seconds + seen - attempt.at)
            at = seen
        level = max(0.0, level - (now - at) * self._drain)
        return level, since if level else math.inf

    def _room_at(self, now: float, revision: int) -> float:
        """When the bucket has room for a recovery from `revision`, or does not matter to it any more."""
        length = max(0.0, now - revision)
        if length >= self._large:
            return now  # it counts by the window
        level, _ = self._level_at(now)
        excess = level + length - self._bucket
        if excess <= 0:
            return now
        # While we wait, the recovery grows by one second a second and the bucket drains by `drain`. Where
        # it runs empty before there is room, there is none until the recovery is a large one.
        wait = excess / (self._drain - 1)
        becomes_large = self._large - length
        return now + (min(wait, becomes_large) if wait * self._drain <= level else becomes_large)

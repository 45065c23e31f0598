"""What one term of leadership knows. Its parts share it, and change it on the event loop only."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from bridge.clock import AnchoredClock, Instant
from bridge.config import Settings
from bridge.feed.catch_up import CatchUpTracker
from bridge.feed.position import Position
from bridge.feed.rate_limits import Limiter
from bridge.records.checkpoint import Checkpoint
from bridge.records.reach import TopicReach
from bridge.service.status import Status
from bridge.service.timekeeper import STEP_SECONDS, Timekeeper
from bridge.stored.restore import deduplicated_from


@dataclass(eq=False, repr=False)
class Term:
    """The state of a term, from the checkpoint that it goes on from."""

    settings: Settings
    status: Status
    timekeeper: Timekeeper
    wake: asyncio.Event
    """Set when the loop that reads the feed has something to do."""
    start: Checkpoint
    """What the term begins with: the last committed checkpoint, or a first one, not committed yet."""
    committed: Checkpoint | None
    """The last committed checkpoint."""
    topics: tuple[TopicReach, ...]
    """How far the topics reach, by what is committed."""

    def __post_init__(self) -> None:
        feed = self.settings.feed
        self.limiter = Limiter.of(self.settings, self.start.ledger)
        # From here on the ledger grows older by the monotonic clock. Its times are of another process, and
        # one of the clocks may be wrong until the provider has confirmed it: the lesser age breaks no limit.
        now = self.clock()
        machine = now.monotonic + self.clock.machine_offset
        self.limiter.observe(Instant(min(now.wall, machine), now.monotonic))
        self.position = Position(feed, self.start.revision)
        self.counters = self.start.counters.copy()
        self.starting = feed.start == "0" and (self.committed is None or self.committed.starting)
        """Whether the next attempt asks for revision 0: what that replays has not come yet."""
        self.progress = CatchUpTracker()
        self._restored_by = self.clock.offset
        """The offset of the clock by which the state is restored."""
        self.safe_revision = self.find_safe_revision()
        """The revision to go back to if the position is in the future; None if it is not, or unknown."""

    @property
    def clock(self) -> AnchoredClock:
        """The clock that revisions are computed from."""
        return self.timekeeper.clock

    @property
    def clock_was_wrong(self) -> bool:
        """Whether the clock was corrected since the state was restored."""
        return abs(self.clock.offset - self._restored_by) > STEP_SECONDS

    @property
    def is_ahead(self) -> bool:
        """Whether the position is ahead of the provider's clock."""
        return self.position.revision > self.clock().wall + self.settings.feed.max_clock_skew_seconds

    def find_safe_revision(self) -> int | None:
        """Return `safe_revision` by the clock as it is now.

        Everything published before the newest settlementTime was received. If nothing was published, only the
        oldest replayable revision is safe. A settlementTime in the future as well means that our clock is
        wrong, unless the provider has confirmed it.
        """
        now, skew = self.clock().wall, self.settings.feed.max_clock_skew_seconds
        newest, oldest_replayable = self.start.newest, self.limiter.oldest_replayable(now)
        if not self.start.is_ahead(now, skew):
            return None
        if newest is None:
            safe = oldest_replayable
        elif newest > now + skew and self.timekeeper.skew is None:
            return None
        else:
            safe = max(oldest_replayable, int(deduplicated_from(self.settings.feed, min(newest, now))))
        return safe if safe < self.start.revision else None

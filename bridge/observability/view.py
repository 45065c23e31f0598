"""What can be seen of a bridge at one moment: what health, metrics and the status page are made of.

A reader computes what it shows from a StatusSnapshot and its own `now`. So nothing is done for it while
messages are handled, and a StatusSnapshot that is not renewed grows visibly old.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.feed.rate_limits import LimitUsage
from bridge.state.checkpoint import Counters, State


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSnapshot:
    """A bridge at one moment. Moments are Unix seconds of our clock, durations are seconds.

    The defaults are what is seen of one that has only just started.
    """

    at: float
    """When the event loop last said so; it says so at least every second while it is alive."""
    started_at: float
    feed: str
    owner_id: str
    """Of this process, as it stands in the checkpoints that it writes."""
    compiled: bool = False
    """Whether the hot path is; else it runs as plain Python."""
    converter: str = "pydantic"
    """As `feed.converter` says."""
    state: State | None = None
    """None until the first state is entered."""
    reason: str = ""
    since: float
    """When the state began."""
    until: float | None = None
    """When a wait will be over, where that is known."""
    owner: bool = False
    """Whether the feed is this process's own, as far as it knows."""
    revision: int | None = None
    """The committed position, Unix seconds of the provider's clock."""
    committed_at: float | None = None
    """Of the last commit of this process."""
    counters: Counters = field(default_factory=Counters)
    dedup_entries: int = 0
    skew: float | None = None
    """How far the provider's clock is ahead of ours."""
    gaps: int = 0
    """Declared by this process."""
    connections: Mapping[str, int] = field(default_factory=dict)
    """Attempts of this process, by result: `accepted`, `refused`, `failed`."""
    newest: float | None = None
    """The newest settlementTime read on this connection, Unix seconds of the provider's clock."""
    rate: float = 0.0
    """Messages a second, lately."""
    eta: float | None = None
    """Until what was published is caught up with."""
    usage: tuple[LimitUsage, ...] = ()
    next_connect: float | None = None
    """When a reconnect would be let in by the provider's limits."""
    extras: Mapping[str, int] = field(default_factory=dict)
    """Messages with a field that the interface does not know, by the path of the field."""
    fallbacks: int = 0
    """Messages that the compiled converter has left to pydantic."""
    queue_messages: int = 0
    """Read from the socket, not yet handled."""
    batch_records: int = 0
    """Handled, not yet committed."""
    transactions: int = 0
    """Committed by this process."""
    commit_seconds: float = 0.0
    """Spent on these, in all."""

    def revision_age(self, now: float) -> float | None:
        """How far the committed position is behind the provider's clock; None before there is one."""
        return None if self.revision is None else now + (self.skew or 0.0) - self.revision

    def distance(self, now: float) -> float | None:
        """How far the newest settlementTime read is behind the provider's clock; None before the first.

        Never below 0: the provider may give a bet a time to come.
        """
        return None if self.newest is None else max(0.0, now + (self.skew or 0.0) - self.newest)

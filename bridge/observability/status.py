"""The status of `bridge run` at one moment, from which health and metrics are computed.

Readers combine a StatusSnapshot with their own `now`. Handling a message costs nothing for them, and a
snapshot that is no longer renewed grows visibly old.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, NamedTuple

from bridge.feed.rate_limits import LimitUsage
from bridge.kafka.open_transactions import OpenTransaction
from bridge.observability.rates import Rates
from bridge.ownership.group import Group
from bridge.records.checkpoint import State
from bridge.records.counters import Counters
from bridge.records.dead_letter import DeadLetterCause
from bridge.records.gap import FeedGap

BOUNDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Upper bounds of the buckets, seconds: a commit takes 5 ms at best, and 30 s while a broker is replaced."""
LAG_BOUNDS: Final = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0, 3600.0, 21600.0, 86400.0, 259200.0)
"""Those of what may be as old as an outage was long."""


@dataclass(slots=True)
class DurationHistogram:
    """Durations in seconds, counted in buckets."""

    counts: list[int] = field(default_factory=list)
    """Durations up to each bound and above the one before; the last are above all bounds."""
    seconds: float = 0.0
    """Sum of all durations."""
    bounds: tuple[float, ...] = BOUNDS

    def __post_init__(self) -> None:
        self.counts = self.counts or [0] * (len(self.bounds) + 1)

    @property
    def count(self) -> int:
        """Number of durations."""
        return sum(self.counts)

    def observe(self, seconds: float) -> None:
        """Count one duration; 0 for one that a clock makes negative, which would look like a new start."""
        seconds = max(0.0, seconds)
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.seconds += seconds

    def buckets(self) -> Iterator[tuple[str, float]]:
        """Yield each bound with the number of durations up to it, as Prometheus counts them."""
        return zip((*map(str, self.bounds), "+Inf"), accumulate(self.counts), strict=True)

    def copy(self) -> DurationHistogram:
        """Return an independent copy."""
        return DurationHistogram(self.counts.copy(), self.seconds, self.bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStatus:
    """What is known of a process from its start on."""

    started_at: float
    feed: str
    owner_id: str
    """Name of this process in the checkpoints that it writes."""
    compiled: bool = False
    """Whether the hot path is compiled rather than plain Python."""
    log_lines_dropped: int = 0
    """Log lines that nobody has read in time."""
    idle_timeout_seconds: float
    """The setting `feed.idle_timeout_seconds`."""
    behind_seconds: float = 90.0
    """How far the position stays behind while live, by the settings (decision 0001)."""
    memory_seconds: float = 259_200.0
    """How long the provider can replay what it has sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownStatus:
    """What a process still knows of the feed when nobody owns it, as without Kafka."""

    revision: int | None = None
    """The committed position, Unix seconds of the provider's clock."""
    committed_at: float | None = None
    """Time of this process's last commit."""
    skew: float | None = None
    """How far the provider's clock is ahead of ours."""
    gaps: int = 0
    """Gaps declared since this process last became owner."""
    declared: tuple[FeedGap, ...] = ()
    """The last ones, those of former owners included."""
    dead_letters: Mapping[DeadLetterCause, int] = field(default_factory=dict)
    """Dead letters written by this process, by their cause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeStatus:
    """What an owner receives from the feed."""

    counters: Counters = field(default_factory=Counters)
    """Those of the last checkpoint: what is not committed yet may come again."""
    dedup_entries: int = 0
    unconverted: str = ""
    """Since when nothing that came could be converted, in words; empty while bets can be."""
    connections: Mapping[str, int] = field(default_factory=dict)
    """Connection attempts of this process by result: `accepted`, `refused`, `failed`."""
    newest: float | None = None
    """The newest settlementTime read on this connection, Unix seconds of the provider's clock."""
    rates: Rates = field(default_factory=Rates)
    eta: float | None = None
    """Estimated time until the bridge has caught up."""
    usage: tuple[LimitUsage, ...] = ()
    next_connect: float | None = None
    """When the provider's limits and the bridge's own pause allow a reconnect."""
    extras: Mapping[str, int] = field(default_factory=dict)
    """Messages with a field that the interface does not document, by the path of the field."""
    fallbacks: int = 0
    """Messages that the transcoder left to pydantic."""
    queue_messages: int = 0
    """Messages read from the socket and not yet handled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryStatus:
    """What an owner writes to Kafka."""

    last_bets: tuple[bytes, ...] | None = None
    """Avro values of the bets committed last, oldest first; None if they are not to be shown."""
    batch_records: int = 0
    """Records not yet committed."""
    transaction_bytes: int | None = None
    """Records of how many bytes are committed at once in a catch-up; None before this process is owner."""
    kafka_rate: float | None = None
    """Bytes a second that get through to Kafka while it is slow, else None."""
    commit_durations: DurationHistogram = field(default_factory=DurationHistogram)
    """Durations of this process's commits."""
    receipt_to_visible: DurationHistogram = field(default_factory=DurationHistogram)
    """Times from the receipt of the first message of a transaction to its commit."""
    settlement_to_visible: DurationHistogram = field(
        default_factory=lambda: DurationHistogram(bounds=LAG_BOUNDS)
    )
    """Times from the newest settlementTime of a transaction to its commit, by the provider's clock."""


class TermStatus(NamedTuple):
    """What a term of leadership contributes to a StatusSnapshot."""

    known: KnownStatus = KnownStatus()
    intake: IntakeStatus = IntakeStatus()
    delivery: DeliveryStatus = DeliveryStatus()


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusSnapshot:
    """A bridge at one moment. Times are Unix seconds of our clock, durations are seconds.

    The defaults describe a process that has just started.
    """

    at: float
    """When the event loop took this snapshot; it takes one every second while it runs."""
    process: ProcessStatus
    state: State | None = None
    """None until the first state is entered."""
    reason: str = ""
    since: float
    """When the state began."""
    until: float | None = None
    """When the wait ends, if known."""
    owner: bool = False
    """Whether this process owns the feed, as far as it knows."""
    group: Group | None = None
    """The members of the owner group; None while they are unknown."""
    refused: bool = False
    """Whether Kafka does not let this process into that group."""
    open_transactions: tuple[OpenTransaction, ...] | None = None
    """Transactions that stay open and hide records of the feed's topics; None while that is unknown."""
    transactions_looked_at: float | None = None
    """When all of these topics were last looked at; None before the first time."""
    known: KnownStatus = KnownStatus()
    intake: IntakeStatus = IntakeStatus()
    delivery: DeliveryStatus = DeliveryStatus()

    @property
    def is_unownable(self) -> bool:
        """Whether it stands by for a feed that it cannot own as things are."""
        return self.state is State.STANDBY and (self.refused or bool(self.group and self.group.gone))

    def revision_age(self, now: float) -> float | None:
        """How far the committed position is behind the provider's clock; None before the first commit."""
        known = self.known
        return None if known.revision is None else now + (known.skew or 0.0) - known.revision

    def lag(self, now: float) -> float | None:
        """How far the newest settlementTime is behind the provider's clock; None before the first message.

        Never negative: the provider may date a bet in the future.
        """
        newest = self.intake.newest
        return None if newest is None else max(0.0, now + (self.known.skew or 0.0) - newest)

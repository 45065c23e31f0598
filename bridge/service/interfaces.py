"""What a term of leadership reaches the world through, each thing by the little that it uses of it.

`bridge.service.app` fills the ports with Kafka, the feed's socket and the clock; a test fills them with
memory, a simulated provider and a clock of its own, and lives through days in seconds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bridge.avro.codec import Codecs
from bridge.clock import AnchoredClock, Clock
from bridge.clock_skew import Skew
from bridge.config import FeedSettings
from bridge.errors import FeedError
from bridge.feed.protocol import Request
from bridge.feed.received import Received
from bridge.kafka.batch import Batch, Record
from bridge.kafka.topics import Topics
from bridge.service.timekeeper import AskTime
from bridge.state.deduplicator import Deduplicator

T = TypeVar("T")
GiveUp = Callable[[], bool]


class Connection(Protocol):
    """An open connection to the feed, as `bridge.feed.client.Connection`."""

    skew: Skew | None
    """What its handshake says of the provider's clock, by our monotonic one."""
    held: bool
    heard_at: float

    @property
    def over(self) -> bool:
        """Whether nothing more will come."""

    @property
    def waiting(self) -> int:
        """How many messages can be taken now."""

    def note_alive(self) -> None:
        """Told at least every second while the event loop is free."""

    def take(self, most: int) -> list[Received]:
        """Up to `most` messages, in order."""

    def reply(self, text: str) -> None:
        """Answer a ping."""

    def end_reason(self) -> FeedError:
        """What ended the connection."""

    async def disconnect(self) -> None:
        """Close it."""


class Writer(Protocol):
    """Transactions into Kafka, as `bridge.kafka.batch_writer.BatchWriter`."""

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Do a job after all others, on the writer's own thread."""

    def open(self) -> bytes | None:
        """Fence all former owners; returns the committed checkpoint."""

    def write(self, batch: Batch) -> None:
        """Hand to the broker what the batch has gained, at once; while no job is under way."""

    def commit(self, batch: Batch, checkpoint: Record) -> None:
        """Commit the batch with the checkpoint that covers it."""

    def close(self, *, abandon: bool = False) -> None:
        """End it."""


class Store(Protocol):
    """What is already in Kafka, as `bridge.state.restore.Store`."""

    def deduplicator(self, since: float, give_up: GiveUp, on_status: Callable[[str], None]) -> Deduplicator:
        """Return a deduplicator that knows all bets and dead letters received since then, Unix seconds.

        `on_status` receives the reason of each delay.
        """


class Ownership(Protocol):
    """Leadership of the feed, as `bridge.kafka.election.LeaderElection`."""

    @property
    def term(self) -> int:
        """Counts the assignments."""

    def holds(self, term: int) -> bool:
        """Whether this process has been the owner without a break since that term began."""

    def confirm(self, give_up: GiveUp) -> bool:
        """Ask the coordinator whether this process still is the owner. May block."""


@dataclass(frozen=True)
class Dependencies:
    """All of it."""

    topics: Topics
    codecs: Codecs
    store: Store
    leadership: Ownership
    writer: Callable[[Callable[[str], None]], Writer]
    """Makes a writer, which tells its troubles to the function that it is given."""
    dial: Callable[[FeedSettings, Request, Callable[[], None], Clock], Awaitable[Connection]]
    """Opens a connection, whose messages are stamped by the clock; one attempt. Raises FeedError."""
    ask_time: AskTime
    """Asks the provider what time it is, without touching the feed."""
    clock: AnchoredClock

"""The interfaces through which a term of leadership reaches Kafka, the feed and the clock.

`bridge.service.app` provides the real ones. Tests provide memory, a simulated provider and virtual time, in
which days pass in seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bridge.avro.codec import Codecs
from bridge.clock import AnchoredClock, Clock
from bridge.clock_skew import Skew
from bridge.config import FeedSettings, Settings
from bridge.dedup.deduplicator import Deduplicator
from bridge.errors import FeedError
from bridge.feed.protocol import HandshakeRequest
from bridge.feed.received import Received
from bridge.kafka.batch import Batch
from bridge.kafka.pace import KafkaPace
from bridge.ownership.batch_writer import Complete, ReadMarker
from bridge.records.checkpoint import Checkpoint, UnprovenReplay
from bridge.records.reach import TopicReach
from bridge.records.topics import Topics
from bridge.service.status import Status
from bridge.service.timekeeper import AskTime

T = TypeVar("T")
GiveUp = Callable[[], bool]
OnDelay = Callable[[str], None]


class FeedConnection(Protocol):
    """An open connection to the feed, as `bridge.feed.client.Connection`."""

    skew: Skew | None
    """The provider's clock in the handshake, minus our monotonic clock."""
    reading_paused: bool
    heard_at: float
    """When data last arrived, monotonic seconds."""

    @property
    def ended(self) -> bool:
        """Whether no more messages will arrive."""

    @property
    def waiting(self) -> int:
        """Number of messages that can be received without waiting."""

    def note_alive(self) -> None:
        """Must be called each second without data: a longer pause counts as one in which nothing was read."""

    def receive_many(self, most: int) -> list[Received]:
        """Return at most `most` messages, in order."""

    def reply(self, text: str) -> None:
        """Answer a ping."""

    def end_reason(self) -> FeedError:
        """Return what ended the connection."""

    async def disconnect(self) -> None:
        """Close it."""


class Writer(Protocol):
    """Transactions into Kafka, as `bridge.ownership.batch_writer.BatchWriter`."""

    pace: KafkaPace
    """How much of a batch Kafka takes at once."""

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Run a job after all others, on the writer's thread."""

    def open(self) -> bytes | None:
        """Fence all former owners. Returns the committed checkpoint."""

    def write(self, batch: Batch) -> None:
        """Produce the batch's new records. No job may be running."""

    def poll(self) -> None:
        """Take delivery reports off a job that waits for many."""

    def commit(
        self, batch: Batch, complete: Complete, *, check_generation: bool = False, divisible: bool = False
    ) -> None:
        """Commit the batch with the checkpoint that covers it, which `complete` makes.

        With `check_generation`, only if the owner group's coordinator still accepts this process. Raises
        TooMuch if it is `divisible` and was not delivered in time.
        """

    def close(self, *, abandon: bool = False) -> None:
        """Close the writer."""


class Ownership(Protocol):
    """Leadership of the feed, as `bridge.ownership.election.LeaderElection`."""

    @property
    def term(self) -> int:
        """Counts the assignments."""

    def holds(self, term: int) -> bool:
        """Whether this process has been the owner without a break since that term began."""

    def confirm(self, give_up: GiveUp) -> bool:
        """Ask the coordinator whether this process still is the owner. May block."""


Connect = Callable[[FeedSettings, HandshakeRequest, Callable[[], None], Clock], Awaitable[FeedConnection]]
"""Opens a connection in one attempt, as `bridge.feed.client.connect`; the clock stamps its messages."""


@dataclass(frozen=True)
class StoredState:
    """How what is in the topics is read: on the writer's thread.

    Each returns early once its GiveUp returns true; its OnDelay receives the reason of each delay.
    """

    judge_topics: Callable[[GiveUp, OnDelay], object]
    """Raises TopologyError if topics would lose data: they may have changed during a standby."""
    agree_on_topics: Callable[[Checkpoint | None, GiveUp, OnDelay], tuple[TopicReach, ...]]
    """Returns the topics with which the feed goes on, as `ReachReader.agree`."""
    restore: Callable[[float, GiveUp, OnDelay, UnprovenReplay | None], Deduplicator]
    """As `PublishedReader.deduplicator`."""
    refuse_other_feeds: ReadMarker
    """As `CheckpointReader.refuse_other_feeds`, with which the writer reads the checkpoint."""


class OwnerChecks(Protocol):
    """What must hold before a connection is opened, and before it is used."""

    async def still_owner(self) -> bool:
        """Ask the group's coordinator whether this process still owns the feed."""

    async def refuse_other_feeds(self) -> object:
        """Raise TopologyError if another feed goes before this one on the same topics."""


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """What a term of leadership depends on."""

    settings: Settings
    status: Status
    owner_id: str
    """Name of this process in the checkpoints that it writes."""
    topics: Topics
    codecs: Codecs
    stored: StoredState
    leadership: Ownership
    leadership_changed: asyncio.Event
    """Set when leadership may have changed."""
    writer: Callable[[OnDelay], Writer]
    """Creates a writer; its argument is called with what blocks a job."""
    connect: Connect
    ask_time: AskTime
    clock: AnchoredClock

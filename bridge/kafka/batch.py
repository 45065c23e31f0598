"""Collects records into a batch, which is committed as a whole, and decides when to commit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from mypy_extensions import mypyc_attr

from bridge.config import BatchSettings

Header = tuple[str, str | bytes | None]
Reached: TypeAlias = Mapping[tuple[str, int], tuple[int, int]]
"""By topic and partition: the offset after the last record, and its timestamp in milliseconds."""

OVERHEAD_BYTES = 100
"""Estimated size of a record beyond its key and value, so that many small records count too."""
BACKLOG = 50
"""Messages at hand at once that double the linger time of live operation. Fewer are produced at once."""
MAX_LINGER_SECONDS = 1.0
"""Upper bound of the linger time: an open transaction hides later records from every reader of the topic."""


@mypyc_attr(acyclic=True)  # spares the garbage collector
class Record:
    """A record to be written to Kafka. `timestamp` is the time of receipt, in milliseconds.

    Without a value it is a tombstone, which deletes its key. Compiled, it is made in a fifth of the time of a
    named tuple.
    """

    def __init__(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        timestamp: int,
        headers: list[Header] | None = None,
        partition: int = -1,
    ) -> None:
        self.topic: Final = topic
        self.key: Final = key
        self.value: Final = value
        self.timestamp: Final = timestamp
        self.headers: Final = headers
        self.partition: Final = partition
        self.first = False
        """Whether it is the first of its batch in its partition: its offset is asked for."""

    def produce(self, produce: Callable[..., None], on_delivery: object = None) -> None:
        """Pass the record to confluent-kafka's `Producer.produce`, which copies it. Raises what it raises."""
        # Keywords would take as long as all the rest. None is for an alias of on_delivery.
        produce(
            self.topic,
            self.value,
            self.key,
            self.partition,
            on_delivery,
            None,
            self.timestamp,
            self.headers,
        )


def batch_linger(limits: BatchSettings, backlog: int) -> float:
    """Return how many seconds a transaction may wait for more messages, given how many were at hand at once.

    In live operation these are few, and latency matters. The more there are, the more the fixed cost of a
    transaction matters: during catch-up, one read of the socket brings a hundred, and a batch is committed
    when it is full.
    """
    live = limits.max_age_ms / 1000
    return max(live, min(live * (1 + (backlog / BACKLOG) ** 2), MAX_LINGER_SECONDS))


def _size(record: Record) -> int:
    return len(record.value or b"") + OVERHEAD_BYTES


@dataclass(slots=True)
class Placed:
    """The records of a batch in one partition."""

    count: int = 0
    newest: int = 0
    """Timestamp of the last one, milliseconds."""


@dataclass(slots=True)
class Batch:
    """Records in write order. A batch is kept until it is committed, so that it can be written again."""

    records: list[Record] = field(default_factory=list)
    bytes: int = 0
    placed: dict[tuple[str, int], Placed] = field(default_factory=dict)
    """By topic and partition, what was added."""
    opened_at: float | None = None
    """Monotonic time at which the first message was handled."""
    received_at: float | None = None
    """When it was received, Unix seconds."""
    settled_at: float | None = None
    """The newest settlementTime of its bets, Unix seconds of the provider's clock."""
    again: int = 0
    """How many records at its begin were committed before and then discarded by Kafka."""

    def add(self, record: Record) -> None:
        """Append a record."""
        self.records.append(record)
        self.bytes += _size(record)
        self._place(record)

    def _place_all(self) -> None:
        self.placed = {}
        for record in self.records:
            self._place(record)

    def _place(self, record: Record) -> None:
        place = (record.topic, record.partition)
        placed = self.placed.get(place)
        record.first = placed is None
        if placed is None:
            self.placed[place] = placed = Placed()
        placed.count += 1
        placed.newest = record.timestamp

    def reached(self, offsets: Mapping[tuple[str, int], int]) -> Reached:
        """Return how far it reaches, given the offset of the first record by topic and partition."""
        return {
            place: (first + self.placed[place].count, self.placed[place].newest)
            for place, first in offsets.items()
            if place in self.placed
        }

    def touch(self, now: float, received_at: float) -> None:
        """Open the batch with a message, whether or not it adds a record. `now` is monotonic."""
        if self.opened_at is None:
            self.opened_at, self.received_at = now, received_at

    def settle(self, at: float) -> None:
        """Note the settlementTime of a bet."""
        if self.settled_at is None or at > self.settled_at:
            self.settled_at = at

    def restore(self, lost: list[Record]) -> None:
        """Put records before all others that were committed before, and then discarded."""
        self.records[:0] = lost
        self.again += len(lost)
        self.bytes += sum(_size(record) for record in lost)
        self._place_all()

    def extend(self, batch: Batch) -> None:
        """Append what was received after this."""
        if self.again == len(self.records):
            self.again += batch.again
        for record in batch.records:
            self.add(record)
        if batch.opened_at is not None and batch.received_at is not None:
            self.touch(batch.opened_at, batch.received_at)
        if batch.settled_at is not None:
            self.settle(batch.settled_at)

    def split(self, most_bytes: int, least: int, last: str) -> Batch | None:
        """Take the first records off, up to so many bytes but at least so many, and none of the topic `last`.

        Returns None where that would be none or all, or fewer.
        """
        head = Batch(opened_at=self.opened_at, received_at=self.received_at)
        for record in self.records:
            enough = head.bytes + _size(record) > most_bytes and len(head.records) >= max(least, 1)
            if enough or record.topic == last:
                break
            head.add(record)
        count = len(head.records)
        if count in (0, len(self.records)) or count < least:
            return None
        del self.records[:count]
        self._place_all()
        self.bytes -= head.bytes
        head.again = min(self.again, count)
        self.again -= head.again
        return head

    def full(self, limits: BatchSettings) -> bool:
        """Whether the batch has reached its limits."""
        return len(self.records) >= limits.max_records or self.bytes >= limits.max_bytes

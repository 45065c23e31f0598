"""The unit of atomicity: what becomes visible together, and when it is time to commit it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from bridge.config import BatchSettings

Header = tuple[str, str | bytes | None]

OVERHEAD_BYTES = 100
"""What a record weighs beyond its key and value, roughly: so that many small ones count too."""


PATIENT_BACKLOG = 50
"""Messages that make a batch wait twice as long as live; it is what a millisecond or two brings."""
MOST_PATIENT_SECONDS = 1.0
"""However many wait: what a transaction holds back, other readers of the topic do not see either."""


class Record(NamedTuple):
    """A record as it goes to Kafka. `timestamp` is the time of receipt, in milliseconds.

    Without a value it is a tombstone: the key is there no more.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[Header] | None = None
    partition: int = -1

    @property
    def content(self) -> bytes:
        """The value of a record that is no tombstone."""
        assert self.value is not None
        return self.value


def patience(limits: BatchSettings, backlog: int) -> float:
    """How old a batch may grow before it is committed, seconds, while so many messages wait to be handled.

    Live, hardly any wait, and each is to be seen soon. The more are waiting, the more a transaction's
    own cost matters and the less its age does: catching up, a batch is committed when it is full.
    """
    live = limits.max_age_ms / 1000
    return max(live, min(live * (1 + backlog / PATIENT_BACKLOG), MOST_PATIENT_SECONDS))


@dataclass(slots=True)
class Batch:
    """Records in the order in which they are written. Kept until they are committed, for a second try."""

    records: list[Record] = field(default_factory=list)
    bytes: int = 0
    messages: int = 0
    """Messages of the feed that this batch settles, pings and duplicates included."""
    opened_at: float | None = None
    """Monotonic time of the first message."""

    def add(self, record: Record) -> None:
        """Append a record."""
        self.records.append(record)
        self.bytes += len(record.value or b"") + OVERHEAD_BYTES

    def touch(self, now: float) -> None:
        """Count a message, whatever became of it. `now` is monotonic."""
        self.messages += 1
        if self.opened_at is None:
            self.opened_at = now

    def full(self, limits: BatchSettings) -> bool:
        """Whether nothing more may be added."""
        return len(self.records) >= limits.max_records or self.bytes >= limits.max_bytes

    def due_at(self, limits: BatchSettings, backlog: int) -> float | None:
        """The monotonic moment at which it is old enough to commit; None while it is empty."""
        return None if self.opened_at is None else self.opened_at + patience(limits, backlog)

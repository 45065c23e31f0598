"""What Kafka has torn: it has committed the checkpoint of a transaction, and discarded some of its records.

It may when two of three brokers are away (decision 0036): a partition without a leader gets no marker, and
the next producer with the transactional id aborts what is open there. The checkpoint counts these records.
The next owner publishes them again, or declares a gap, and counts again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf

from tests.judge.log import COMMITTED, Batch


class Torn:
    """Watches the batches of all topics."""

    def __init__(self) -> None:
        self._sealed: dict[str, float] = {}
        """Producer, with its epoch, to when it wrote its last checkpoint that was committed."""
        self._discarded: list[tuple[str, Batch]] = []
        """Topics, with batches of a producer that the next one has aborted."""

    def watched(self, topic: str, log: Iterable[Batch]) -> Iterator[Batch]:
        """Yield the batches of a partition."""
        for batch in log:
            if batch.fate == COMMITTED and topic == "checkpoints":
                self._sealed[batch.producer] = max(batch.written, self._sealed.get(batch.producer, -inf))
            elif batch.fate == "aborted" and batch.fenced:
                self._discarded.append((topic, batch))
            yield batch

    def records(self, topic: str) -> int:
        """Return how many records of a topic were received before a checkpoint that is there, and are not."""
        return sum(
            batch.records
            for name, batch in self._discarded
            if name == topic and batch.written <= self._sealed.get(batch.producer, -inf)
        )

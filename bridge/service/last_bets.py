"""The bets that were committed last, for the status page if it may show them."""

from __future__ import annotations

from collections import deque
from itertools import islice

from bridge.kafka.batch import Batch

MOST = 10
LARGEST_BYTES = 4 * 1024
"""A larger bet is passed over: ten of them are decoded for the page each second."""


class LastBets:
    """Refers to the last bets of each batch: a few steps a commit, none for a message."""

    def __init__(self, topic: str) -> None:
        self._topic = topic
        self._sent: list[bytes] = []
        self._committed: deque[bytes] = deque(maxlen=MOST)

    @property
    def values(self) -> tuple[bytes, ...]:
        """The Avro values of the bets, oldest first."""
        return tuple(self._committed)

    def sent(self, batch: Batch) -> None:
        """Note a batch whose commit begins."""
        bets = (
            record.value
            for record in reversed(batch.records)
            if record.topic == self._topic and record.value and len(record.value) <= LARGEST_BYTES
        )
        self._sent = list(islice(bets, MOST))[::-1]

    def committed(self) -> None:
        """Take note that the last batch is committed. May be called again."""
        self._committed.extend(self._sent)
        self._sent = []

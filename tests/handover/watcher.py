"""A consumer that notes when each bet has become visible."""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from confluent_kafka import TopicPartition

from tests.harness import Place

PARTITIONS = 6


class Sight(NamedTuple):
    """A bet that has become visible; Unix seconds."""

    at: float
    published: float
    """By the provider."""
    received: float
    """By the bridge that has written it, in whole milliseconds."""


class Watcher:
    """A `read_committed` consumer on its own thread, which notes when each bet is seen first.

    A betId ends with the number of the message that settled the bet first, which says when it was published.
    The client has a connection to each broker, so a killed one delays only what is behind its partitions.
    """

    def __init__(self, place: Place, origin: float, rate: float) -> None:
        self._origin, self._rate = origin, rate
        self._topic = f"{place.prefix}.bets"
        self._consumer = place.consumer(fetch_wait_max_ms=10, reconnect_backoff_max_ms=200)
        self._sights: dict[int, Sight] = {}
        self._newest = dict.fromkeys(range(PARTITIONS), 0.0)
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        """Begin once the topic is there."""
        self._thread.start()

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def since(self, at: float) -> list[Sight]:
        """Return the first sight of each bet published later, and forget those before."""
        with self._lock:
            self._sights = {slot: sight for slot, sight in self._sights.items() if sight.published > at}
            return list(self._sights.values())

    @property
    def oldest(self) -> float:
        """When the newest bet was published that was seen in the partition that is furthest behind."""
        with self._lock:
            return min(self._newest.values())

    def _run(self) -> None:
        self._consumer.assign([TopicPartition(self._topic, p, 0) for p in range(PARTITIONS)])
        while not self._ending.is_set():
            message = self._consumer.poll(0.1)
            if message is None or message.error() is not None:  # a broker that is away comes back
                continue
            now, key, partition = time.time(), message.key(), message.partition()
            assert isinstance(key, bytes)
            slot = int(key.replace(b"-", b"")[16:], 16)
            published = self._origin + slot / self._rate
            received = message.timestamp()[1] / 1000
            with self._lock:
                self._sights.setdefault(slot, Sight(now, published, received))
                self._newest[partition or 0] = max(self._newest[partition or 0], published)
        self._consumer.close()

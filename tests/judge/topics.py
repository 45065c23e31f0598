"""Reads the topics, partition by partition, to the end that they had at the start."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from tests.judge.log import Batch, batches, raw_batches

_SECONDS = 60.0
"""How long a broker may take to answer, an election included."""
_STALL_SECONDS = 20.0
"""After that long without a record a client is replaced."""


_LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]


class Record(NamedTuple):
    """A record as a `read_committed` consumer sees it."""

    partition: int
    offset: int
    timestamp: float
    """Unix seconds."""
    key: bytes | None
    value: bytes | None
    headers: dict[str, bytes]


class Ends(NamedTuple):
    """The ends of a partition."""

    stable: int
    """The last stable offset: behind it `read_committed` consumers see nothing."""
    high: int
    """The high watermark."""


class Topics:
    """The topics of one prefix."""

    def __init__(self, bootstrap_servers: str, prefix: str) -> None:
        self._servers = bootstrap_servers
        self._prefix = prefix
        self._admin = self._client()

    def name(self, topic: str) -> str:
        """Return a topic's whole name."""
        return f"{self._prefix}.{topic}"

    def ends(self, topic: str) -> dict[int, Ends]:
        """Return the ends of each partition. Raises KafkaException if there is no such topic."""
        name, deadline = self.name(topic), time.monotonic() + _SECONDS
        while True:
            try:
                found = self._admin.list_topics(name, timeout=10).topics[name]
                if found.error is not None:
                    raise KafkaException(found.error)
                stable, high = (
                    self._offsets(name, list(found.partitions), level)
                    for level in (IsolationLevel.READ_COMMITTED, IsolationLevel.READ_UNCOMMITTED)
                )
                return {number: Ends(stable[number], high[number]) for number in sorted(stable)}
            except KafkaException:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.5)
                self._admin = self._client()

    def leader(self, topic: str, partition: int) -> tuple[str, int]:
        """Return host and port of a partition's leader. Raises OSError while there is none."""
        name = self.name(topic)
        try:
            found = self._admin.list_topics(name, timeout=10)
        except KafkaException as error:
            self._admin = self._client()
            raise OSError(str(error)) from None
        topics, brokers = found.topics, found.brokers
        broker = brokers.get(topics[name].partitions[partition].leader)
        if broker is None or broker.host is None:
            raise OSError(f"{name}, partition {partition} has no leader")
        return broker.host, broker.port

    def batches(self, topic: str, partition: int, end: int) -> Iterator[Batch]:
        """Yield the batches below an offset that is at most the last stable one (`tests.judge.log`)."""
        return batches(partial(self.leader, topic, partition), self.name(topic), partition, end)

    def opener(self, topic: str, partition: int, stable: int) -> str:
        """Return id and epoch of the producer whose transaction holds the last stable offset."""
        leader = partial(self.leader, topic, partition)
        raw = next(raw_batches(leader, self.name(topic), partition, stable))
        return f"{raw.producer}/{raw.epoch}"

    def _offsets(self, name: str, partitions: list[int], level: IsolationLevel) -> dict[int, int]:
        wanted: Any = {TopicPartition(name, number): _LATEST for number in partitions}
        asked = self._admin.list_offsets(wanted, isolation_level=level, request_timeout=10)
        return {at.partition: answer.result().offset for at, answer in asked.items()}

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[Record]:
        """Yield the committed records of a partition from an offset on, below another one."""
        name, consumer = self.name(topic), self._consumer()
        heard_at = begun_at = time.monotonic()
        try:
            consumer.assign([TopicPartition(name, partition, start)])
            while start < end:
                for message in consumer.consume(500, timeout=0.05):
                    heard_at = begun_at = time.monotonic()
                    offset, error = message.offset() or 0, message.error()
                    if error is not None and error.code() != KafkaError._PARTITION_EOF:
                        continue  # it may pass
                    start = max(start, offset if error else offset + 1)
                    if offset < end and error is None:
                        yield _record(message)
                if time.monotonic() > heard_at + _SECONDS:
                    raise TimeoutError(f"{name}, partition {partition} cannot be read to {end}")
                if time.monotonic() > begun_at + _STALL_SECONDS:  # a client may have lost all its brokers
                    consumer.close()
                    consumer, begun_at = self._consumer(), time.monotonic()
                    consumer.assign([TopicPartition(name, partition, start)])
        finally:
            consumer.close()

    def _client(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._servers, "log_level": 0})

    def _consumer(self) -> Consumer:
        return Consumer(
            {
                "bootstrap.servers": self._servers,
                "group.id": "judge",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": 20,
                "queued.max.messages.kbytes": 16_384,
                "log_level": 0,
            }
        )


def _record(message: Message) -> Record:
    headers: Any = message.headers() or []
    return Record(
        message.partition() or 0,
        message.offset() or 0,
        message.timestamp()[1] / 1000,
        message.key(),
        message.value(),
        dict(headers),
    )

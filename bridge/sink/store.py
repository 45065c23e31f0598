"""What is already in Kafka: the committed checkpoint of a feed, and what the guard has to know."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge import kafka
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.registry import RegistryUnavailable
from bridge.avro.schemas import Schema
from bridge.config import Settings
from bridge.errors import SchemaError, TopologyError
from bridge.log import get
from bridge.sink.deadletter import Kind
from bridge.sink.guard import Guard, fingerprint
from bridge.topics import Topic, Topics

LOOKBACK = 1_000
"""Records from the end of the checkpoint topic at which the search for a feed's own begins."""
RETRY_SECONDS = 0.5
SAMPLE = Kind.SAMPLE.value.encode()
VERSION_ONLY: Schema = {
    "type": "record",
    "name": "SettledBet",
    "namespace": "settlement",
    "fields": [{"name": "settlementVersion", "type": "long"}],
}
"""All that the guard needs of a bet beyond its bytes."""


class Store:
    """Reads the bridge's own topics, `read_committed` and to their very end.

    The end is taken after the writer has fenced its predecessors, so nothing of theirs can come later.
    Each method waits while Kafka is away, and returns early only when `give_up` says so.
    """

    def __init__(self, settings: Settings, topics: Topics, schema_by_id: Callable[[int], Schema]) -> None:
        self._settings = settings
        self._versions = Codec(VERSION_ONLY, READ_ONLY, schema_by_id)
        self._topics = topics

    def checkpoint(self, give_up: Callable[[], bool]) -> bytes | None:
        """The value of the feed's last committed checkpoint, in wire format; None before the first."""
        topic, key = self._topics.checkpoints, self._settings.feed.name.encode()
        found: bytes | None = None

        def take(message: Message) -> None:
            nonlocal found
            if message.key() == key:
                found = message.value()

        def search(admin: AdminClient, consumer: Consumer) -> None:
            nonlocal found
            found = None  # what a try that failed has seen may be outdated
            [end] = kafka.end_offsets(admin, topic.name, 1)
            lookback = LOOKBACK
            while True:
                start = max(0, end - lookback)
                done = kafka.read_to(consumer, [TopicPartition(topic.name, 0, start)], [end], take, give_up)
                if found is not None or start == 0 or not done:
                    return
                lookback *= 10

        self._persist(search, give_up)
        return found

    def guard(self, since: float, give_up: Callable[[], bool]) -> Guard:
        """A guard that knows all bets and dead letters received since then, Unix seconds."""
        guard = Guard()

        def take_bet(message: Message) -> None:
            key, value = message.key(), message.value()
            if isinstance(key, bytes) and value is not None:
                content = fingerprint(value)
                version = self._version(message, value)
                guard.publish(key, version, content, _received(message))

        def take_dead(message: Message) -> None:
            key = message.key()
            if isinstance(key, bytes) and dict(message.headers() or []).get("kind") != SAMPLE:
                guard.bury(key, _received(message))

        def read(admin: AdminClient, consumer: Consumer) -> None:
            nonlocal guard
            guard = Guard()  # a second try begins anew: the order of what it learns matters
            self._replay(admin, consumer, self._topics.bets, since, take_bet, give_up)
            self._replay(admin, consumer, self._topics.deadletters, since, take_dead, give_up)

        self._persist(read, give_up)
        return guard

    def _replay(
        self,
        admin: AdminClient,
        consumer: Consumer,
        topic: Topic,
        since: float,
        take: Callable[[Message], None],
        give_up: Callable[[], bool],
    ) -> None:
        count = kafka.partition_count(admin, topic.name)
        ends = kafka.end_offsets(admin, topic.name, count)
        with kafka.explained(f"finding where to begin in {topic.name}"):
            moment = [TopicPartition(topic.name, p, int(since * 1000)) for p in range(count)]
            starts = consumer.offsets_for_times(moment, timeout=3)
        for start in starts:
            if start.error is not None:
                raise kafka.KafkaUnavailable(f"{topic.name} partition {start.partition}: {start.error.str()}")
            if start.offset < 0:  # nothing as young as that
                start.offset = ends[start.partition]
        kafka.read_to(consumer, starts, ends, take, give_up)

    def _version(self, message: Message, value: bytes) -> int:
        try:
            return int(self._versions.decode(value)["settlementVersion"])
        except SchemaError as error:
            place = f"{message.topic()} partition {message.partition()} offset {message.offset()}"
            raise TopologyError(f"{place} was not written by a bridge: {error}") from None

    def _persist(self, read: Callable[[AdminClient, Consumer], None], give_up: Callable[[], bool]) -> None:
        """Read until it succeeds, each time with clients of its own.

        A client remembers the leader of a partition from before an outage, and does not always unlearn it.
        """
        while not give_up():
            admin, consumer = (
                kafka.admin(self._settings.kafka),
                kafka.reader(self._settings.kafka, name=f"{self._settings.topics.prefix}.reader"),
            )
            try:
                read(admin, consumer)
                return
            except (kafka.KafkaUnavailable, RegistryUnavailable, KafkaException) as error:
                get().debug("reading waits for Kafka or the registry", error=str(error))
                time.sleep(RETRY_SECONDS)
            finally:
                consumer.close()


def _received(message: Message) -> float:
    _, milliseconds = message.timestamp()
    return milliseconds / 1000

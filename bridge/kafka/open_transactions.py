"""Finds transactions that stay open and hide what is committed after them, and says who shows their producer.

A `read_committed` reader sees a partition up to its last stable offset: the first record of the oldest open
transaction. librdkafka reports neither the producers of a partition nor the producer of a record, so the
producer id comes from Kafka's own tool, whose command is returned complete (decision 0036).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.clock import Clock, Instant
from bridge.config import KafkaSettings, Settings
from bridge.errors import BridgeError
from bridge.formatting import format_utc
from bridge.kafka import admin
from bridge.kafka.admin import TopicSeen
from bridge.kafka.blocking import Clients

LOOK_SECONDS = 5.0
"""How often a bridge looks for open transactions. One that is there at two looks is reported."""
PEEKS = 15
"""Attempts to read the first record of a transaction."""
PEEK_SECONDS = 0.2
HANGING_SECONDS = 45
"""A bridge's own transaction is open for at most 30 s, and Kafka ends it within 10 s after that."""


class RecordPlace(NamedTuple):
    """The first record that an open transaction hides."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic} partition {self.partition} from offset {self.offset}"


class OpenTransaction(NamedTuple):
    """A transaction that hides the rest of a partition."""

    place: RecordPlace
    began: float
    """The timestamp of its first record, Unix seconds; if later or unknown, when it was found.

    For display only: a bridge that writes a batch again gives its records the time of their receipt, another
    producer any time.
    """
    age: float
    """For how many seconds this process has seen it open, by the monotonic clock; it is at least as old."""

    def __str__(self) -> str:
        return f"{self.place}, since {format_utc(round(self.began))}"

    @property
    def hangs(self) -> bool:
        """Whether it is too old to end by itself: somebody has to look."""
        return self.age > HANGING_SECONDS


class Look(NamedTuple):
    """What a look has found."""

    open: tuple[OpenTransaction, ...]
    """The transactions that are open now and were so before."""
    unknown: Mapping[str, str]
    """The topics that could not be looked at → why."""
    stable: Mapping[str, Sequence[int]] = MappingProxyType({})
    """The last stable offsets of the others."""
    seen: Mapping[str, TopicSeen | None] = MappingProxyType({})
    """The others themselves, None for those that do not exist."""


def hidden(client: AdminClient, topics: Iterable[str]) -> tuple[list[RecordPlace], Look]:
    """Return where open transactions hide the rest of these topics, and the look without them.

    Those that are written at this moment are included. Raises as `admin.metadata`.
    """
    admin.metadata(client)  # or each topic would wait for brokers that do not answer
    places: list[RecordPlace] = []
    unknown: dict[str, str] = {}
    stables: dict[str, list[int]] = {}
    topics_seen: dict[str, TopicSeen | None] = {}
    for topic in topics:
        try:
            [seen] = admin.topics_seen(client, [topic]).values()
            written = () if seen is None else seen.ends
            stable = admin.end_offsets(client, topic, len(written), visible=True) if written else []
        except BridgeError as error:
            unknown[topic] = str(error)
        else:
            both = enumerate(zip(stable, written, strict=True))
            places.extend(RecordPlace(topic, p, first) for p, (first, end) in both if first < end)
            stables[topic], topics_seen[topic] = stable, seen
    return places, Look((), unknown, stables, topics_seen)


def first_times(settings: Settings, places: Sequence[RecordPlace]) -> dict[RecordPlace, float]:
    """Return the timestamps of the records at these places, Unix seconds, as far as they can be read soon."""
    wanted = {(place.topic, place.partition): place for place in places}
    found: dict[RecordPlace, float] = {}
    # A certificate may be away that is just being replaced; what is not known by then is not needed.
    with suppress(BridgeError, KafkaException), closing(Clients(settings, committed=False)) as reading:
        reading.consumer.assign([TopicPartition(*place) for place in places])
        for _ in range(PEEKS):
            for message in reading.consumer.consume(100, PEEK_SECONDS):
                place = wanted.get((message.topic() or "", message.partition() or 0))
                if message.error() is None and place is not None and message.offset() == place.offset:
                    if (at := message.timestamp()[1]) > 0:  # or the record has none
                        found[place] = at / 1000
                    reading.consumer.pause([TopicPartition(place.topic, place.partition)])
            if len(found) == len(wanted):
                break
    return found


class TransactionWatch:
    """Remembers from look to look which transactions stay open."""

    def __init__(self, settings: Settings, topics: Sequence[str], clock: Clock) -> None:
        self._settings = settings
        self._topics = topics
        self._clock = clock
        self._seen: Mapping[RecordPlace, Instant] = {}
        """When each place was first seen."""
        self._times: Mapping[RecordPlace, float] = {}
        """The timestamps of the first records, as far as they could be read."""

    def look(self, client: AdminClient) -> Look:
        """Find the transactions that are open now and were at the last look. Blocks. Raises as `hidden`."""
        asked = self._clock()
        places, look = hidden(client, self._topics)
        answered = self._clock()
        lasting = [place for place in places if place in self._seen]
        seen = {place: self._seen.get(place, answered) for place in places}
        self._seen = seen | {place: at for place, at in self._seen.items() if place.topic in look.unknown}
        times = {place: self._times[place] for place in lasting if place in self._times}
        if undated := [place for place in lasting if place not in times]:
            times |= first_times(self._settings, undated)
        self._times = times
        began = {place: min(times.get(place, inf), seen[place].wall) for place in lasting}
        ages = {place: asked.monotonic - seen[place].monotonic for place in lasting}
        return look._replace(open=tuple(OpenTransaction(it, began[it], ages[it]) for it in lasting))


def show_producer(settings: KafkaSettings, place: RecordPlace) -> str:
    """Return the command of Kafka's tool that shows the producer of a transaction."""
    tool = f"kafka-transactions.sh --bootstrap-server {shlex.quote(settings.bootstrap_servers or '')}"
    if str(settings.public_properties().get("security.protocol", "plaintext")).lower() != "plaintext":
        tool += " --command-config admin.properties"
    return f"{tool} describe-producers --topic {shlex.quote(place.topic)} --partition {place.partition}"


def what_to_do(settings: KafkaSettings, places: Sequence[RecordPlace]) -> str:
    """Return, in one line, the command for the first place, and where to read on.

    It does not say how to end the transaction: a live bridge's own would lose bets.
    """
    others = " (`bridge doctor` has it for the other partitions)" if len(places) > 1 else ""
    return (
        f"Its producer: `{show_producer(settings, places[0])}`{others}; whose it is and what ends it: "
        '"A transaction hangs" in docs/operations.md'
    )

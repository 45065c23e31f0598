"""Reading topics back, `read_committed`, with clients of its own for each try.

A client remembers the leader of a partition from before an outage, and does not always unlearn it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge import instant, kafka
from bridge.avro.codec import Codec
from bridge.avro.registry import RegistryUnavailable
from bridge.config import Settings
from bridge.errors import SchemaError, TopologyError
from bridge.log import get

RETRY_SECONDS = 0.5
LOOK_SECONDS = 10.0
PATIENCE_SECONDS = 30.0
TOLD_EVERY = 500
"""Records between two reports of progress."""

Progress: TypeAlias = Callable[[int, int], None]
"""Told how many offsets have been passed, of how many."""


def persist(
    settings: Settings, read: Callable[[AdminClient, Consumer], None], give_up: Callable[[], bool]
) -> Exception | None:
    """Read until it succeeds, while Kafka or the registry is away; returns early when `give_up` says so.

    Returns what stood in the way at last, if it did to the end.
    """
    trouble: Exception | None = None
    while not give_up():
        admin, consumer = (
            kafka.admin(settings.kafka),
            kafka.reader(settings.kafka, name=f"{settings.topics.prefix}.reader", prompt=True),
        )
        try:
            read(admin, consumer)
            return None
        except (kafka.KafkaUnavailable, RegistryUnavailable, KafkaException) as error:
            trouble = error
            get().debug("reading waits for Kafka or the registry", error=str(error))
            time.sleep(RETRY_SECONDS)
        finally:
            consumer.close()
    return trouble


def starts_since(consumer: Consumer, topic: str, moment: float, ends: list[int]) -> list[TopicPartition]:
    """Where what came at that moment or later begins, Unix seconds; at its end in `ends` where nothing did.

    Raises as `kafka.explained`.
    """
    with kafka.explained(f"finding a time in {topic}"):
        asked = [TopicPartition(topic, p, round(moment * 1000)) for p in range(len(ends))]
        starts = consumer.offsets_for_times(asked, timeout=LOOK_SECONDS)
    for start in starts:
        if start.error is not None:
            raise kafka.KafkaUnavailable(f"{topic} partition {start.partition}: {start.error.str()}")
        if start.offset < 0:  # nothing as young as that
            start.offset = ends[start.partition]
    return starts


def ends_of(settings: Settings, topic: str) -> dict[int, int]:
    """Partition → its high watermark. Raises as `kafka.end_offsets`."""
    admin = kafka.admin(settings.kafka)
    count = kafka.partition_count(admin, topic)
    return dict(enumerate(kafka.end_offsets(admin, topic, count)))


def read_topic(
    settings: Settings,
    topic: str,
    take: Callable[[Message], None],
    *,
    start: Mapping[int, int] | float | None = None,
    ends: Mapping[int, int] | None = None,
    visible: bool = False,
    progress: Progress | None = None,
    patience: float = PATIENCE_SECONDS,
) -> dict[int, int]:
    """Hand each record of a topic to `take`, once; returns the offset after what was read.

    Begins at the beginning, at the offsets in `start`, or at what came since that moment (Unix seconds).
    Ends exactly at `ends`, or where the topic ends now: behind what an open transaction hides, which is
    waited for; before it where only what is `visible` is asked for.

    A topic that is not there has no records, and `{}` is returned. Raises KafkaUnavailable when nothing
    has come for `patience` seconds, TopologyError when a right is missing, and what `take` raises.
    """
    passage = _Passage(topic, take, start, ends, visible, progress, patience)
    trouble = persist(settings, passage.go_on, passage.is_stuck)
    if not passage.done:
        reason = trouble or "an open transaction may hide what is there"
        raise kafka.KafkaUnavailable(f"{topic}: nothing came for {patience:g} s: {reason}")
    return dict(enumerate(passage.ends))


def decode(codec: Codec, message: Message, value: bytes) -> dict[str, Any]:
    """The datum in a message's value. Raises TopologyError, with the place, when it is no such record."""
    try:
        return codec.decode(value)
    except SchemaError as error:
        raise foreign(message, error) from None


def foreign(message: Message, error: SchemaError) -> TopologyError:
    """The error that says where a record is that cannot be read."""
    place = f"{message.topic()} partition {message.partition()} offset {message.offset()}"
    return TopologyError(f"{place} was not written by a bridge: {error}")


class _Passage:
    """A topic on its way to its end: a second try goes on where the first was interrupted."""

    def __init__(
        self,
        topic: str,
        take: Callable[[Message], None],
        start: Mapping[int, int] | float | None,
        ends: Mapping[int, int] | None,
        visible: bool,
        progress: Progress | None,
        patience: float,
    ) -> None:
        self.ends: list[int] = []
        self.done = False
        self._topic = topic
        self._take = take
        self._start = start
        self._wanted = ends
        self._visible = visible
        self._progress = progress
        self._patience = patience
        self._moved_at = instant.now().steady
        self._next: list[int] = []
        self._begun_at = 0
        self._taken = 0

    def is_stuck(self) -> bool:
        """Whether nothing has come for too long."""
        return instant.now().steady - self._moved_at > self._patience

    def go_on(self, admin: AdminClient, consumer: Consumer) -> None:
        """Read on, to the end unless it is stuck."""
        if not self.ends:
            if not kafka.exists(admin, self._topic, LOOK_SECONDS):
                self.done = True
                return
            self._set_out(admin, consumer)
        starts = [TopicPartition(self._topic, p, offset) for p, offset in enumerate(self._next)]
        self.done = kafka.read_to(consumer, starts, self.ends, self._keep, self.is_stuck)
        if self.done and self._progress is not None:
            whole = sum(self.ends) - self._begun_at
            self._progress(whole, whole)

    def _set_out(self, admin: AdminClient, consumer: Consumer) -> None:
        count = kafka.partition_count(admin, self._topic)
        if self._wanted is not None:
            ends = [self._wanted.get(p, 0) for p in range(count)]
        else:
            ends = kafka.end_offsets(admin, self._topic, count, visible=self._visible)
        if isinstance(self._start, int | float):
            found = starts_since(consumer, self._topic, self._start, ends)
            self._next = [min(start.offset, ends[start.partition]) for start in found]
        else:
            given = self._start or {}
            # An offset beyond the end is one of a topic that has been made anew since.
            self._next = [o if (o := given.get(p, 0)) <= ends[p] else 0 for p in range(count)]
        self.ends = ends
        self._begun_at = sum(self._next)

    def _keep(self, message: Message) -> None:
        partition, offset = message.partition() or 0, message.offset() or 0
        if offset >= self.ends[partition]:
            return
        self._take(message)
        self._next[partition] = offset + 1
        self._moved_at = instant.now().steady
        self._taken += 1
        if self._progress is not None and self._taken % TOLD_EVERY == 0:
            self._progress(sum(self._next) - self._begun_at, sum(self.ends) - self._begun_at)

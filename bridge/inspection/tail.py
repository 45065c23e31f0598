"""Settled bets as they become visible, for as long as somebody looks: also when their topic is made anew."""

from __future__ import annotations

import time
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.registry import Registry
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import SchemaError, TopologyError
from bridge.inspection.readers import ANSWER_SECONDS, Bet, bet_of
from bridge.kafka import admin, clients, topics
from bridge.kafka.errors import KafkaUnavailable, lacks_right
from bridge.kafka.reader import Foreign
from bridge.log import get

LOOK_SECONDS = 1.0
"""So often it is asked whether the topic is still the same. What a new one has got by then is read again."""


def follow_bets(settings: Settings, *, from_beginning: bool, until_end: bool) -> Iterator[Bet | None]:
    """Bets from the topic, `read_committed`; None whenever nothing came for a moment.

    Goes on for ever, or `until_end` of every partition as it is met. Of partitions that are added, and of a
    topic that is made anew, it follows all. Records that are none of ours are passed over, and counted in the
    log at the end. Raises TopologyError when the topic is not there, KafkaUnavailable when no broker answers;
    `until_end` also when none does later on, or the topic is another by then.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    foreign = Foreign()
    with Registry(settings.registry) as registry:
        codec = Codec(load("settled-bet"), READ_ONLY, registry.schema_by_id)
        followed = _Followed(settings, from_beginning, until_end)
        try:
            while followed.open or not until_end:
                came = False
                for message in followed.records():
                    came = True
                    try:
                        bet = bet_of(codec, message)
                    except SchemaError as error:
                        foreign.add(error)
                    else:
                        yield bet
                if not came:
                    yield None
        finally:
            followed.close()
            foreign.tell()


class _Followed:
    """The topic, and how far it is read."""

    def __init__(self, settings: Settings, from_beginning: bool, until_end: bool) -> None:
        self._settings = settings
        self._topic = topics.declare(settings).bets.name
        self._until_end = until_end
        self._admin = admin.look_for(settings.kafka, self._topic)
        self._id = admin.topic_id(self._admin, self._topic)
        """None while it is not there."""
        self._looked_at = time.monotonic()
        count = admin.partition_count(self._admin, self._topic)
        self._ends = admin.end_offsets(self._admin, self._topic, count)
        self._next = [0] * count if from_beginning else [*self._ends]
        """Of each partition, the offset that comes next."""
        self.open = set(range(count))
        """Partitions whose end is not met."""
        self._waited = 0.0
        """Seconds in which no partition came nearer to its end, but for what whoever reads us takes."""
        self._consumer: Consumer | None = None
        self._assign()

    def close(self) -> None:
        """Of no more use."""
        if self._consumer is not None:
            self._consumer.close()

    def records(self) -> Iterator[Message]:
        """Those that come next; none where none came for a moment."""
        self._look()
        assert self._consumer is not None
        began = time.monotonic()
        messages = self._consumer.consume(num_messages=500, timeout=0.2)
        come = any(message.partition() in self.open for message in messages)
        self._waited = 0.0 if come else self._waited + time.monotonic() - began
        for message in messages:
            error, partition, offset = message.error(), message.partition() or 0, message.offset() or 0
            if error is None:
                if self._until_end and partition not in self.open:
                    continue  # that partition goes on beyond the end that was met
                self._next[partition] = offset + 1
                if partition < len(self._ends) and offset >= self._ends[partition] - 1:
                    self.open.discard(partition)
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                self.open.discard(partition)
            elif error.fatal() or lacks_right(error):
                raise TopologyError(f"reading {self._topic}: {error.str()}")
        if self._until_end and self._waited > ANSWER_SECONDS:
            raise KafkaUnavailable(
                f"{self._topic} could not be read to its end: nothing came for {ANSWER_SECONDS:g} s. "
                "No broker answers any more, or there is much to skip that was aborted"
            )

    def _assign(self) -> None:
        """A client remembers of a topic what it was like: each time a new one."""
        self.close()
        self._consumer = clients.reader(self._settings.kafka, name=f"{self._settings.topics.prefix}.reader")
        self._consumer.assign([TopicPartition(self._topic, p, offset) for p, offset in enumerate(self._next)])

    def _look(self) -> None:
        """Whether it is another topic by now, or has more partitions."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        try:
            found = admin.topic_id(self._admin, self._topic)
            count = 0 if found is None else admin.partition_count(self._admin, self._topic)
        except KafkaUnavailable:
            return  # then nothing comes of it, and that is told by whoever waits for it
        finally:
            self._looked_at = time.monotonic()
        if found != self._id and self._until_end:
            raise TopologyError(f"{self._topic} was removed, or made anew, while it was read")
        if found is None:
            if self._id is not None:
                get().warning("the topic is not there any more: waiting for another", topic=self._topic)
                self._id = None
        elif found != self._id:
            get().warning("the topic was made anew: reading it from its beginning", topic=self._topic)
            self._id, self._next = found, [0] * count
            self._assign()
        elif count > len(self._next):
            self._next += [0] * (count - len(self._next))
            self._assign()

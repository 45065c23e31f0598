"""Follow settled bets as they become visible, also when their topic is recreated."""

from __future__ import annotations

import time
from collections.abc import Iterator
from math import inf

from confluent_kafka import Consumer, Message

from bridge.config import Settings
from bridge.errors import TopologyError
from bridge.formatting import format_duration
from bridge.inspection.readers import ANSWER_SECONDS, Bet, bets_of
from bridge.kafka import admin, clients, topics
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import outage
from bridge.kafka.reader import Cursor, Foreign
from bridge.kafka.registry import Registry
from bridge.log import get

LOOK_SECONDS = 1.0
"""Interval between checks whether the topic was recreated; its first records may be read twice."""


def follow_bets(settings: Settings, *, from_beginning: bool, until_end: bool) -> Iterator[Bet | None]:
    """Yield bets from the topic, `read_committed`, and None whenever nothing came for a moment.

    Never ends, and follows added partitions and a recreated topic; with `until_end`, stops after the
    records visible at the start. Records not written by a bridge are skipped and counted in the log. Raises
    TopologyError when the topic is missing, KafkaUnavailable when no broker answers; with `until_end` also
    when that happens later, or the topic is recreated in between.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    foreign = Foreign()
    with Registry(settings.registry) as registry:
        codec = registry.codec("settled-bet")
        followed = _Followed(settings, from_beginning, until_end)
        try:
            while followed.cursor.left:
                came = False
                for bet in bets_of(codec, followed.records(), foreign):
                    came = True
                    yield bet
                if not came:
                    yield None
        finally:
            followed.close()
            foreign.log()


class _Followed:
    """The topic, a consumer of it and its position."""

    def __init__(self, settings: Settings, from_beginning: bool, until_end: bool) -> None:
        self._settings = settings
        self._topic = topics.declare(settings).bets.name
        self._until_end = until_end
        self._admin = admin.look_for(settings.kafka, self._topic)
        self._id = admin.topic_id(self._admin, self._topic)
        """None while the topic is missing."""
        self._looked_at = time.monotonic()
        count = admin.partition_count(self._admin, self._topic)
        starts = [0] * count if from_beginning else admin.end_offsets(self._admin, self._topic, count)
        ends = (
            admin.end_offsets(self._admin, self._topic, count, visible=True) if until_end else [inf] * count
        )
        self.cursor = Cursor(self._topic, starts, ends)
        self._waited = 0.0
        """Seconds of reading without progress."""
        self._consumer = self._connected()

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def records(self) -> Iterator[Message]:
        """Yield the next records; none if none came for a moment."""
        self._look()
        began, reached = time.monotonic(), self.cursor.reached
        messages = self._consumer.consume(num_messages=500, timeout=0.2)
        self._waited += time.monotonic() - began  # without the time that the caller takes
        yield from self.cursor.records(messages)
        if self.cursor.reached != reached:
            self._waited = 0.0
        elif self._until_end and self._waited > ANSWER_SECONDS:
            what = f"{self._topic} could not be read to its end: nothing came for "
            what += f"{format_duration(ANSWER_SECONDS)}. No broker answers any more, or there is much to "
            what += "skip that was aborted"
            raise KafkaUnavailable(outage.explain(what))

    def _connected(self) -> Consumer:
        consumer = clients.reader(self._settings.kafka, name=f"{self._settings.topics.prefix}.reader")
        consumer.assign(self.cursor.left)
        return consumer

    def _go_on(self, starts: list[int]) -> None:
        """Read from these offsets, with a new client: the old one has cached what the topic was like."""
        self.close()
        ends = [0 if self._until_end else inf] * len(starts)
        self.cursor = Cursor(self._topic, starts, self.cursor.ends + ends[len(self.cursor.ends) :])
        self._consumer = self._connected()

    def _look(self) -> None:
        """Check whether the topic was recreated or has more partitions."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        try:
            found = admin.topic_id(self._admin, self._topic)
            count = 0 if found is None else admin.partition_count(self._admin, self._topic)
        except KafkaUnavailable:
            return  # reading it stalls as well, which is reported there
        finally:
            self._looked_at = time.monotonic()
        if found != self._id and self._until_end:
            raise TopologyError(f"{self._topic} was deleted or recreated while it was read")
        if found is None:
            if self._id is not None:
                get().warning("topic deleted, waiting until it is recreated", topic=self._topic)
                self._id = None
        elif found != self._id:
            get().warning("topic recreated, reading it from the beginning", topic=self._topic)
            self._id = found
            self._go_on([0] * count)
        elif (added := count - len(self.cursor.places)) > 0:
            self._go_on([*(place.offset for place in self.cursor.places), *[0] * added])

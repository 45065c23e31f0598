"""The messages of a topic, `read_committed`, to its end or for ever, even when the topic is recreated."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime, timedelta
from math import inf
from threading import Event
from typing import Final, Literal, TypeAlias

from confluent_kafka import Message, TopicPartition

from bridge import clock
from bridge.config import Settings
from bridge.errors import SettingsError, TopologyError
from bridge.formatting import format_duration
from bridge.kafka import admin, clients
from bridge.kafka.cursor import Cursor
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import outage_of
from bridge.kafka.reader import IN_VAIN_SECONDS, cursor_over
from bridge.log import get
from bridge.reader.records import Snapshot

Start: TypeAlias = Literal["start", "end"] | datetime | timedelta | Mapping[int, int] | Snapshot
"""Where to begin: the first record, the end, the first record written since a time or within an age, an
offset of each partition (the first of those not named), or where a snapshot of the topic ends."""
Until: TypeAlias = Literal["end"] | Mapping[int, int] | Snapshot | None
"""Where to stop: what is visible at the start, an offset of each partition, or where a snapshot ends. None
for never: follow the topic."""

RETRY_SECONDS: Final = 1.0
LOOK_SECONDS: Final = 1.0
"""Interval between checks whether the topic was recreated; its first records may be read twice."""
POLL_SECONDS: Final = 0.2


class Source:
    """Reads one topic, by its name without the prefix, with a consumer of its own. Close it after use.

    Raises SettingsError for a start or an end that the topic does not have, TopologyError when the topic or a
    right is missing, KafkaUnavailable when no broker answers.
    """

    def __init__(self, settings: Settings, name: str, start: Start, until: Until) -> None:
        settings.require("kafka.bootstrap_servers")
        self._settings = settings
        self.topic = topic = f"{settings.topics.prefix}.{name}"
        self._outage = outage_of(settings.kafka)
        self._follows = until is None
        self._admin = admin.require_topic(settings.kafka, topic)
        self._id = admin.topic_id(self._admin, topic)
        self.recreated = 0
        """How often the topic was recreated: what comes is of another topic than what came."""
        self._is_missing = False
        """Whether no broker knew the topic at the last look."""
        self._looked_at = time.monotonic()
        self._held: dict[int, TopicPartition] = {}
        """Partitions of which nothing is read for now."""
        self._waited = 0.0
        """Seconds of reading without progress."""
        ends = self._ends(until)
        self.cursor = cursor_over(topic, self._starts(start, len(ends)), ends)
        self._begun_at = self.cursor.reached
        self._consumer = self._client(self.cursor)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    @property
    def ended(self) -> bool:
        """Whether the end was reached."""
        return not self.cursor.left

    @property
    def progress(self) -> tuple[int, int]:
        """The offsets passed, and their total to the end."""
        begun = self._begun_at
        return self.cursor.reached - begun, int(sum(self.cursor.ends)) - begun

    def messages(self, seconds: float = POLL_SECONDS) -> Iterator[Message]:
        """Yield the next messages; none if none came within `seconds`."""
        self._look()
        if (reason := self._consumer.stranded) and self._replace(self.cursor):
            get().warning("Kafka client is replaced", topic=self.topic, reason=reason)
        began, reached = time.monotonic(), self.cursor.reached
        messages = self._consumer.consume(num_messages=2000, timeout=seconds)
        self._waited += time.monotonic() - began  # without the time that the caller takes
        yield from self.cursor.records(messages)
        if self.cursor.reached != reached or self._outage.throttled:
            self._waited = 0.0
        elif not self._follows and self._waited > IN_VAIN_SECONDS:
            what = f"{self.topic} could not be read to its end: nothing came for "
            what += f"{format_duration(IN_VAIN_SECONDS)}. No broker answers any more, or there are many "
            what += "aborted records to skip"
            raise KafkaUnavailable(self._outage.explain(what))

    def hold(self, place: TopicPartition) -> None:
        """Read no more of a partition for now."""
        self._held[place.partition] = place
        self._consumer.pause([place])

    def go_on(self, place: TopicPartition) -> None:
        """Go on with a partition that was held."""
        del self._held[place.partition]
        self._consumer.resume([place])

    def _ends(self, until: Until) -> list[float]:
        count = admin.partition_count(self._admin, self.topic)
        if until is None:
            return [inf] * count
        # Of a transaction whose end is seen in one partition, the others may be a moment behind.
        last_ones = admin.end_offsets(self._admin, self.topic, count, visible=until == "end")
        if until == "end":
            return [float(end) for end in last_ones]
        wanted = self._offsets(until, count)
        ends = [float(wanted.get(p, 0)) for p in range(count)]
        for partition, (end, last) in enumerate(zip(ends, last_ones, strict=True)):
            if end > last:
                raise SettingsError(
                    f"{self.topic} partition {partition} cannot be read up to offset {end:.0f}: "
                    f"it ends at {last}"
                )
        return ends

    def _starts(self, start: Start, count: int) -> list[int]:
        if start == "start":
            return [0] * count
        if start == "end":  # what an open transaction hides becomes visible after it
            return admin.end_offsets(self._admin, self.topic, count, visible=True)
        written = admin.end_offsets(self._admin, self.topic, count)
        if isinstance(start, datetime | timedelta):
            return admin.offsets_since(self._admin, self.topic, _moment(start), written)
        if isinstance(start, str):
            raise SettingsError(f"{self.topic} cannot be read from {start!r}: give a datetime or a timedelta")
        wanted = self._offsets(start, count)
        for partition, offset in wanted.items():
            if not 0 <= offset <= written[partition]:
                raise SettingsError(
                    f"{self.topic} partition {partition} has no offset {offset}: "
                    f"it ends at {written[partition]}"
                )
        return [wanted.get(p, 0) for p in range(count)]

    def _offsets(self, given: Mapping[int, int] | Snapshot, count: int) -> Mapping[int, int]:
        if isinstance(given, Snapshot):
            if not self.topic.endswith(f".{given.job}"):
                raise SettingsError(f"{self.topic} has no snapshots of {given.job}")
            given = given.ends
        if unknown := sorted(p for p in given if not 0 <= p < count):
            raise SettingsError(f"{self.topic} has no partition {unknown[0]}: it has {count}")
        return given

    def _replace(self, cursor: Cursor) -> bool:
        """Read on from a cursor with a new client. Return whether one could be made, else keep the old."""
        try:
            consumer = self._client(cursor)
        except KafkaUnavailable as error:  # such as a certificate that is just being replaced
            get().warning("Kafka client cannot be replaced yet", topic=self.topic, reason=str(error))
            time.sleep(RETRY_SECONDS)
            return False
        self._consumer.close()
        self._consumer, self.cursor = consumer, cursor
        return True

    def _client(self, cursor: Cursor) -> clients.WatchedConsumer:
        name = f"{self._settings.topics.prefix}.reader"
        consumer = clients.reader(self._settings.kafka, name=name, prompt=not self._follows)
        try:
            clients.warm_up(consumer, self.topic)
            consumer.assign(cursor.left)
            if self._held:
                consumer.pause([*self._held.values()])
        except BaseException:
            consumer.close()
            raise
        return consumer

    def _look(self) -> None:
        """Check whether the topic was recreated or has more partitions."""
        if time.monotonic() - self._looked_at < LOOK_SECONDS:
            return
        try:
            found = admin.topic_id(self._admin, self.topic)
            count = 0 if found is None else admin.partition_count(self._admin, self.topic)
            answered = True
        except KafkaUnavailable:
            found, count, answered = None, 0, False  # reading it stalls as well, which is reported there
        self._looked_at = time.monotonic()
        if not answered:  # not while the error is handled (decision 0009)
            with suppress(KafkaUnavailable):  # such as a certificate that is just being replaced
                self._admin = clients.admin(self._settings.kafka)  # it may have lost its brokers for good
            return
        was_missing, self._is_missing = self._is_missing, found is None
        # One answer says little: a broker that has just started may not know of it yet.
        if not self._follows and (was_missing if found is None else found != self._id):
            raise TopologyError(f"{self.topic} was deleted or recreated while it was read")
        if found is None:
            if not was_missing:
                get().warning("topic deleted, waiting until it is recreated", topic=self.topic)
        elif found != self._id:
            # The old client has cached what the topic was like.
            if self._replace(cursor_over(self.topic, [0] * count, [inf] * count)):
                get().warning("topic recreated, reading it from the beginning", topic=self.topic)
                self._id = found
                self.recreated += 1
        elif (added := count - len(self.cursor.places)) > 0:
            starts = [*(place.offset for place in self.cursor.places), *[0] * added]
            ends = [*self.cursor.ends, *[inf if self._follows else 0.0] * added]
            self._replace(cursor_over(self.topic, starts, ends))


def polls(
    settings: Settings, name: str, start: Start, until: Until, stop: Event | None
) -> Generator[Iterator[Message], None, None]:
    """Yield the messages of each poll, to the end or until another thread has set `stop`; to be closed."""
    with closing(Source(settings, name, start, until)) as source:
        while not source.ended and not (stop and stop.is_set()):
            yield source.messages()


def _moment(start: datetime | timedelta) -> float:
    """Return a time in Unix seconds. Raises SettingsError for a time without a zone."""
    if isinstance(start, timedelta):
        return clock.now().wall - start.total_seconds()
    if start.tzinfo is None:
        raise SettingsError(f"{start.isoformat()} has no zone: give datetime a tzinfo, such as datetime.UTC")
    return start.timestamp()

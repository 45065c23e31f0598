"""From where to where a topic is read."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from datetime import datetime, timedelta
from threading import Event
from typing import Literal, TypeAlias

from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from bridge import clock
from bridge.config import Settings
from bridge.errors import SettingsError
from bridge.kafka import admin
from bridge.kafka.reader import IN_VAIN_SECONDS, TopicScan
from bridge.kafka.topic_watch import TopicWatch
from bridge.reader.records import Snapshot

Start: TypeAlias = Literal["start", "end"] | datetime | timedelta | Mapping[int, int] | Snapshot
"""Where to begin: the first record, the end, the first record written since a time or within an age, an
offset of each partition (the first of those not named), or where a snapshot of the topic ends."""
Until: TypeAlias = Literal["end"] | Mapping[int, int] | Snapshot | None
"""Where to stop: what is visible at the start, an offset of each partition, or where a snapshot ends. None
for never: follow the topic."""


def scan_of(
    settings: Settings, name: str, start: Start, until: Until, watch: TopicWatch | None = None
) -> TopicScan:
    """Return what reads a topic, by its name without the prefix, and notices when it is recreated.

    Raises SettingsError for a start or an end that the topic does not have, TopologyError when the topic or a
    right is missing, KafkaUnavailable when no broker answers.
    """
    settings.require("kafka.bootstrap_servers")
    topic = f"{settings.topics.prefix}.{name}"
    client = admin.require_topic(settings.kafka, topic)
    count = admin.partition_count(client, topic)
    ends = None if until is None else _ends(client, topic, count, until)
    found = TopicScan(
        topic,
        start=_start(client, topic, count, start, ends),
        ends=None if ends is None else dict(enumerate(ends)),
        watch=watch or TopicWatch(follows=until is None),
        stall_seconds=IN_VAIN_SECONDS,
    )
    found.set_out(client)
    return found


def polls(
    settings: Settings, name: str, start: Start, until: Until, stop: Event | None
) -> Generator[Iterator[Message], None, None]:
    """Yield the messages of each poll, to the end or until another thread has set `stop`; to be closed."""
    stops = stop.is_set if stop is not None else lambda: False
    return scan_of(settings, name, start, until).polls(settings, stops)


def _ends(
    client: AdminClient, topic: str, count: int, until: Literal["end"] | Mapping[int, int] | Snapshot
) -> list[int]:
    # Of a transaction whose end is seen in one partition, the others may be a moment behind.
    last_ones = admin.end_offsets(client, topic, count, visible=until == "end")
    if until == "end":
        return last_ones
    wanted = _offsets(topic, until, count)
    for partition, end in wanted.items():
        if end > last_ones[partition]:
            raise SettingsError(
                f"{topic} partition {partition} cannot be read up to offset {end}: "
                f"it ends at {last_ones[partition]}"
            )
    return [wanted.get(partition, 0) for partition in range(count)]


def _start(
    client: AdminClient, topic: str, count: int, start: Start, ends: list[int] | None
) -> Mapping[int, int] | float | None:
    if start == "start":
        return None
    if isinstance(start, datetime | timedelta):
        return _moment(start)
    # What an open transaction hides becomes visible after it.
    written = admin.end_offsets(client, topic, count, visible=start == "end")
    if start == "end":
        return dict(enumerate(written))
    if isinstance(start, str):
        raise SettingsError(f"{topic} cannot be read from {start!r}: give a datetime or a timedelta")
    wanted = _offsets(topic, start, count)
    for partition, offset in wanted.items():
        if not 0 <= offset <= written[partition]:
            raise SettingsError(
                f"{topic} partition {partition} has no offset {offset}: it ends at {written[partition]}"
            )
    return {p: offset if ends is None else min(offset, ends[p]) for p, offset in wanted.items()}


def _offsets(topic: str, given: Mapping[int, int] | Snapshot, count: int) -> Mapping[int, int]:
    if isinstance(given, Snapshot):
        if not topic.endswith(f".{given.job}"):
            raise SettingsError(f"{topic} has no snapshots of {given.job}")
        given = given.ends
    if unknown := sorted(p for p in given if not 0 <= p < count):
        raise SettingsError(f"{topic} has no partition {unknown[0]}: it has {count}")
    return given


def _moment(start: datetime | timedelta) -> float:
    """Return a time in Unix seconds. Raises SettingsError for a time without a zone."""
    if isinstance(start, timedelta):
        return clock.now().wall - start.total_seconds()
    if start.tzinfo is None:
        raise SettingsError(f"{start.isoformat()} has no zone: give datetime a tzinfo, such as datetime.UTC")
    return start.timestamp()

"""Read the settled bets that were received between two times."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterator
from math import inf
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Message

from bridge.config import Settings, age_seconds
from bridge.errors import SettingsError
from bridge.formatting import format_utc, parse_instant
from bridge.inspection.readers import ANSWER_SECONDS, Bet, bets_of
from bridge.kafka import admin, clients, topics
from bridge.kafka.errors import unanswered
from bridge.kafka.reader import Cursor, Foreign, starts_since
from bridge.kafka.registry import Registry

READ_AHEAD_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a partition that are held while its records wait for their turn."""


class Window(NamedTuple):
    """An interval of receipt in Unix milliseconds, from `begin` to before `end`."""

    begin: int
    end: int | None
    """None for the end of the topic."""


def parse_window(begin: str | None, end: str | None, now: float) -> Window:
    """Return the window between two times, each an ISO 8601 time with its zone or an age such as `2h`.

    Without `begin` it starts with the topic, without `end` it ends with the topic; an age counts back from
    `now` (Unix seconds). Raises SettingsError for an invalid time, and unless the first is before the second.
    """
    first = 0.0 if begin is None else max(0.0, _seconds(begin, now))
    last = now if end is None else _seconds(end, now)
    if first >= last:
        raise SettingsError(
            f"--from {begin or format_utc(first)} is not before --to {end or 'now'}: "
            f"{format_utc(first)} and {format_utc(last)}. An age such as 2h is a time ago."
        )
    return Window(round(first * 1000), None if end is None else round(last * 1000))


def _seconds(text: str, now: float) -> float:
    if re.fullmatch(r"\d+[smhd]", text):
        return now - age_seconds(text)
    if (found := parse_instant(text)) is None:
        raise SettingsError(
            f"{text!r} is not a time: give a time with its zone such as 2026-01-31T12:00:00Z, "
            "or an age such as 2h"
        )
    return found


def replay(settings: Settings, window: Window, bet_id: str | None = None) -> Iterator[Bet]:
    """Yield the settled bets received in a window, or every version of one of them, `read_committed`.

    Stops at the last stable offsets of the start, before open transactions. Merges the partitions by time
    of receipt; the versions of a bet keep their order. Searches all partitions for a single bet: its own
    depends on their number when it was written. Skips records not written by a bridge, and counts them in
    the log.

    Raises TopologyError when the topic is not there, KafkaUnavailable when no broker answers.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    topic = topics.declare(settings).bets.name
    client = admin.look_for(settings.kafka, topic)
    ends = admin.end_offsets(client, topic, admin.partition_count(client, topic), visible=True)
    key = None if bet_id is None else bet_id.encode()

    def is_wanted(message: Message) -> bool:
        at = _received(message)
        inside = window.begin <= at and (window.end is None or at < window.end)
        return inside and message.value() is not None and key in (None, message.key())

    foreign = Foreign()
    consumer = clients.reader(settings.kafka, name=f"{settings.topics.prefix}.reader", prompt=True)
    registry = Registry(settings.registry)
    try:
        starts = starts_since(client, consumer, topic, window.begin / 1000, ends)
        # Two owners' clocks may differ: what the second wrote can be older than what the first did. Not by
        # offsets_for_times, which also finds the markers of commits: these may come long after the receipt.
        late = inf if window.end is None else window.end + 2000 * settings.feed.max_clock_skew_seconds
        cursor = Cursor(topic, [start.offset for start in starts], ends)
        partitions = [_records(consumer, cursor, p, late, is_wanted) for p in range(len(ends))]
        yield from bets_of(registry.codec("settled-bet"), heapq.merge(*partitions, key=_received), foreign)
    finally:
        consumer.close()
        registry.close()
        foreign.log()


def _records(
    consumer: Consumer, cursor: Cursor, partition: int, late: float, is_wanted: Callable[[Message], bool]
) -> Iterator[Message]:
    """Yield the wanted records of a partition, up to the first one received at `late` (Unix ms) or after.

    All partitions share one consumer, which reads ahead in one at a time: memory and connections are bounded
    however far the partitions are apart.
    """
    place = cursor.places[partition]
    while place.offset < cursor.ends[partition]:
        consumer.assign([place])
        ahead: list[Message] = []
        size = 0
        while place.offset < cursor.ends[partition] and size < READ_AHEAD_BYTES:
            message = consumer.poll(ANSWER_SECONDS)
            if message is None:
                raise unanswered(f"reading {place.topic}")
            for record in cursor.records([message]):
                if _received(record) >= late:
                    cursor.ends[partition] = place.offset
                elif is_wanted(record):
                    ahead.append(record)
                    size += len(record)
        consumer.unassign()  # or it would go on fetching what the next turn discards
        yield from ahead


def _received(message: Message) -> int:
    return message.timestamp()[1]

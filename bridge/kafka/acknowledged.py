"""Find what Kafka has acknowledged and then discarded: records whose markers it skipped (decision 0036).

Kafka 4.3 writes no marker into a partition that has no leader at that moment. The next marker of the same
producer decides then: a commit makes the records visible, an abort discards them. So after each abort the
partitions are read twice, from where all was well: with and without what was aborted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from confluent_kafka import Message

from bridge.config import Settings
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.reader import TopicScan


class Acknowledged:
    """From which offsets on records of a term may have been discarded. All methods but `offer` may block."""

    def __init__(self, settings: Settings, topics: Sequence[str]) -> None:
        self._settings = settings
        self._starts: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        self._offered: Mapping[str, Sequence[int]] | None = None

    def begin(self) -> None:
        """Begin a term: what others wrote before is not judged. Raises as `admin.high_watermarks`."""
        client = clients.admin(self._settings.kafka)
        for topic in self._starts:
            self._starts[topic] = admin.high_watermarks(client, topic)
        self._offered = None

    def offer(self, stable: Mapping[str, Sequence[int]]) -> None:
        """Take last stable offsets, seen by another thread. They count once a later commit has succeeded."""
        self._offered = stable

    def accept(self) -> None:
        """Take note of a commit: no abort can have preceded it that `discarded` was not asked about."""
        offered, self._offered = self._offered, None
        for topic, offsets in (offered or {}).items():
            if topic in self._starts:
                self._starts[topic] |= dict(enumerate(offsets))

    def discarded(self, kept: Sequence[Record]) -> list[Record]:
        """Return the records that neither readers see nor the writer has `kept` to write again, in order.

        All transactions of this producer have ended. What another's open one hides is not judged yet. Raises
        as `TopicScan.read`.
        """
        identities = {(record.topic, record.key, record.value) for record in kept}
        return [
            record
            for topic, starts in self._starts.items()
            for record in self._discarded_of(topic, starts)
            if (topic, record.key, record.value) not in identities
        ]

    def _discarded_of(self, topic: str, starts: Mapping[int, int]) -> list[Record]:
        offsets: set[tuple[int, int]] = set()
        copies: dict[tuple[object, ...], int] = {}
        """What is visible → the offset of the last copy."""
        lost: dict[tuple[object, ...], Message] = {}

        def see(message: Message) -> None:
            place = _place(message)
            offsets.add(place)
            copies[_identity(message)] = place[1]

        def compare(message: Message) -> None:
            place, identity = _place(message), _identity(message)
            # What was aborted and written again is visible further on.
            if place not in offsets and copies.get(identity, -1) < place[1]:
                lost[identity] = message

        ends = TopicScan(topic, see, start=starts, visible=True).read(self._settings)
        TopicScan(topic, compare, start=starts, ends=ends, committed=False).read(self._settings)
        return [_record(message) for message in lost.values()]


def _place(message: Message) -> tuple[int, int]:
    return message.partition() or 0, message.offset() or 0


def _identity(message: Message) -> tuple[object, ...]:
    """Of a record's content. Not the value itself: there may be a hundred megabytes of them."""
    digest = hashlib.blake2b(message.value() or b"", digest_size=16).digest()
    return message.partition(), message.key(), digest


def _record(message: Message) -> Record:
    return Record(
        message.topic() or "",
        message.key(),
        message.value(),
        message.timestamp()[1],
        list(dict(message.headers() or []).items()) or None,
        message.partition() or 0,
    )

"""Finds what Kafka has acknowledged and then discarded: records whose markers it skipped (decision 0036).

Kafka 4.3 writes no marker into a partition that has no leader at that moment. The next marker of the same
producer decides then: a commit makes the records visible, an abort discards them. So after each abort the
partitions are read twice, from where all was well: with and without what was aborted. A consumer is not told
whose a record is, so the records of each commit are remembered, as hashes.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Mapping, Sequence, Set
from typing import TypeAlias

from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from bridge.config import Settings
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.open_transactions import RecordPlace
from bridge.kafka.reader import TopicScan
from bridge.records.message import place_of

_Identity: TypeAlias = tuple[str, bytes | None, bytes | None]
"""Topic, key and value of a record."""
MARKER_PAUSES = (0.0, 0.1, 0.3, 0.6)
"""Before each look whether the markers of an abort are there, in seconds."""
LAST = 500_000
"""The most records of a topic that are remembered, in 8 bytes each; never less than half as many.

Far fewer are written until each partition has another of them, and with it a marker.
"""


class LostRecordGuard:
    """What was acknowledged in a term, and from which offsets on it may have been discarded.

    `begin` and `find_lost` block.
    """

    def __init__(self, settings: Settings, topics: Sequence[str]) -> None:
        self._settings = settings
        self._starts: dict[str, dict[int, int]] = {topic: {} for topic in topics}
        self._hashes = {topic: array("q") for topic in topics}
        """Python's own, of keys and values. They differ from process to process: nobody can aim at one."""
        self._stable: Mapping[str, Sequence[int]] | None = None

    def begin(self) -> None:
        """Begin a term: what others wrote before is not judged. Raises as `admin.high_watermarks`."""
        client = clients.admin(self._settings.kafka)
        for topic in self._starts:
            self._starts[topic] = admin.high_watermarks(client, topic)
            self._hashes[topic] = array("q")
        self._stable = None

    def note_stable(self, stable: Mapping[str, Sequence[int]]) -> None:
        """Take last stable offsets, seen by another thread. They count once a later commit has succeeded."""
        self._stable = stable

    def note_commit(self, records: Sequence[Record]) -> None:
        """Take note of a commit: no abort can have preceded it that `find_lost` was not asked about."""
        for topic, hashes in self._hashes.items():
            hashes.extend([_hash(record.key, record.value) for record in records if record.topic == topic])
            if len(hashes) > LAST:
                del hashes[: -LAST // 2]
        noted, self._stable = self._stable, None
        for topic, offsets in (noted or {}).items():
            if topic in self._starts:
                starts = self._starts[topic]  # the look may have begun before the term
                starts |= {p: max(offset, starts.get(p, 0)) for p, offset in enumerate(offsets)}

    def find_lost(self, kept: Sequence[Record]) -> list[Record]:
        """Return the acknowledged records that no reader sees and the writer has not `kept`, in order.

        All transactions of this producer were ended. What another's open one hides is not judged yet. Raises
        KafkaUnavailable if a marker of ours is not there yet, or was skipped, and as `TopicScan.read`.
        """
        client = clients.admin(self._settings.kafka)
        to_write = {(record.topic, record.key, record.value) for record in kept}
        return [
            record
            for topic in self._starts
            for record in self._lost_of(client, topic, to_write)
            if (topic, record.key, record.value) not in to_write
        ]

    def _lost_of(self, client: AdminClient, topic: str, to_write: Set[_Identity]) -> list[Record]:
        stable, written = self._ended(client, topic, to_write)
        starts = {p: min(self._starts[topic].get(p, 0), end) for p, end in stable.items()}
        offsets: set[tuple[int, int]] = set()
        copies: dict[tuple[int, int], int] = {}
        """What is visible, by partition and hash → the offset of the last copy."""
        hidden: dict[tuple[int, int], Message] = {}

        def see(message: Message) -> None:
            partition, offset = place_of(message)
            offsets.add((partition, offset))
            copies[partition, _hash(message.key(), message.value())] = offset

        def compare(message: Message) -> None:
            partition, offset = place_of(message)
            content = partition, _hash(message.key(), message.value())
            if offset >= stable[partition]:
                hidden.pop(content, None)  # written again after another's open transaction: not judged yet
                return
            # What was aborted and written again is visible further on.
            if (partition, offset) not in offsets and copies.get(content, -1) < offset:
                hidden.pop(content, None)  # what was written in vain more than once counts where it is last
                hidden[content] = message

        TopicScan(topic, see, start=starts, ends=stable).read(self._settings)
        TopicScan(topic, compare, start=starts, ends=written, committed=False).read(self._settings)
        acknowledged = {content for _, content in hidden}.intersection(self._hashes[topic])
        return [_record(message) for (_, content), message in hidden.items() if content in acknowledged]

    def _ended(
        self, client: AdminClient, topic: str, to_write: Set[_Identity]
    ) -> tuple[dict[int, int], dict[int, int]]:
        """Return up to where all transactions have ended, and the end of what is written.

        Raises KafkaUnavailable if one of ours has not ended.

        Kafka answers an abort before it writes the markers, and it may skip them, as those of a commit.
        """
        written = admin.high_watermarks(client, topic)
        for seconds in MARKER_PAUSES:
            time.sleep(seconds)
            stable = dict(enumerate(admin.end_offsets(client, topic, len(written), visible=True)))
            if all(stable[partition] >= end for partition, end in written.items()):
                return stable, written
        first: list[Message] = []
        ends = {p: offset + 1 if offset < written[p] else offset for p, offset in stable.items()}
        TopicScan(topic, first.append, start=stable, ends=ends, committed=False).read(self._settings)
        for message in first:
            key, value = message.key(), message.value()
            if (topic, key, value) in to_write or _hash(key, value) in self._hashes[topic]:
                where = RecordPlace(topic, *place_of(message))
                raise KafkaUnavailable(f"Kafka has not yet marked the end of a transaction in {where}")
        return stable, written


def _hash(key: bytes | None, value: bytes | None) -> int:
    """Identify a record's content: there may be a hundred megabytes of them."""
    return hash((key, value))


def _record(message: Message) -> Record:
    return Record(
        message.topic() or "",
        message.key(),
        message.value(),
        message.timestamp()[1],
        list(dict(message.headers() or []).items()) or None,
        message.partition() or 0,
    )

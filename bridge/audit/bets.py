"""Judges the bets of the topic, partition by partition, in bounded memory.

For each bet the last version and the hash of its content are kept in a `DigestTable`, 60 bytes a record. A
partition with more than `ROWS` offsets is read in several passes, each of which looks at the bets with some
of the hashes. Every record is judged in exactly one pass.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from math import ceil
from typing import Any

from bridge.audit.findings import MOST_SHOWN, AuditFinding, Findings, Hour, Proof
from bridge.audit.placement import Placement
from bridge.avro.schemas import Fields
from bridge.dedup.digests import SEED, bet_digest, content_digest
from bridge.dedup.hash_table import DigestTable
from bridge.errors import ForeignRecord, SchemaError, SchemaNotFound

ROWS = 2_000_000
"""Most records in the table, 120 MB."""
FIELDS: Fields = {"betId": {}, "settlementVersion": {}, "settlementTime": {}}
"""What is read of a bet; all else is only checked."""
_ROW = struct.Struct("<q16s")
"""Payload of a bet: its last version, the hash of its content."""

_PLACE = struct.Struct("<qq")
"""Payload of a record that cannot be read: its offset, -1 once superseded, and its timestamp."""


def passes_over(offsets: int) -> int:
    """Return in how many passes a partition with this many offsets is read."""
    return max(1, ceil(offsets / ROWS))


class BetsCheck:
    """Judges records of bets. `read` returns the `FIELDS` of one, and raises SchemaError.

    `wanted` are settlementTimes, in microseconds, that must occur; `take` removes those that do.
    """

    def __init__(
        self,
        topic: str,
        partitions: int,
        read: Callable[[bytes], dict[str, Any]],
        findings: Findings,
        wanted: set[int],
    ) -> None:
        self._topic = topic
        self._read_fields = read
        self._findings = findings
        self._wanted = wanted
        self._placement = Placement(partitions)
        self._partition = self._number = 0
        self._passes = 1
        self._table = DigestTable(_ROW.size)
        self._unreadable = DigestTable(_PLACE.size)
        """The records that cannot be read and are the last of their keys so far, by the hash of the key."""
        self._shown: dict[int, AuditFinding] = {}
        """What is told of some of them, at most `MOST_SHOWN` at a time, by their offsets."""
        self.records = 0
        """Readable records."""
        self.first: dict[int, tuple[int, int]] = {}
        """Partition → offset and timestamp of its first record."""

    def begin(self, partition: int, number: int, passes: int) -> None:
        """Begin pass `number`, from 0, of `passes` over a partition."""
        self._partition, self._number, self._passes = partition, number, passes
        self._table = DigestTable(_ROW.size)
        self._placement.begin(partition)

    def take_message(self, message: Any) -> None:
        """Judge a record as Kafka has it. Raises as `take`."""
        self.take(message.key(), message.value(), message.offset() or 0, message.timestamp()[1])

    def take(self, key: bytes | None, value: bytes | None, offset: int, at: int) -> None:
        """Judge a record with its timestamp in Unix milliseconds, if it belongs to this pass."""
        if self._partition not in self.first:
            self.first[self._partition] = offset, at
        digest = bet_digest(key or b"", SEED)
        if self._passes > 1 and int.from_bytes(digest[12:], "little") % self._passes != self._number:
            return
        try:
            bet_id, version, settled_at = self._read(key, value)
        except SchemaError as error:  # before anything is counted: an unavailable registry repeats the call
            self._cannot_read(digest, self._place(Proof.UNREADABLE, str(error), key, offset, at), error)
            return
        assert key is not None
        assert value is not None
        self.records += 1
        hour = self._findings.hour(at)
        hour.bets += 1
        self._wanted.discard(settled_at)
        if len(self._unreadable):
            self._is_superseded(digest)
        if bet_id != key:
            text = f"the value is of the bet {bet_id.decode()}"
            self._findings.violate(self._place(Proof.KEY, text, key, offset, at))
        if not self._placement.right(key, self._partition, at):
            text = "the key belongs to another partition"
            self._placement.keep(self._place(Proof.PARTITION, text, key, offset, at))
        self._compare(digest, version, content_digest(value), hour, (key, offset, at))

    def end(self) -> None:
        """End the pass."""
        table = self._unreadable
        while table.first < table.end:
            offset, at = _PLACE.unpack(table.payload(table.first))
            if table.drop() is not None and offset >= 0:
                self._findings.violate(self._told(offset, at))

    def conclude(self) -> None:
        """End the last partition."""
        self._placement.conclude(self._findings)

    def _read(self, key: bytes | None, value: bytes | None) -> tuple[bytes, int, int]:
        """Return betId, settlementVersion and settlementTime. Raises SchemaError."""
        if not key:
            raise ForeignRecord("it has no key")
        if value is None:
            raise ForeignRecord("a tombstone, which no bridge writes: readers lose the bet")
        found = self._read_fields(value)
        bet_id: str = found["betId"]
        return bet_id.encode("utf-8"), found["settlementVersion"], found["settlementTime"]

    def _compare(
        self, digest: bytes, version: int, content: bytes, hour: Hour, record: tuple[bytes, int, int]
    ) -> None:
        """Compare a record with the one before of the same bet; keep it unless it goes back."""
        if row := self._table.find(digest):
            last, last_content = _ROW.unpack(self._table.payload(row))
            if version < last:
                text = f"version {version} after version {last}"
                self._findings.violate(self._place(Proof.VERSION, text, *record))
                return
            if version == last:
                if content == last_content:
                    text = f"version {version} twice in a row with the same content"
                    self._findings.violate(self._place(Proof.DOUBLED, text, *record))
                    return
                hour.corrections += 1
        self._table.put(digest, _ROW.pack(version, content))

    def _cannot_read(self, digest: bytes, found: AuditFinding, error: SchemaError) -> None:
        if isinstance(error, SchemaNotFound):  # a bet for all we know: a later one may be its repetition
            self._findings.violate(found)
            return
        if row := self._unreadable.find(digest):
            self._shown.pop(_PLACE.unpack(self._unreadable.payload(row))[0], None)
        if len(self._shown) < MOST_SHOWN:
            self._shown[found.offset or 0] = found
        self._unreadable.put(digest, _PLACE.pack(found.offset, found.at))

    def _is_superseded(self, digest: bytes) -> None:
        if row := self._unreadable.find(digest):
            offset, at = _PLACE.unpack(self._unreadable.payload(row))
            if offset >= 0:
                self._unreadable.put(digest, _PLACE.pack(-1, 0))
                found = self._told(offset, at)
                text = f"{found.text} (a later record of the key can be read)"
                self._findings.warn(found._replace(text=text))

    def _told(self, offset: int, at: int) -> AuditFinding:
        """Return what is told of a record that cannot be read."""
        found = self._shown.pop(offset, None)
        return found or self._place(Proof.UNREADABLE, "it cannot be read", None, offset, at)

    def _place(self, proof: Proof, text: str, key: bytes | None, offset: int, at: int) -> AuditFinding:
        name = None if key is None else key.decode("utf-8", "replace")
        return AuditFinding(proof, text, self._topic, self._partition, offset, at, name)

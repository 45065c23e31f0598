"""A translation in half the memory: hundreds of thousands of them wait until all answers are there."""

from __future__ import annotations

from typing import Any

import orjson

from bridge.snapshots.model import Translation


class CompactTranslation:
    """A translation that is not worked on; what it says is unpacked each time."""

    __slots__ = ("_packed",)

    def __init__(self, record: Translation) -> None:
        packed = orjson.dumps([getattr(record, name) for name in Translation.__slots__])
        # What orjson returns may sit in a kilobyte that was taken for it: this is a copy of the right size.
        self._packed = memoryview(packed).tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CompactTranslation) and self.unpack() == other.unpack()

    def unpack(self) -> Translation:
        """What was packed."""
        record = Translation(*orjson.loads(self._packed))
        if record.competitor_ids is not None:
            record.competitor_ids = tuple(record.competitor_ids)
        return record

    @property
    def key(self) -> bytes:
        """The key of its record."""
        return self.unpack().key

    @property
    def asked_as(self) -> str:
        """The name of what is asked about to learn it."""
        return self.unpack().asked_as

    def to_avro(self, snapshot_id: str) -> dict[str, Any]:
        """The datum of the Avro record `Translation`, changed in that snapshot."""
        return self.unpack().to_avro(snapshot_id)

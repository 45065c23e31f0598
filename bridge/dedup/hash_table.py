"""A hash table and a queue in one: rows of one size in insertion order, found by key.

    rows     45 bytes each in `Deduplicator`, in blocks. A row never changes: a key that is put again gets a
             new row at the end, and its older row is skipped when it is dropped. A block is freed with its
             last row. Rows are never moved.
    index    key → row number. Open addressing with linear probing, 8 bytes a slot, in `SEGMENTS` arrays
             chosen by bits of the key. Each is a third to two thirds full and is resized alone, so the
             longest pause is that of one array: a few milliseconds at ten million keys.

A slot holds the row number and a tag, 24 other bits of the key. The tag tells most keys apart without reading
the row, and gives the slot's place when an array is resized or a hole is closed.

Keys must be evenly distributed: digests. Plain Python that mypyc compiles.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_le
from librt.vecs import vec
from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

KEY_BYTES: Final = 16
BLOCK_ROWS: Final = 4096
SEGMENTS: Final = 1024
"""Number of arrays in the index, a power of two up to 2^16."""
SMALLEST: Final = 8
"""Initial number of slots of an array, a power of two."""
_TAG_BITS: Final = 24
_TAG: Final = (1 << _TAG_BITS) - 1
_BITS: Final = (1 << 40) - 1
_EMPTY: Final = 0
"""A slot without a row: rows are numbered from 1."""


class DigestTable:
    """Maps digests of `KEY_BYTES` to payloads of `width` bytes. Rows are numbered from 1, in order."""

    def __init__(self, width: int) -> None:
        self._row_bytes: Final[i64] = KEY_BYTES + width
        self._blocks: dict[int, bytearray] = {}
        self._index = vec[vec[i64]]([_slots(SMALLEST) for _ in range(SEGMENTS)])
        self._used = _slots(SEGMENTS)
        self._keys = 0
        self._found: bytes | None = None
        """The key last looked for, unless its place may have changed since: often it is put next."""
        self._which: i64 = 0
        """The array of this key."""
        self._at: i64 = 0
        """Its place there."""
        self.first = 1
        """Number of the oldest row."""
        self.end = 1
        """Number of the next row."""

    def __len__(self) -> int:
        return self._keys

    def find(self, key: bytes) -> int:
        """Return the row number of a key, 0 if there is none."""
        bits = _bits(key)
        self._which = bits & (SEGMENTS - 1)
        segment = self._index[self._which]
        self._at = self._place(segment, bits >> 16, key)
        self._found = key
        slot: i64 = segment[self._at]
        return slot >> _TAG_BITS

    def payload(self, row: int) -> bytes:
        """Return the payload of a row that `find` returned."""
        number: i64 = row
        begin = number % BLOCK_ROWS * self._row_bytes
        return bytes(self._blocks[number // BLOCK_ROWS][begin + KEY_BYTES : begin + self._row_bytes])

    def put(self, key: bytes, payload: bytes) -> None:
        """Add a row at the end. It replaces the key's earlier one."""
        row: i64 = self.end
        number, at = row // BLOCK_ROWS, row % BLOCK_ROWS * self._row_bytes
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = bytearray(BLOCK_ROWS * self._row_bytes)
        block[at : at + self._row_bytes] = key + payload
        self.end = row + 1
        if key is not self._found:
            self.find(key)
        which, segment = self._which, self._index[self._which]
        added = segment[self._at] == _EMPTY
        segment[self._at] = row << _TAG_BITS | _bits(key) >> 16
        if added:
            self._keys += 1
            self._used[which] += 1
            if self._used[which] * 3 > len(segment) * 2:
                self._resize(which, len(segment) * 2)

    def drop(self) -> bytes | None:
        """Remove the oldest row. Returns its key, or None if the key has a newer row, which stays."""
        row = self.first
        number, begin = row // BLOCK_ROWS, row % BLOCK_ROWS * self._row_bytes
        key = bytes(self._blocks[number][begin : begin + KEY_BYTES])
        bits = _bits(key)
        which = bits & (SEGMENTS - 1)
        segment = self._index[which]
        place = self._place(segment, bits >> 16, key)
        is_last = segment[place] >> _TAG_BITS == row
        if is_last:
            _close(segment, place)
            self._found = None
            self._keys -= 1
            self._used[which] -= 1
            if len(segment) > SMALLEST and self._used[which] * 6 < len(segment):
                self._resize(which, len(segment) // 2)
        self.first = row + 1
        if self.first % BLOCK_ROWS == 0:
            del self._blocks[number]
        return key if is_last else None

    def _place(self, segment: vec[i64], tag: i64, key: bytes) -> i64:
        """Return the key's place in its array, or the empty slot to add it."""
        mask: i64 = len(segment) - 1
        place = tag & mask
        while True:
            slot: i64 = segment[place]
            if slot == _EMPTY:
                return place
            if slot & _TAG == tag:
                row = slot >> _TAG_BITS
                begin = row % BLOCK_ROWS * self._row_bytes
                if self._blocks[row // BLOCK_ROWS][begin : begin + KEY_BYTES] == key:
                    return place
            place = (place + 1) & mask

    def _resize(self, which: int, size: int) -> None:
        mask = size - 1
        resized = _slots(size)
        for slot in self._index[which]:
            if slot != _EMPTY:
                place = slot & mask  # the low bits of a slot are the tag
                while resized[place] != _EMPTY:
                    place = (place + 1) & mask
                resized[place] = slot
        self._index[which] = resized
        self._found = None


def _slots(number: int) -> vec[i64]:
    """Return `number` empty slots."""
    return vec[i64]([_EMPTY] * number)


def _bits(key: bytes) -> i64:
    """Return the 40 bits of a key that the index uses."""
    return read_i64_le(key, 0) & _BITS


def _close(segment: vec[i64], hole: int) -> None:
    """Empty a slot and move later slots up into the hole, so that linear probing still finds them."""
    mask = len(segment) - 1
    place = hole
    while True:
        place = (place + 1) & mask
        slot = segment[place]
        if slot == _EMPTY:
            break
        if (place - slot) & mask >= (place - hole) & mask:  # it belongs at the hole or before it
            segment[hole] = slot
            hole = place
    segment[hole] = _EMPTY

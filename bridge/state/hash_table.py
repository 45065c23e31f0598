"""Rows of one size in the order in which they came, found by key: a hash table and a queue in one.

    rows     44 bytes each in `Deduplicator`, one after the other in blocks. A row is never changed: a key
             that is put again gets a row at the young end, and the older one is passed over when its turn
             comes. A block is given back when its last row is dropped; nothing is ever copied.
    index    key → number of its row. Open addressing with linear probing, 8 bytes a slot, in `SEGMENTS`
             arrays chosen by bits of the key. Each is a third to two thirds full and grows by itself, so
             that the longest pause is that of one: at ten million keys a few milliseconds.

A slot holds the number of the row and 24 other bits of the key. These tell most keys apart without a look
at the row, and say where a slot belongs when an array grows or a hole is closed.

Keys must be evenly distributed: digests. Plain Python that mypyc compiles.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

KEY_BYTES: Final = 16
BLOCK_ROWS: Final = 4096
SEGMENTS: Final = 1024
"""Arrays of the index, a power of two up to 2^16."""
SMALLEST: Final = 8
"""Slots of an array at first, a power of two."""
_TAG_BITS: Final = 24
_TAG: Final = (1 << _TAG_BITS) - 1
_EMPTY: Final = 0
"""A slot without a row: rows are numbered from 1."""


class Table:
    """Payloads of `width` bytes by keys of `KEY_BYTES`. Rows are numbered from 1, in order."""

    def __init__(self, width: int) -> None:
        self._row_bytes: Final[i64] = KEY_BYTES + width
        self._blocks: dict[int, bytearray] = {}
        self._index: list[array[int]] = [array("q", bytes(8 * SMALLEST)) for _ in range(SEGMENTS)]
        self._used = [0] * SEGMENTS
        self._keys = 0
        self.first = 1
        """The number of the oldest row."""
        self.end = 1
        """The number of the next row."""

    def __len__(self) -> int:
        return self._keys

    def find(self, key: bytes) -> int:
        """The number of the key's row, 0 where there is none."""
        bits = _bits(key)
        segment = self._index[bits & (SEGMENTS - 1)]
        slot: i64 = segment[self._place(segment, bits >> 16, key)]
        return slot >> _TAG_BITS

    def payload(self, row: int) -> bytes:
        """The payload of a row that `find` has named."""
        number: i64 = row
        begin = number % BLOCK_ROWS * self._row_bytes
        return bytes(self._blocks[number // BLOCK_ROWS][begin + KEY_BYTES : begin + self._row_bytes])

    def put(self, key: bytes, payload: bytes) -> None:
        """Add a row at the young end. It takes the place of the key's former one."""
        row: i64 = self.end
        number, at = row // BLOCK_ROWS, row % BLOCK_ROWS * self._row_bytes
        block = self._blocks.get(number)
        if block is None:
            block = self._blocks[number] = bytearray(BLOCK_ROWS * self._row_bytes)
        block[at : at + self._row_bytes] = key + payload
        self.end = row + 1
        bits = _bits(key)
        which, tag = bits & (SEGMENTS - 1), bits >> 16
        segment = self._index[which]
        place = self._place(segment, tag, key)
        added = segment[place] == _EMPTY
        segment[place] = row << _TAG_BITS | tag
        if added:
            self._keys += 1
            self._used[which] += 1
            if self._used[which] * 3 > len(segment) * 2:
                self._resize(which, len(segment) * 2)

    def drop(self) -> bytes | None:
        """Remove the oldest row. Returns its key, or None where the key has a younger row, which stays."""
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
            self._keys -= 1
            self._used[which] -= 1
            if len(segment) > SMALLEST and self._used[which] * 6 < len(segment):
                self._resize(which, len(segment) // 2)
        self.first = row + 1
        if self.first % BLOCK_ROWS == 0:
            del self._blocks[number]
        return key if is_last else None

    def _place(self, segment: array[int], tag: i64, key: bytes) -> i64:
        """Where the key is in its array, or would be: an empty slot."""
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
        resized = array("q", bytes(8 * size))
        for slot in self._index[which]:
            if slot != _EMPTY:
                place = slot & mask  # the low bits of a slot are the tag
                while resized[place] != _EMPTY:
                    place = (place + 1) & mask
                resized[place] = slot
        self._index[which] = resized


def _bits(key: bytes) -> i64:
    """The bits of a key that the index looks at: 40 of them."""
    high: i64 = key[0]
    for at in range(1, 5):
        high = high << 8 | key[at]
    return high


def _close(segment: array[int], hole: int) -> None:
    """Empty a slot, and move up what was pushed past it, so that every search still ends where it should."""
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

"""How a hash table numbers its rows, and what memory it takes.

That it is an ordered dictionary is shown in tests/property/test_hash_table.py.
"""

from __future__ import annotations

import tracemalloc
from hashlib import blake2b

import pytest

from bridge.dedup.hash_table import BLOCK_ROWS, KEY_BYTES, DigestTable


def key(name: object) -> bytes:
    """Return an evenly distributed key."""
    return blake2b(str(name).encode(), digest_size=KEY_BYTES).digest()


def test_rows_are_numbered_from_one() -> None:
    table = DigestTable(1)
    table.put(key("a"), b"1")
    table.put(key("b"), b"2")
    assert [table.find(key(name)) for name in "abc"] == [1, 2, 0]
    assert (table.first, table.end) == (1, 3)


@pytest.mark.parametrize("order", [1, -1])
def test_a_hole_is_closed_across_the_end_of_an_array(order: int) -> None:
    # All in one array of eight slots; the 24 bits that begin the key say which: 6, 7, 6, 7 and 0.
    keys = [
        slot.to_bytes(3, "big") + b"\0\0" + bytes([n] * 11) for n, slot in enumerate([6, 7, 6, 7, 0][::order])
    ]
    for gone in range(len(keys)):
        table = DigestTable(1)
        for each in [keys[gone], *keys[:gone], *keys[gone + 1 :]]:
            table.put(each, each[-1:])
        assert table.drop() == keys[gone]
        left = [each for each in keys if each != keys[gone]]
        assert [table.payload(table.find(each)) for each in left] == [each[-1:] for each in left]
        assert table.find(keys[gone]) == 0


def test_a_block_is_freed_with_its_last_row() -> None:
    table = DigestTable(28)
    sizes = []
    tracemalloc.start()
    for n in range(6 * BLOCK_ROWS):
        table.put(key(n), bytes(28))
        if n >= BLOCK_ROWS:
            assert table.drop() == key(n - BLOCK_ROWS)
        if n % BLOCK_ROWS == 0:
            sizes.append(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert max(sizes[2:]) - min(sizes[2:]) < BLOCK_ROWS * (KEY_BYTES + 28)
    assert len(table) == BLOCK_ROWS


def test_the_index_shrinks_with_the_table() -> None:
    table = DigestTable(1)
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    for n in range(20_000):
        table.put(key(n), b"x")
    full, _ = tracemalloc.get_traced_memory()
    for _ in range(19_000):
        table.drop()
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert [n for n in range(19_000, 20_000) if not table.find(key(n))] == []
    assert (after - before) * 3 < full - before

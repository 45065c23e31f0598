"""A large answer is read with little memory: what it keeps, and hardly more."""

from __future__ import annotations

import tracemalloc

import pytest

from bridge.rest.endpoints import Questions
from tests.unit.snapshots.provider import api

COMPETITORS = 12_000
PIECE = 64 << 10
MOST_ABOVE = 1 << 20
"""Bytes of memory above what is kept in the end."""
NAME = "Αθλητικός Σύλλογος Α "


def body() -> bytes:
    """A list of competitors, each character of their names an escape."""
    escaped = NAME.encode("ascii", "backslashreplace").decode()
    item = '{"id":%d,"language":"el","translation":"' + escaped + '%d"}'
    return f"[{','.join(item % (number, number) for number in range(COMPETITORS))}]".encode()


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_long_list_takes_the_memory_of_what_is_kept(spoilt: bool) -> None:
    sent = body()
    if spoilt:
        sent = sent.replace(b"\\u0391 77", b"\\ud83d 77")  # half a pair, in a hundred of them
    assert len(sent) > 1.5 * MOST_ABOVE
    reader = Questions(api()).listed("competitor", "el").reader(64 << 20)
    tracemalloc.start()
    try:
        for start in range(0, len(sent), PIECE):
            assert reader.feed(sent[start : start + PIECE])
        found = reader.answer()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.content is not None
    assert len(found.content) + len(found.flaws) == COMPETITORS
    assert bool(found.flaws) == spoilt
    assert peak - kept < MOST_ABOVE

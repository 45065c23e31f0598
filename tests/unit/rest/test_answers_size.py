"""A large answer is read with little memory: what it keeps, and hardly more. `-s` shows the figures."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time

import pytest

from bridge.rest.endpoints import Questions
from tests.unit.snapshots.provider import api

COMPETITORS = 25_000
PIECE = 64 << 10
MOST_ABOVE = 1 << 20
"""Bytes of memory above what is kept in the end."""
NAME = "Αθλητικός Σύλλογος Α "


def body() -> bytes:
    """A list of competitors, each character of their names an escape."""
    escaped = NAME.encode("ascii", "backslashreplace").decode()
    item = '{"id":%d,"language":"el","translation":"' + escaped + '%d"}'
    return f"[{','.join(item % (number, number) for number in range(COMPETITORS))}]".encode()


def pieces(body: bytes) -> Iterator[bytes]:
    """As they come by a socket."""
    return (body[start : start + PIECE] for start in range(0, len(body), PIECE))


@pytest.mark.parametrize("spoilt", [False, True])
def test_a_long_list_takes_the_memory_of_what_is_kept(spoilt: bool) -> None:
    sent = body()
    if spoilt:
        sent = sent.replace(b"\\u0391 77", b"\\ud83d 77")  # half a pair, in a hundred of them
    assert len(sent) > 3 << 20
    began = process_time()
    reader = Questions(api()).listed("competitor", "el").reader(64 << 20)
    tracemalloc.start()
    try:
        for piece in pieces(sent):
            assert reader.feed(piece)
        found = reader.answer()
        kept, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.content is not None
    assert len(found.content) + len(found.flaws) - (found.more > 0) + found.more == COMPETITORS
    assert bool(found.flaws) == spoilt
    print(
        f"{len(sent) >> 20} MiB: {kept >> 20} MiB kept, {(peak - kept) / (1 << 20):.1f} MiB more at most, "
        f"{process_time() - began:.1f} s"
    )
    assert peak - kept < MOST_ABOVE

"""Keys go where Java's clients send them."""

from __future__ import annotations

import pytest

from bridge.kafka.partitioner import partition_of


@pytest.mark.parametrize(
    ("key", "murmur2"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_a_hash_is_that_of_kafkas_java_client(key: bytes, murmur2: int) -> None:
    assert partition_of(key, 2**31) == murmur2 & 0x7FFFFFFF

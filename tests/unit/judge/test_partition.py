"""The partition of a key, against the bridge's."""

from __future__ import annotations

from bridge.kafka.partitioner import partition_of as by_the_bridge
from tests.judge.partition import partition_of


def test_both_choose_the_same_partitions() -> None:
    keys = [bytes(range(7, 7 + length)) for length in range(80)] + [b"\xff" * n for n in range(9)]
    assert [partition_of(key, 2**31) for key in keys] == [by_the_bridge(key, 2**31) for key in keys]
    assert partition_of(b"abc", 6) == by_the_bridge(b"abc", 6)

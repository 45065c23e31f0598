"""Partitions are merged by time of receipt, however their messages come, and go on where they were left."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from math import inf
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.inspection import merging
from bridge.inspection.merging import Merging
from bridge.kafka.reader import cursor_over
from bridge.reader.source import Source

Times = list[list[int]]
"""By partition, the times of receipt of its messages. Every fifth is a tombstone's."""


class Log:
    """Partitions in memory, of which a few messages come at a time, in an order that is drawn."""

    def __init__(self, times: Times, offsets: dict[int, int], turns: Iterator[int]) -> None:
        self.times, self._turns = times, turns
        starts = [offsets.get(partition, 0) for partition in range(len(times))]
        self.cursor = cursor_over("t", starts, [len(partition) for partition in times])
        self.held: set[int] = set()
        self._next = starts

    @property
    def ended(self) -> bool:
        return not self.cursor.left

    def messages(self, _: float) -> Iterator[Message]:
        free = [place.partition for place in self.cursor.left if place.partition not in self.held]
        assert free, "everything is held back"
        return iter(self.cursor.records(self._come(free[next(self._turns) % len(free)])))

    def _come(self, partition: int) -> list[Message]:
        place = self._next[partition]
        self._next[partition] = min(place + 2, len(self.times[partition]))
        found = [self._message(partition, n) for n in range(place, self._next[partition])]
        if self._next[partition] == len(self.times[partition]):
            end = KafkaError(KafkaError._PARTITION_EOF)
            found.append(Message("t", partition, self._next[partition], error=end))
        return found

    def _message(self, partition: int, offset: int) -> Message:
        at = self.times[partition][offset]
        return Message("t", partition, offset, b"k", b"value" if at % 5 else None, timestamp=(1, at))

    def hold(self, place: TopicPartition) -> None:
        self.held.add(place.partition)

    def go_on(self, place: TopicPartition) -> None:
        self.held.remove(place.partition)


def places(messages: list[Message]) -> list[tuple[Any, Any]]:
    return [(message.partition(), message.offset()) for message in messages]


TIMES = st.lists(st.lists(st.integers(0, 30), max_size=12), min_size=1, max_size=4)
TURNS = st.lists(st.integers(0, 3), min_size=1, max_size=9)


def by_heap(times: Times, begin: int, end: float) -> list[tuple[int, int]]:
    """Partition and offset in the order in which the first of each partition come by their times."""
    wanted = [
        [(at, p, n) for n, at in enumerate(partition) if begin <= at < end]
        for p, partition in enumerate(times)
    ]
    return [(p, n) for _, p, n in heapq.merge(*wanted, key=lambda one: one[0])]


@settings(max_examples=300, deadline=None)
@given(TIMES, TURNS, st.integers(0, 10), st.integers(11, 31), st.integers(0, 12), st.integers(1, 3))
def test_messages_come_by_time_and_go_on_where_they_were_left(
    times: Times, turns: list[int], begin: int, end: int, stop: int, most: int
) -> None:
    most_of_one = 5 + merging.MESSAGE_BYTES
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "BATCH", most)
        patch.setattr(merging, "READ_AHEAD_BYTES", 4 * most_of_one)
        found: list[tuple[Any, Any]] = []
        offsets: dict[int, int] = {}
        for batches in (stop, 10_000):  # the first attempt ends after so many
            log = Log(times, offsets, iter(turns * 1_000))
            whole = Merging(cast(Source, log), begin, end, inf)
            for number, batch in enumerate(whole.batches()):
                found += places(batch)
                offsets |= {p: n + 1 for p, n in places(batch)} | whole.passed()
                assert all(
                    len(lane.messages) <= 6 and lane.size <= 6 * most_of_one for lane in whole._lanes.values()
                )
                if number == batches:
                    break
        assert found == by_heap(times, begin, end)
        assert [offsets.get(p, 0) for p in range(len(times))] == [len(partition) for partition in times]


def test_a_partition_ends_with_what_came_too_late() -> None:
    log = Log([[1, 2, 90, 3], [5, 6]], {}, iter([0, 1] * 20))
    found = [place for batch in Merging(cast(Source, log), 0, 50, 80).batches() for place in places(batch)]
    assert found == [(0, 0), (0, 1), (1, 0), (1, 1)]

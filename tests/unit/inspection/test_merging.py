"""Partitions are merged by time of receipt, however their messages come, and go on where they were left."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from math import inf
from typing import Any

from confluent_kafka import KafkaError, Message, TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.inspection.merging import Merging
from bridge.kafka.reader import cursor_over

Times = list[list[int | None]]
"""By partition, the times of receipt of its messages; None for a tombstone."""


class Log:
    """Partitions in memory, of which a few messages come at a time, in an order that is drawn."""

    def __init__(self, times: Times, offsets: dict[int, int], turns: Iterator[int]) -> None:
        self.times, self._turns = times, turns
        starts = [offsets.get(partition, 0) for partition in range(len(times))]
        self.cursor = cursor_over("t", starts, [len(partition) for partition in times])
        self.held: set[int] = set()
        self._next = starts

    def polls(self) -> Iterator[Iterator[Message]]:
        while self.cursor.left:
            free = [place.partition for place in self.cursor.left if place.partition not in self.held]
            assert free, "everything is held back"
            yield self.cursor.records(self._come(free[next(self._turns) % len(free)]))

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
        value = None if at is None else b"value"
        return Message("t", partition, offset, b"k", value, timestamp=(1, at or 0))

    def hold(self, place: TopicPartition) -> None:
        self.held.add(place.partition)

    def go_on(self, place: TopicPartition) -> None:
        self.held.remove(place.partition)


def places(messages: list[Message]) -> list[tuple[Any, Any]]:
    return [(message.partition(), message.offset()) for message in messages]


TIMES = st.lists(st.lists(st.none() | st.integers(0, 30), max_size=12), min_size=1, max_size=4)
TURNS = st.lists(st.integers(0, 3), min_size=1, max_size=9)


def by_heap(times: Times, begin: int, end: float) -> list[tuple[int, int]]:
    """Partition and offset in the order in which the first of each partition come by their times."""
    wanted = [
        [(at, p, n) for n, at in enumerate(partition) if at is not None and begin <= at < end]
        for p, partition in enumerate(times)
    ]
    return [(p, n) for _, p, n in heapq.merge(*wanted, key=lambda one: one[0])]


@settings(max_examples=300, deadline=None)
@given(TIMES, TURNS, st.integers(0, 10), st.integers(11, 31), st.integers(0, 12))
def test_messages_come_by_time_and_go_on_where_they_were_left(
    times: Times, turns: list[int], begin: int, end: int, stop: int
) -> None:
    found: list[tuple[Any, Any]] = []
    offsets: dict[int, int] = {}
    for batches in (stop, 10_000):  # the first attempt ends after so many
        log = Log(times, offsets, iter(turns * 1_000))
        whole = Merging(log, begin, end, inf, read_ahead=20)  # four messages
        for number, batch in enumerate(whole.batches(log.polls())):
            found += places(batch)
            offsets |= {p: n + 1 for p, n in places(batch)} | whole.passed()
            assert sum(lane.size for lane in whole._lanes.values()) <= 20 * len(times) + 2 * 5 * len(times)
            if number == batches:
                break
    assert found == by_heap(times, begin, end)
    assert [offsets.get(p, 0) for p in range(len(times))] == [len(partition) for partition in times]


def test_a_partition_ends_with_what_came_too_late() -> None:
    log = Log([[1, 2, 90, 3], [5, 6]], {}, iter([0, 1] * 20))
    found = [place for batch in Merging(log, 0, 50, 80).batches(log.polls()) for place in places(batch)]
    assert found == [(0, 0), (0, 1), (1, 0), (1, 1)]


def test_a_partition_that_is_far_ahead_is_held_until_the_others_have_come_as_far() -> None:
    log = Log([[*range(20, 40)], [*range(20)]], {}, iter([0] * 100))
    found = [
        place
        for batch in Merging(log, 0, 50, 80, read_ahead=20).batches(log.polls())
        for place in places(batch)
    ]
    assert found == [*((1, n) for n in range(20)), *((0, n) for n in range(20))]

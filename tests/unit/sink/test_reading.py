"""Each record once, from where to where: whatever interrupts it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from confluent_kafka import TopicPartition

from bridge import kafka
from bridge.config import Settings
from bridge.sink import reading
from bridge.sink.reading import read_topic

SETTINGS = Settings()


class Message(NamedTuple):
    """A record at its place."""

    at: tuple[int, int]

    def partition(self) -> int:
        return self.at[0]

    def offset(self) -> int:
        return self.at[1]


class Closed:
    """A consumer with nothing to do but to be closed."""

    def close(self) -> None:
        pass

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        """One record a second in each partition, from 1970 on; none is younger than 4 s."""
        found = (seconds if (seconds := -(-start.offset // 1000)) < 5 else -1 for start in asked)
        return [TopicPartition("t", start.partition, at) for start, at in zip(asked, found, strict=True)]


class Log:
    """A topic of two partitions with five records each, which breaks down where it is told to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there = True
        self.ends = [5, 5]
        self.breaks = 0
        self.stuck = False
        self.tries = 0
        monkeypatch.setattr(kafka, "admin", lambda _: None)
        self.prompt: list[bool] = []
        monkeypatch.setattr(kafka, "reader", self.reader)
        monkeypatch.setattr(kafka, "exists", lambda *_: self.there)
        monkeypatch.setattr(kafka, "partition_count", lambda *_: len(self.ends))
        monkeypatch.setattr(kafka, "end_offsets", lambda *_, visible: [3, 3] if visible else self.ends)
        monkeypatch.setattr(kafka, "read_to", self.read_to)
        monkeypatch.setattr(reading, "RETRY_SECONDS", 0)

    def reader(self, *_: Any, name: str, prompt: bool = False) -> Closed:
        self.prompt.append(prompt)
        return Closed()

    def read_to(
        self,
        _: Any,
        starts: list[TopicPartition],
        ends: list[int],
        take: Callable[[Any], None],
        give_up: Callable[[], bool],
    ) -> bool:
        """Like the real one it may give more than was asked for."""
        self.tries += 1
        for start in starts:
            for offset in range(start.offset, 5):
                if self.breaks and offset == 2:
                    self.breaks -= 1
                    raise kafka.KafkaUnavailable("on purpose")
                take(Message((start.partition, offset)))
        while self.stuck and not give_up():
            pass
        return not self.stuck


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log(monkeypatch)


def places(*partitions: range) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, offsets in enumerate(partitions) for offset in offsets]


@pytest.mark.parametrize(
    ("asked", "expected", "position"),
    [
        ({}, places(range(5), range(5)), {0: 5, 1: 5}),
        ({"start": {0: 3, 1: 5}}, places(range(3, 5), range(0)), {0: 5, 1: 5}),
        ({"start": {0: 3}}, places(range(3, 5), range(5)), {0: 5, 1: 5}),
        ({"start": {0: 6, 1: 4}}, places(range(5), range(4, 5)), {0: 5, 1: 5}),
        ({"start": 2.5}, places(range(3, 5), range(3, 5)), {0: 5, 1: 5}),
        ({"start": 9.0}, [], {0: 5, 1: 5}),
        ({"start": 4.0, "visible": True}, [], {0: 3, 1: 3}),
        ({"ends": {0: 2, 1: 3}}, places(range(2), range(3)), {0: 2, 1: 3}),
        ({"ends": {0: 2}}, places(range(2), range(0)), {0: 2, 1: 0}),
        ({"visible": True}, places(range(3), range(3)), {0: 3, 1: 3}),
    ],
)
def test_what_is_read_and_how_far(
    log: Log, asked: dict[str, Any], expected: list[tuple[int, int]], position: dict[int, int]
) -> None:
    """By offsets, by time, to given ends; a position beyond the end is one in another topic of that name."""
    taken: list[tuple[int, int]] = []
    assert read_topic(SETTINGS, "t", lambda m: taken.append(m.at), **asked) == position  # type: ignore[attr-defined]
    assert taken == expected


def test_what_was_read_before_an_outage_is_not_read_again(log: Log) -> None:
    """Another try goes on where the last one was interrupted."""
    log.breaks = 3
    taken: list[tuple[int, int]] = []
    read_topic(SETTINGS, "t", lambda m: taken.append(m.at))  # type: ignore[attr-defined]
    assert sorted(taken) == places(range(5), range(5))
    assert log.tries == 4


def test_the_end_of_a_topic_is_told_at_once(log: Log) -> None:
    """A reader that waits for more would lose half a second on each."""
    read_topic(SETTINGS, "t", lambda _: None)
    assert log.prompt == [True]


def test_a_topic_that_is_not_there_has_no_records(log: Log) -> None:
    """Which is no error."""
    log.there = False
    assert read_topic(SETTINGS, "t", lambda _: pytest.fail("there is none")) == {}


def test_an_end_that_is_not_reached_is_told(log: Log) -> None:
    """With what may be the cause."""
    log.stuck = True
    with pytest.raises(kafka.KafkaUnavailable, match=r"^t: nothing came for 0\.05 s: an open transaction"):
        read_topic(SETTINGS, "t", lambda _: None, patience=0.05)
    log.breaks = 1_000_000_000
    with pytest.raises(kafka.KafkaUnavailable, match=r"^t: nothing came for 0\.05 s: on purpose"):
        read_topic(SETTINGS, "t", lambda _: None, patience=0.05)


def test_progress_is_told_in_offsets(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what was to be read, and at the end all of it."""
    monkeypatch.setattr(reading, "TOLD_EVERY", 3)
    told: list[tuple[int, int]] = []
    read_topic(SETTINGS, "t", lambda _: None, start={0: 1}, progress=lambda done, of: told.append((done, of)))
    assert told == [(3, 9), (6, 9), (9, 9), (9, 9)]
    told.clear()
    read_topic(
        SETTINGS,
        "t",
        lambda _: None,
        start=4.0,
        visible=True,
        progress=lambda done, of: told.append((done, of)),
    )
    assert told == [(0, 0)]

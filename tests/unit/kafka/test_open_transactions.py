"""Which open transactions are reported, since when, and with which commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from unittest.mock import MagicMock

import pytest
from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from bridge.clock import Instant
from bridge.config import KafkaSettings, Settings
from bridge.errors import BridgeError, TopologyError
from bridge.kafka import admin, clients, open_transactions
from bridge.kafka.admin import TopicSeen
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.open_transactions import (
    Look,
    OpenTransaction,
    RecordPlace,
    TransactionWatch,
    first_times,
    hidden,
    show_producer,
    what_to_do,
)

FIRST, NEXT, OTHER = RecordPlace("t.bets", 3, 7), RecordPlace("t.bets", 3, 9), RecordPlace("t.gaps", 0, 1)
NOW = 1_790_000_000.0


class World:
    """What is hidden at each look, and the timestamps of records."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hidden: list[RecordPlace] | None = []
        """None while no broker answers."""
        self.unknown: dict[str, str] = {}
        self.times: dict[RecordPlace, float] = {}
        self.peeks = 0
        self.now = Instant(NOW, 0)
        self.takes = 0.0
        """How long a look takes."""
        self.watch = TransactionWatch(Settings(), ["t.bets", "t.gaps"], lambda: self.now)
        monkeypatch.setattr(open_transactions, "hidden", self._hidden)
        monkeypatch.setattr(open_transactions, "first_times", self._first_times)

    def look(self, at: float, wall: float | None = None) -> list[OpenTransaction]:
        """Look at that time, by the monotonic clock; by the wall clock it may be another."""
        self.now = Instant(NOW + (at if wall is None else wall), at)
        return list(self.watch.look(AdminClient({})).open)

    def _hidden(self, *_: object) -> tuple[list[RecordPlace], Look]:
        if self.hidden is None:
            raise KafkaUnavailable("no broker answered")
        self.now = Instant(self.now.wall + self.takes, self.now.monotonic + self.takes)
        return self.hidden, Look((), self.unknown, {"t.bets": [7]})

    def _first_times(self, _: Settings, places: Sequence[RecordPlace]) -> dict[RecordPlace, float]:
        self.peeks += 1
        return {place: self.times[place] for place in places if place in self.times}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_transaction_that_is_there_twice_is_reported(world: World) -> None:
    """Since its first record, which is read once; it is as old as it was seen to be."""
    world.hidden, world.times = [FIRST], {FIRST: NOW - 300}
    assert world.look(0) == []
    assert world.look(10) == [OpenTransaction(FIRST, NOW - 300, 10)]
    assert world.look(20) == [OpenTransaction(FIRST, NOW - 300, 20)]
    assert world.peeks == 1
    world.hidden = []
    assert world.look(30) == []
    world.hidden = [FIRST]
    assert world.look(40) == []


def test_one_transaction_after_the_other_is_none_that_stays(world: World) -> None:
    for at, place in enumerate([FIRST, NEXT, FIRST, NEXT]):
        world.hidden = [place]
        assert world.look(at) == []


@pytest.mark.parametrize("first_record", [-300, 0, 3_600])
def test_a_transaction_hangs_by_the_time_that_it_was_watched(world: World, first_record: float) -> None:
    world.hidden, world.times = [FIRST], {FIRST: NOW + first_record}
    found = [transaction for at in (0, 10, 20, 40, 45) for transaction in world.look(at)]
    assert [transaction.hangs for transaction in found] == [False] * 4
    [hanging] = world.look(46)
    assert hanging.hangs


def test_a_wall_clock_that_is_set_makes_none_older(world: World) -> None:
    world.hidden = [FIRST]
    world.look(0)
    [forward] = world.look(10, wall=3_600)
    [back] = world.look(50, wall=-3_600)
    assert (forward.age, forward.hangs, back.age, back.hangs) == (10, False, 50, True)


def test_a_slow_look_makes_none_older(world: World) -> None:
    world.hidden, world.takes = [FIRST], 8
    world.look(0)
    assert [transaction.age for transaction in world.look(10)] == [2]


def test_a_time_that_is_unknown_or_to_come_is_that_of_the_first_look_until_it_is_read(world: World) -> None:
    world.hidden, world.times = [FIRST, OTHER], {OTHER: NOW - 1}
    world.look(0)
    assert [transaction.began for transaction in world.look(10)] == [NOW, NOW - 1]
    world.times = {FIRST: NOW - 300, OTHER: NOW - 2}
    assert [transaction.began for transaction in world.look(20)] == [NOW - 300, NOW - 1]
    world.look(30)
    assert world.peeks == 2
    world.hidden, world.times = [NEXT], {NEXT: NOW + 3_600}
    world.look(40)
    assert [transaction.began for transaction in world.look(50)] == [NOW + 40]


def test_an_outage_forgets_nothing(world: World) -> None:
    world.hidden = [FIRST]
    world.look(0)
    world.hidden = None
    with pytest.raises(KafkaUnavailable):
        world.look(10)
    world.hidden = [FIRST]
    assert world.look(20) == [OpenTransaction(FIRST, NOW, 20)]


def test_a_topic_that_cannot_be_asked_forgets_nothing(world: World) -> None:
    world.hidden = [FIRST, OTHER]
    world.look(0)
    world.hidden, world.unknown = [OTHER], {"t.bets": "it has no leader"}
    assert world.look(10) == [OpenTransaction(OTHER, NOW, 10)]
    look = world.watch.look(AdminClient({}))
    assert (look.unknown, look.stable) == ({"t.bets": "it has no leader"}, {"t.bets": [7]})
    world.hidden, world.unknown = [FIRST, OTHER], {}
    assert world.look(20) == [OpenTransaction(FIRST, NOW, 20), OpenTransaction(OTHER, NOW, 20)]


SEEN = TopicSeen("id", (9, 5))


class Cluster:
    """Topics of two partitions each, in the first one of which a record is hidden."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.listed = set("abc")
        self.refused: dict[str, BridgeError] = {}
        monkeypatch.setattr(admin, "metadata", lambda _: None)
        monkeypatch.setattr(admin, "end_offsets", self._end_offsets)
        monkeypatch.setattr(admin, "topics_seen", self._topics_seen)

    def _end_offsets(self, _: object, topic: str, count: int, *, visible: bool = False) -> list[int]:
        self._answer(topic)
        return [8 if visible else 9, 5][:count]

    def _topics_seen(self, _: object, topics: list[str]) -> dict[str, TopicSeen | None]:
        for topic in topics:
            self._answer(topic)
        return {topic: SEEN if topic in self.listed else None for topic in topics}

    def _answer(self, topic: str) -> None:
        if topic in self.refused:
            raise self.refused[topic]


@pytest.mark.parametrize("error", [KafkaUnavailable("no leader"), TopologyError("no right")])
def test_a_topic_that_does_not_answer_leaves_the_others(
    monkeypatch: pytest.MonkeyPatch, error: BridgeError
) -> None:
    cluster = Cluster(monkeypatch)
    cluster.refused["b"] = error
    places = [RecordPlace("a", 0, 8), RecordPlace("c", 0, 8)]
    stable = {"a": [8, 5], "c": [8, 5]}
    seen = {"a": SEEN, "c": SEEN}
    assert hidden(AdminClient({}), "abc") == (places, Look((), {"b": str(error)}, stable, seen))


def test_a_topic_that_is_not_listed_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch)
    cluster.listed -= {"a", "b", "c"}
    cluster.refused["b"] = TopologyError("no right to Describe the topic b")
    found, look = hidden(AdminClient({}), "abc")
    assert (found, look.seen) == ([], {"a": None, "c": None})
    assert look.unknown == {"b": "no right to Describe the topic b"}


def test_a_record_without_a_timestamp_is_of_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the year 1969."""

    reader = MagicMock()
    messages = [Message(*FIRST, timestamp=(1, -1)), Message(*OTHER, timestamp=(1, 2_000))]
    reader.consume.return_value = messages
    monkeypatch.setattr(clients, "reader", lambda *_, **__: reader)
    monkeypatch.setattr(clients, "admin", lambda _: None)
    assert first_times(Settings(), [FIRST, OTHER]) == {OTHER: 2.0}


def test_the_command_that_shows_the_producer_is_complete() -> None:
    plain = KafkaSettings(bootstrap_servers="a:1,b:2")
    tool, where = "kafka-transactions.sh --bootstrap-server a:1,b:2", "--topic t.bets --partition 3"
    assert show_producer(plain, FIRST) == f"{tool} describe-producers {where}"
    secured = KafkaSettings.model_validate({"bootstrap_servers": "a:1", "security_protocol": "SASL_SSL"})
    assert shlex.split(show_producer(secured, FIRST))[3:5] == ["--command-config", "admin.properties"]


def test_no_command_that_ends_a_transaction_is_ready_to_paste() -> None:
    plain = KafkaSettings(bootstrap_servers="a:1,b:2")
    assert show_producer(plain, FIRST) in what_to_do(plain, [FIRST])
    assert "bridge doctor" not in what_to_do(plain, [FIRST])
    assert "bridge doctor" in what_to_do(plain, [FIRST, OTHER])
    assert " abort --" not in what_to_do(plain, [FIRST, OTHER])

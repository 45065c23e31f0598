"""Which open transactions are reported, since when, and with which commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import pytest

from bridge.clock import Instant
from bridge.config import KafkaSettings, Settings
from bridge.kafka import clients, open_transactions
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.open_transactions import OpenTransaction, Place, TransactionWatch, commands, how_to_end

FIRST, NEXT, OTHER = Place("t.bets", 3, 7), Place("t.bets", 3, 9), Place("t.gaps", 0, 1)
NOW = 1_790_000_000.0


class World:
    """What is hidden at each look, and the timestamps of records."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.hidden: list[Place] | None = []
        """None while no broker answers."""
        self.times: dict[Place, float] = {}
        self.clients = self.peeks = 0
        self.watch = TransactionWatch(Settings(), ["t.bets", "t.gaps"])
        monkeypatch.setattr(clients, "admin", self._client)
        monkeypatch.setattr(open_transactions, "hidden", self._hidden)
        monkeypatch.setattr(open_transactions, "first_times", self._first_times)

    def look(self, at: float) -> list[OpenTransaction]:
        return list(self.watch.look(Instant(NOW + at, at)))

    def _client(self, _: object) -> object:
        self.clients += 1
        return object()

    def _hidden(self, *_: object) -> list[Place]:
        if self.hidden is None:
            raise KafkaUnavailable("no broker answered")
        return self.hidden

    def _first_times(self, _: Settings, places: Sequence[Place]) -> dict[Place, float]:
        self.peeks += 1
        return {place: self.times[place] for place in places if place in self.times}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    return World(monkeypatch)


def test_a_transaction_that_is_there_twice_is_reported(world: World) -> None:
    """Since its first record; the record is read once."""
    world.hidden, world.times = [FIRST], {FIRST: NOW - 300}
    assert world.look(0) == []
    assert world.look(10) == world.look(20) == [OpenTransaction(FIRST, NOW - 300)]
    assert world.peeks == 1
    world.hidden = []
    assert world.look(30) == []
    world.hidden = [FIRST]
    assert world.look(40) == []


def test_one_transaction_after_the_other_is_none_that_stays(world: World) -> None:
    """As a bridge writes them."""
    for at, place in enumerate([FIRST, NEXT, FIRST, NEXT]):
        world.hidden = [place]
        assert world.look(at) == []


@pytest.mark.parametrize("times", [{}, {FIRST: NOW + 3_600}])
def test_a_time_that_is_unknown_or_to_come_is_that_of_the_first_look(
    world: World, times: dict[Place, float]
) -> None:
    """A foreign producer gives its records any time."""
    world.hidden, world.times = [FIRST, OTHER], times | {OTHER: NOW - 1}
    world.look(0)
    assert world.look(10) == [OpenTransaction(FIRST, NOW), OpenTransaction(OTHER, NOW - 1)]


def test_an_outage_forgets_nothing(world: World) -> None:
    """Afterwards the transaction is as old as it is; the client is a new one."""
    world.hidden = [FIRST]
    world.look(0)
    world.hidden = None
    with pytest.raises(KafkaUnavailable):
        world.look(10)
    world.hidden = [FIRST]
    assert world.look(20) == [OpenTransaction(FIRST, NOW)]
    assert world.clients == 2


def test_the_commands_are_complete() -> None:
    """With servers, topic, partition and offset; with a file of properties where the cluster is secured."""
    plain = KafkaSettings(bootstrap_servers="a:1,b:2")
    tool, where = "kafka-transactions.sh --bootstrap-server a:1,b:2", "--topic t.bets --partition 3"
    describe, abort = f"{tool} describe-producers {where}", f"{tool} abort {where} --start-offset 7"
    assert commands(plain, FIRST) == (describe, abort)
    secured = KafkaSettings.model_validate({"bootstrap_servers": "a:1", "security_protocol": "SASL_SSL"})
    for command in commands(secured, FIRST):
        assert shlex.split(command)[3:5] == ["--command-config", "admin.properties"]
    assert abort in how_to_end(plain, [FIRST])
    assert "bridge doctor" in how_to_end(plain, [FIRST, OTHER])

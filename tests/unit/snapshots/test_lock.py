"""Waiting for one's turn, what is said when it does not come, and when it is over too early."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bridge import clock
from bridge.clock import Instant
from bridge.config import KafkaSettings, Settings
from bridge.errors import NotOwner, TopologyError
from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots import lock as module
from bridge.snapshots.lock import Busy, Lock

SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"))


class Group:
    """A leadership as it is told to be."""

    def __init__(self, settings: Settings, group: str, topic: str, changed: Callable[[], None]) -> None:
        self.group, self.topic, self.changed = group, topic, changed
        self.owner = self.closed = False
        self.refused: str | None = None

    def check(self) -> None:
        if self.refused is not None:
            raise TopologyError(self.refused)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(module, "LeaderElection", Group)
    monkeypatch.setattr(admin, "metadata", lambda _: SimpleNamespace(topics={"settlement.snapshots"}))
    with Lock(SETTINGS, "translations") as made:
        yield made
    assert made.leadership.closed  # type: ignore[attr-defined]


def test_a_job_has_a_group_and_a_place_of_its_own(lock: Any) -> None:
    """The names of jobs under other prefixes are others."""
    assert (lock.leadership.group, lock.leadership.topic) == (
        "settlement.translations.owner",
        "settlement.snapshots",
    )


def test_it_waits_for_its_turn(lock: Any) -> None:
    """Once it has it, it need not wait."""

    def give() -> bool:
        lock.leadership.owner = True
        return False

    assert lock.acquire(None, give)
    assert lock.acquire(0, lambda: False)


class Run:
    """A run that looks after its lock once a second, and a Kafka that may be away."""

    def __init__(self, lock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lock = lock
        self.time = 1_000.0
        self.away = False
        self.looks = 0
        self.topics = {"settlement.snapshots"}
        monkeypatch.setattr(clock, "now", lambda: Instant(0.0, self.time))
        monkeypatch.setattr(admin, "metadata", lambda _: SimpleNamespace(topics=self.look()))

    def look(self) -> set[str]:
        self.looks += 1
        if self.away:
            raise KafkaUnavailable("on purpose")
        return self.topics

    def go_on(self, seconds: int, *, owner: bool, away: bool = False, every: int = 1) -> None:
        """Raises as the lock."""
        self.lock.leadership.owner, self.away = owner, away
        for _ in range(0, seconds, every):
            self.lock.check()
            self.time += every


@pytest.fixture
def run(lock: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    return Run(lock, monkeypatch)


def test_a_run_whose_lock_another_has_does_not_go_on(run: Run) -> None:
    """It knows after half a minute, and has not asked for a broker more often than it must."""
    run.go_on(3_600, owner=True)
    assert run.looks == 0
    run.go_on(30, owner=False)
    with pytest.raises(NotOwner, match=r"^another `bridge translations` has taken over; nothing was publi"):
        run.go_on(1, owner=False)
    assert run.looks == 4


def test_a_lock_whose_topic_is_gone_was_taken_by_nobody(run: Run) -> None:
    """Nobody is assigned a partition of it."""
    run.topics = set()
    run.go_on(10, owner=False)
    with pytest.raises(TopologyError, match=r"the topic settlement\.snapshots is gone"):
        run.go_on(1, owner=False)


def test_a_lock_that_comes_back_is_ours(run: Run) -> None:
    """What was counted before does not count any more."""
    for _ in range(10):
        run.go_on(29, owner=False)
        run.go_on(1, owner=True)


def test_a_kafka_that_is_away_has_given_the_lock_to_nobody(run: Run) -> None:
    """However long: the time begins when it answers again."""
    run.go_on(29, owner=False)
    run.go_on(3_600, owner=False, away=True)
    run.go_on(31, owner=False)
    with pytest.raises(NotOwner):
        run.go_on(3, owner=False)


def test_time_without_a_look_says_little(run: Run) -> None:
    """Kafka may have been away for all but its end, and the answers of the provider late."""
    run.go_on(180, owner=False, every=60)
    with pytest.raises(NotOwner):
        run.go_on(60, owner=False, every=60)


def test_a_right_that_has_gone_is_told(run: Run) -> None:
    """Nobody keeps up the membership then."""
    run.lock.leadership.refused = "on purpose"
    with pytest.raises(TopologyError, match="on purpose"):
        run.go_on(1, owner=True)


def test_another_run_is_told_with_where_to_look(lock: Any) -> None:
    """By the name of its command and of its group."""
    with pytest.raises(Busy, match=r"`bridge translations` is at work.* settlement\.translations\.owner"):
        lock.acquire(0, lambda: False)


def test_without_a_broker_nobody_is_blamed(lock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is assigned anything while Kafka is away."""

    def away(_: object) -> None:
        raise KafkaUnavailable("on purpose")

    monkeypatch.setattr(admin, "metadata", away)
    with pytest.raises(KafkaUnavailable, match="on purpose"):
        lock.acquire(0, lambda: False)


def test_it_stops_waiting_when_it_is_told_to(lock: Any) -> None:
    """However long it was to wait."""
    assert not lock.acquire(None, lambda: True)

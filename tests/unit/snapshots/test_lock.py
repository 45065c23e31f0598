"""Waiting for one's turn, and what is said when it does not come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bridge import kafka
from bridge.config import KafkaSettings, Settings
from bridge.snapshots import lock as module
from bridge.snapshots.lock import Busy, Lock

SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"))


class Group:
    """A leadership as it is told to be."""

    def __init__(self, settings: Settings, group: str, topic: str, changed: Callable[[], None]) -> None:
        self.group, self.topic, self.changed = group, topic, changed
        self.term = 0
        self.closed = False

    @property
    def owner(self) -> bool:
        return self.term > 0

    def holds(self, term: int) -> bool:
        return term == self.term > 0

    def check(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def lock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setattr(module, "Leadership", Group)
    monkeypatch.setattr(kafka, "look_for_broker", lambda _: None)
    with Lock(SETTINGS, "translations") as made:
        yield made
    assert made.leadership.closed  # type: ignore[attr-defined]


def test_a_job_has_a_group_and_a_place_of_its_own(lock: Any) -> None:
    """The names of jobs under other prefixes are others."""
    assert (lock.leadership.group, lock.leadership.topic) == (
        "settlement.translations.owner",
        "settlement.snapshots",
    )


def test_it_is_held_until_it_is_lost(lock: Any) -> None:
    """One that was lost and won again is another one."""

    def give() -> bool:
        lock.leadership.term = 1
        return False

    assert not lock.held
    assert lock.acquire(None, give)
    assert lock.held
    lock.leadership.term = 2
    assert not lock.held
    assert lock.acquire(0, lambda: False)
    assert lock.held


def test_another_run_is_told_with_where_to_look(lock: Any) -> None:
    """By the name of its command and of its group."""
    with pytest.raises(Busy, match=r"`bridge translations` is at work.* settlement\.translations\.owner"):
        lock.acquire(0, lambda: False)


def test_without_a_broker_nobody_is_blamed(lock: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is assigned anything while Kafka is away."""

    def away(_: object) -> None:
        raise kafka.KafkaUnavailable("on purpose")

    monkeypatch.setattr(kafka, "look_for_broker", away)
    with pytest.raises(kafka.KafkaUnavailable, match="on purpose"):
        lock.acquire(0, lambda: False)


def test_it_stops_waiting_when_it_is_told_to(lock: Any) -> None:
    """However long it was to wait."""
    assert not lock.acquire(None, lambda: True)

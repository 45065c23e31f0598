"""Waiting for the lock of a job, the errors of a vain wait, and a lock that is lost during a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from bridge import clock
from bridge.clock import Instant
from bridge.config import KafkaSettings, Settings
from bridge.errors import NotCommitted, NotOwner, TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots import lock
from bridge.snapshots.lock import Busy, Lock

SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"))


class Group:
    """A membership that the test controls."""

    def __init__(self, settings: Settings, group: str, topic: str, changed: Callable[[], object]) -> None:
        assert (group, topic) == ("settlement.translations.owner", "settlement.snapshots")
        self.is_owner = self.closed = False
        self.refused: str | None = None
        self.refusal = ""

    def check(self) -> None:
        if self.refused is not None:
            raise TopologyError(self.refused)

    def confirm(self, _: object) -> bool:
        """The coordinator refuses."""
        self.refused = "on purpose"
        return False

    def close(self) -> None:
        self.closed = True


class Run:
    """A run that checks its lock once a second, and a Kafka that may be unavailable."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stop = threading.Event()
        self.errors: list[str] = []
        self.lock = Lock(SETTINGS, "translations", self.stop, self.errors.append, self._elect)  # type: ignore[arg-type]
        self.time = 1_000.0
        self.away = False
        self.looks = 0
        self.topics = {"settlement.snapshots"}
        monkeypatch.setattr(clock, "now", lambda: Instant(0.0, self.time))
        monkeypatch.setattr(admin, "metadata", self._look)
        monkeypatch.setattr(lock, "POLL_SECONDS", 0.001)

    def go_on(self, seconds: int, *, owner: bool, away: bool = False, every: int = 1) -> None:
        """Raises as the lock."""
        self.group.is_owner, self.away = owner, away
        for _ in range(0, seconds, every):
            self.lock.check()
            self.time += every

    def _elect(self, *given: object) -> Group:
        self.group = Group(*given)  # type: ignore[arg-type]
        return self.group

    def _look(self, _: object) -> SimpleNamespace:
        self.looks += 1
        if self.away:
            raise KafkaUnavailable("on purpose")
        return SimpleNamespace(topics=self.topics)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    made = Run(monkeypatch)
    yield made
    made.lock.close()
    assert made.group.closed


def test_it_waits_for_the_lock(run: Run) -> None:
    run.lock.acquire(None, lambda: setattr(run.group, "is_owner", True))
    assert run.group.is_owner
    run.lock.acquire(0)


def test_a_stop_ends_the_wait_and_the_run(run: Run) -> None:
    run.stop.set()
    with pytest.raises(NotCommitted):
        run.lock.acquire(None)
    with pytest.raises(NotCommitted):
        run.go_on(1, owner=True)


@pytest.mark.parametrize(
    ("refusal", "away", "error", "why"),
    [
        ("", False, Busy, r"`bridge translations` is running.* settlement\.translations\.owner"),
        ("", True, KafkaUnavailable, "on purpose"),
        ("Kafka refuses this member", False, KafkaUnavailable, "Kafka refuses this member"),
    ],
)
def test_a_vain_wait_blames_another_run_only_if_there_may_be_one(
    run: Run, refusal: str, away: bool, error: type[Exception], why: str
) -> None:
    run.group.refusal, run.away = refusal, away

    def wait() -> None:
        run.time += 1

    with pytest.raises(error, match=why):
        run.lock.acquire(2, wait)
    assert run.errors == [refusal] * bool(refusal)


def test_looks_at_the_topics_share_a_client(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[object]()

    def make(_: object) -> object:
        made.append(object())
        return made[-1]

    monkeypatch.setattr(clients, "admin", make)
    run.go_on(12, owner=False)
    assert (len(made), run.looks) == (1, 4)
    run.go_on(6, owner=False, away=True)
    assert len(made) == 2
    run.go_on(6, owner=False)
    assert len(made) == 3


def test_a_run_learns_within_half_a_minute_that_another_has_its_lock(run: Run) -> None:
    run.go_on(600, owner=True)
    assert run.looks == 0
    run.go_on(30, owner=False)
    with pytest.raises(NotOwner, match=r"^another `bridge translations` has taken over; nothing was publi"):
        run.go_on(1, owner=False)
    assert run.looks == 11


def test_a_lock_whose_topic_is_gone_was_taken_by_nobody(run: Run) -> None:
    run.topics = set()
    run.go_on(3, owner=False)
    with pytest.raises(TopologyError, match=r"the topic settlement\.snapshots is gone"):
        run.go_on(1, owner=False)


def test_a_lock_that_comes_back_is_ours(run: Run) -> None:
    for _ in range(10):
        run.go_on(29, owner=False)
        run.go_on(1, owner=True)


def test_only_time_in_which_kafka_answers_counts(run: Run) -> None:
    run.go_on(29, owner=False)
    run.go_on(600, owner=False, away=True)
    run.go_on(30, owner=False)
    with pytest.raises(NotOwner):
        run.go_on(3, owner=False)


def test_time_without_a_look_counts_little(run: Run) -> None:
    run.go_on(600, owner=False, every=60)
    with pytest.raises(NotOwner):
        run.go_on(60, owner=False, every=60)


def test_a_right_that_is_lost_ends_the_run(run: Run) -> None:
    run.group.is_owner = True
    with pytest.raises(TopologyError, match="on purpose"):
        run.lock.confirm()  # the coordinator misses it
    with pytest.raises(TopologyError, match="on purpose"):
        run.go_on(1, owner=True)

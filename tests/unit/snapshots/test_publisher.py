"""Whatever a transactional producer does, what a job publishes is committed once, or not at all."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from types import SimpleNamespace
from typing import TypeVar

import pytest
from confluent_kafka import KafkaError

from bridge.config import KafkaSettings, Settings
from bridge.errors import NotCommitted, NotOwner, TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.registry import RegistryUnavailable
from bridge.snapshots import lock, publisher, storage
from bridge.snapshots.lock import Lock
from bridge.snapshots.model import Offsets
from bridge.snapshots.publisher import Publisher
from tests.unit.kafka.fake_producer import (
    ABORT,
    FATAL,
    RETRY,
    FakeProducer,
    Owner,
    Topic,
    commits_and_fails,
    never_returns,
)

T = TypeVar("T")
Fault = Callable[[FakeProducer], None]
Faults = dict[str, list[Fault]]

SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"))
RECORDS = [Record("settlement.translations", b"sport:%d" % n, b"name %d" % n, 0) for n in range(3)]
NAMES = [record.value for record in RECORDS]
STATE = [Record("settlement.snapshot-state", b"translations/%d" % n, b"state %d" % n, 0) for n in range(3)]
VALUES = [record.value for record in STATE]
TOPICS = {"settlement.translations", "settlement.snapshots", "settlement.snapshot-state"}


def seal(ends: Offsets) -> Record:
    return Record("settlement.snapshots", b"translations", b"snapshot up to %d" % ends[0], 0)


class Stop(threading.Event):
    """The signal that ends every wait. Without it, a wait ends after a tenth of its time."""

    def wait(self, timeout: float | None = None) -> bool:
        return super().wait(timeout and timeout / 10)


class Kafka(Topic):
    """The topics of a job and its publisher. Each read of the ends differs, which distinguishes attempts."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self.away = 0
        """The number of reads that fail."""
        self.owner = Owner()
        self.stop = Stop()
        self.errors: list[str] = []
        self.looks: Iterator[set[str]] = itertools.repeat(TOPICS)
        self.ends: Iterator[int] = itertools.count(100, 100)
        self.state_topic_ids: Iterator[str] = itertools.repeat("id")
        patch.setattr(clients, "producer", lambda *_, **__: FakeProducer(self))
        patch.setattr(clients, "admin", lambda _: None)
        patch.setattr(
            admin, "metadata", lambda _: self._answer(lambda: SimpleNamespace(topics=next(self.looks)))
        )
        patch.setattr(admin, "topic_id", lambda *_: next(self.state_topic_ids))
        patch.setattr(storage, "last_record", lambda *_, **__: self._answer(self._last_record))
        patch.setattr(storage, "last_snapshot", lambda *_: None)
        patch.setattr(publisher, "ends_of", lambda *_: self._answer(lambda: {0: next(self.ends)}))
        patch.setattr(publisher, "STUCK_SECONDS", 0.1)
        patch.setattr(lock, "REGAIN_SECONDS", 0.1)
        patch.setattr(lock, "POLL_SECONDS", 0.01)
        patch.setattr(lock, "LOOK_SECONDS", 0.02)

    def publisher(self, patience: float | None = None) -> closing[Publisher]:
        """Return one, to be closed at the end, whose lock is held as long as `owner` says."""
        held = Lock(SETTINGS, "translations", self.stop, self.errors.append, lambda *_: self.owner)  # type: ignore[arg-type]
        return closing(Publisher(SETTINGS, "translations", held, patience))

    def lose_lock(self, then: Fault = lambda _: None, *, regain: bool = False) -> Fault:
        """Return a fault with which the lock is lost, for a moment or for good."""

        def lose(producer: FakeProducer) -> None:
            self.owner.is_owner = False
            if regain:
                threading.Timer(0.05, setattr, (self.owner, "is_owner", True)).start()
            then(producer)

        return lose

    def _last_record(self) -> SimpleNamespace | None:
        found = (value for value in reversed(self.committed) if value.startswith(b"snapshot"))
        return next((SimpleNamespace(value=lambda value=value: value) for value in found), None)

    def _answer(self, read: Callable[[], T]) -> T:
        if self.away:
            self.away -= 1
            raise KafkaUnavailable("on purpose")
        return read()


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kafka]:
    made = Kafka(monkeypatch)
    yield made
    made.release.set()


@pytest.fixture
def opened(kafka: Kafka) -> Iterator[Publisher]:
    """A publisher before the first snapshot."""
    with kafka.publisher() as made:
        assert made.open() is None
        yield made


def publish(to: Publisher) -> None:
    to.publish(RECORDS, seal)


def save(to: Publisher) -> None:
    to.save(STATE)


both = pytest.mark.parametrize("write", [publish, save])
Write = Callable[[Publisher], None]


def test_the_outcome_of_a_commit_is_found_without_a_registry(
    kafka: Kafka, opened: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise RegistryUnavailable("on purpose")

    monkeypatch.setattr(storage, "last_snapshot", away)
    kafka.faults = {"commit": [commits_and_fails]}
    publish(opened)
    assert kafka.committed[:-1] == NAMES


def passes(_: FakeProducer) -> None:
    """The call succeeds."""


def reports_no_topic(producer: FakeProducer) -> None:
    """A record was not delivered."""
    producer.on_delivery(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, "on purpose"), None)


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"produce": [passes, FATAL]},
        {"begin": [ABORT]},
        {"offsets": [RETRY, ABORT]},
        {"commit": [RETRY, ABORT, FATAL]},
        {"commit": [never_returns, commits_and_fails]},
    ],
)
def test_a_snapshot_is_committed_once_whatever_fails(kafka: Kafka, opened: Publisher, faults: Faults) -> None:
    kafka.faults = {name: list(given) for name, given in faults.items()}
    ends = opened.publish(RECORDS, seal)
    snapshot = [*NAMES, b"snapshot up to %d" % ends[0]]
    assert kafka.committed == snapshot
    kafka.faults = {name: list(given) for name, given in faults.items()}
    kafka.calls.clear()
    opened.save(STATE)
    assert kafka.committed in (snapshot + VALUES, snapshot + 2 * VALUES)
    assert kafka.calls.count("offsets") >= kafka.calls.count("commit"), "the lock is part of each attempt"
    before = kafka.committed.copy()
    kafka.faults = {"begin": [FATAL]}
    ends = opened.publish([], seal)
    assert kafka.committed == [*before, b"snapshot up to %d" % ends[0]]


@pytest.mark.parametrize(("call", "then"), [("offsets", ABORT), ("flush", passes)])
def test_a_lock_lost_in_an_outage_is_won_back(
    kafka: Kafka, opened: Publisher, call: str, then: Fault
) -> None:
    kafka.faults = {call: [kafka.lose_lock(then, regain=True)]}
    publish(opened)
    assert kafka.committed[:-1] == NAMES
    assert (kafka.calls.count("offsets"), kafka.producers) == (3 if call == "offsets" else 2, 2)


@both
@pytest.mark.parametrize(("call", "then"), [("offsets", ABORT), ("flush", passes)])
def test_a_lock_taken_over_ends_it(
    kafka: Kafka, opened: Publisher, call: str, then: Fault, write: Write
) -> None:
    kafka.faults = {call: [kafka.lose_lock(then)]}
    with pytest.raises(NotOwner, match="taken over"):
        write(opened)
    assert (kafka.committed, kafka.producers, "commit" in kafka.calls) == ([], 1, False)


@both
def test_a_snapshot_of_another_run_ends_it(kafka: Kafka, opened: Publisher, write: Write) -> None:
    def rival(producer: FakeProducer) -> None:
        kafka.committed.append(b"snapshot of a rival")
        FATAL(producer)

    kafka.faults = {"commit": [rival]}
    with pytest.raises(NotOwner, match="published since"):
        write(opened)
    assert kafka.committed == [b"snapshot of a rival"]


def test_the_lock_is_not_taken_over_while_kafka_is_unavailable(kafka: Kafka, opened: Publisher) -> None:
    def looks() -> Iterator[set[str]]:
        yield TOPICS
        kafka.owner.is_owner = True
        raise KafkaUnavailable("on purpose")

    kafka.looks = itertools.chain(looks(), itertools.repeat(TOPICS))
    kafka.faults = {"offsets": [kafka.lose_lock(ABORT)]}
    publish(opened)
    assert kafka.committed[:-1] == NAMES


def test_each_attempt_has_its_patience_and_reports_its_errors(kafka: Kafka) -> None:
    with kafka.publisher() as made:
        kafka.away = 1
        assert made.open(30) is None
        assert kafka.errors == ["opening as settlement.translations: on purpose"]
        kafka.away = 1_000_000
        with pytest.raises(KafkaUnavailable, match=r"^opening as settlement\.translations: on purpose$"):
            made.open(0.1)
        kafka.away = 1
        publish(made)
    assert kafka.errors[-1] == "publishing as settlement.translations: on purpose"
    assert kafka.committed[:-1] == NAMES


def test_patience_bounds_the_wait_for_the_coordinator(kafka: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(give_up: Callable[[], bool]) -> bool:
        while not give_up():
            kafka.stop.wait(0.01)
        return False

    monkeypatch.setattr(kafka.owner, "confirm", wait)
    with kafka.publisher() as made, pytest.raises(KafkaUnavailable, match="nobody confirms"):
        made.open(0.1)


@pytest.mark.parametrize("hangs", [False, True])
def test_patience_bounds_a_publication(kafka: Kafka, monkeypatch: pytest.MonkeyPatch, hangs: bool) -> None:
    with kafka.publisher(0.2) as made:
        made.open()
        if hangs:
            monkeypatch.setattr(FakeProducer, "flush", lambda *_: kafka.stop.wait(0.01) or 1)
            reason = "Kafka has not taken all of it"
        else:
            kafka.away, reason = 1_000_000, "^publishing as settlement.translations: on purpose"
        with pytest.raises(KafkaUnavailable, match=rf"{reason}.* Nothing of it is published"):
            publish(made)
    assert kafka.committed == []


def test_an_unknown_outcome_of_a_commit_is_no_failure(kafka: Kafka) -> None:
    def go(producer: FakeProducer) -> None:
        kafka.away = 1_000_000
        commits_and_fails(producer)

    with kafka.publisher(0.2) as made:
        made.open()
        kafka.faults = {"commit": [go]}
        with pytest.raises(KafkaUnavailable, match=r"Whether it is published is not known: the next"):
            publish(made)
    assert len(kafka.committed) == len(RECORDS) + 1


def test_stopped_it_gives_up(kafka: Kafka, opened: Publisher) -> None:
    kafka.away = 1_000_000
    threading.Timer(0.2, kafka.stop.set).start()
    with pytest.raises(NotCommitted, match="translations"):
        publish(opened)
    assert kafka.committed == []


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_a_topic_that_is_gone_ends_it(kafka: Kafka, opened: Publisher, topic: str) -> None:
    kafka.looks = itertools.repeat(TOPICS - {topic})
    with pytest.raises(TopologyError, match=rf"the topic {topic} is gone"):
        (save if "state" in topic else publish)(opened)
    assert (kafka.committed, "produce" in kafka.calls) == ([], False)


def test_a_topic_that_a_broker_does_not_know_once_is_not_gone(kafka: Kafka, opened: Publisher) -> None:
    kafka.looks = itertools.chain([TOPICS, set()], itertools.repeat(TOPICS))
    kafka.faults = {"flush": [reports_no_topic]}
    publish(opened)
    assert kafka.committed[:-1] == NAMES


def test_a_recreated_topic_of_the_job_ends_it(kafka: Kafka, opened: Publisher) -> None:
    kafka.ends = itertools.repeat(0)
    with pytest.raises(TopologyError, match=r"settlement\.translations was recreated during the run"):
        publish(opened)
    assert kafka.committed == []


@both
def test_a_recreated_topic_of_the_state_ends_it(kafka: Kafka, opened: Publisher, write: Write) -> None:
    kafka.state_topic_ids = itertools.repeat("another")
    with pytest.raises(TopologyError, match=r"settlement\.snapshot-state was recreated"):
        write(opened)
    assert (kafka.committed, "produce" in kafka.calls) == ([], False)


def test_a_recreated_topic_of_snapshots_ends_it(kafka: Kafka, opened: Publisher) -> None:
    publish(opened)

    def lose(producer: FakeProducer) -> None:
        kafka.committed.clear()
        FATAL(producer)

    kafka.faults = {"commit": [lose]}
    with pytest.raises(TopologyError, match=r"settlement\.snapshots was recreated during the run"):
        publish(opened)

"""Whatever a transactional producer does, a snapshot is committed once, or not at all."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from bridge.errors import NotCommitted, NotOwner
from bridge.kafka import admin
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots.model import Offsets
from bridge.snapshots.publisher import Publisher
from tests.unit.kafka.fake_producer import (
    ABORT,
    FATAL,
    RETRY,
    FakeProducer,
    Owner,
    commits_and_fails,
    never_returns,
)
from tests.unit.snapshots.cluster import NAMES, RECORDS, SETTINGS, TOPICS, Kafka, seal

Fault = Callable[[FakeProducer], None]


def full(_: FakeProducer) -> None:
    """The queue of the client is."""
    raise BufferError


@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"produce": [lambda _: None, FATAL]},
        {"produce": [lambda _: None, full], "poll": [FATAL]},
        {"init": [RETRY, never_returns], "begin": [FATAL]},
        {"begin": [ABORT]},
        {"produce": [lambda _: None, ABORT]},
        {"flush": [lambda _: None, FATAL]},
        {"offsets": [RETRY, ABORT]},
        {"offsets": [never_returns]},
        {"commit": [RETRY, ABORT, FATAL]},
        {"commit": [commits_and_fails]},
        {"commit": [never_returns, commits_and_fails]},
    ],
)
def test_whatever_fails_the_snapshot_is_committed_once(
    cluster: Kafka, publisher: Publisher, faults: dict[str, list[Fault]]
) -> None:
    """Written again, or found to be committed; the ends that are returned are those that it has."""
    cluster.faults = faults
    ends = publisher.publish(RECORDS, seal)
    assert cluster.committed == [*NAMES, b"snapshot up to %d" % ends[0]]
    before = cluster.committed.copy()
    cluster.faults = {"begin": [FATAL]}
    following = publisher.publish([], seal)
    assert cluster.committed == [*before, b"snapshot up to %d" % following[0]]


def test_it_waits_until_kafka_is_back(cluster: Kafka, publisher: Publisher) -> None:
    """Also where what it cannot do is to read."""
    cluster.away = 4
    ends = publisher.publish(RECORDS, seal)
    assert cluster.committed == [*NAMES, b"snapshot up to %d" % ends[0]]


def test_a_lock_that_an_outage_has_cost_is_won_again(
    cluster: Kafka, publisher: Publisher, owner: Owner
) -> None:
    """Nobody has published meanwhile: so what was asked for an hour is still right."""

    def lose(producer: FakeProducer) -> None:
        owner.is_owner = False
        threading.Timer(0.05, setattr, (owner, "is_owner", True)).start()
        ABORT(producer)

    cluster.faults = {"offsets": [lose]}
    publisher.publish(RECORDS, seal)
    assert cluster.committed[:-1] == NAMES


def test_a_lock_that_is_known_to_be_lost_is_not_committed_with(
    cluster: Kafka, publisher: Publisher, owner: Owner
) -> None:
    """The call that would find out has been seen never to return after an outage."""

    def lose(_: FakeProducer) -> None:
        owner.is_owner = False
        threading.Timer(0.05, setattr, (owner, "is_owner", True)).start()

    cluster.faults = {"flush": [lose]}
    publisher.publish(RECORDS, seal)
    assert cluster.calls.count("offsets") == 1
    assert cluster.committed[:-1] == NAMES


def test_a_lock_that_another_run_has_ends_it(cluster: Kafka, publisher: Publisher, owner: Owner) -> None:
    """What it collected is not published, and no new producer fences the other."""

    def lose(producer: FakeProducer) -> None:
        owner.is_owner = False
        ABORT(producer)

    cluster.faults = {"offsets": [lose]}
    with pytest.raises(NotOwner, match="taken over"):
        publisher.publish(RECORDS, seal)
    assert (cluster.committed, cluster.producers) == ([], 1)


def test_a_snapshot_of_another_run_ends_it(cluster: Kafka, publisher: Publisher) -> None:
    """What was compared with the topic is out of date, although the lock is ours again."""

    def rival(producer: FakeProducer) -> None:
        producer.topic.committed.append(b"snapshot of a rival")
        FATAL(producer)

    cluster.faults = {"commit": [rival]}
    with pytest.raises(NotOwner, match="published meanwhile"):
        publisher.publish(RECORDS, seal)
    assert cluster.committed == [b"snapshot of a rival"]


def test_a_kafka_that_goes_again_is_nobody_who_took_over(
    cluster: Kafka, publisher: Publisher, owner: Owner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No lock can be won while it is away."""
    looks = itertools.count(1)

    def look() -> set[str]:
        if next(looks) == 2:
            owner.is_owner = True
            raise KafkaUnavailable("on purpose")
        return TOPICS

    def lose(producer: FakeProducer) -> None:
        owner.is_owner = False
        ABORT(producer)

    monkeypatch.setattr(admin, "metadata", lambda _: SimpleNamespace(topics=look()))
    cluster.faults = {"offsets": [lose]}
    publisher.publish(RECORDS, seal)
    assert cluster.committed[:-1] == NAMES


def test_it_does_not_try_to_open_for_ever(cluster: Kafka, owner: Owner, stop: threading.Event) -> None:
    """It says what it was at, and tries for as long as it was told to."""
    told: list[str] = []
    with Publisher(SETTINGS, "translations", owner, stop, told.append) as publisher:  # type: ignore[arg-type]
        cluster.away = 1
        assert publisher.open(30) is None
        assert told == ["opening as settlement.translations: on purpose"]
        cluster.away = 1_000_000
        with pytest.raises(KafkaUnavailable, match=r"^opening as settlement\.translations: on purpose$"):
            publisher.open(0.1)
        cluster.away = 1
        publisher.publish(RECORDS, seal)
    assert told[-1] == "publishing as settlement.translations: on purpose"
    assert cluster.committed[:-1] == NAMES


def test_a_coordinator_is_not_asked_for_longer_than_that(
    cluster: Kafka, owner: Owner, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it answer, while Kafka is away."""

    def wait(give_up: Callable[[], bool]) -> bool:
        while not give_up():
            stop.wait(0.01)
        return False

    monkeypatch.setattr(owner, "confirm", wait)
    with Publisher(SETTINGS, "translations", owner, stop, lambda _: None) as publisher:  # type: ignore[arg-type]
        end = threading.Timer(5, stop.set)
        end.start()
        with pytest.raises(KafkaUnavailable, match="nobody confirms"):
            publisher.open(0.1)
        end.cancel()
    assert not stop.is_set()


def test_told_to_end_it_gives_up(cluster: Kafka, publisher: Publisher, stop: threading.Event) -> None:
    """Otherwise it would wait for as long as Kafka is away."""
    cluster.away = 1_000_000
    threading.Timer(0.2, stop.set).start()
    with pytest.raises(NotCommitted, match="translations"):
        publisher.publish(RECORDS, seal)
    assert cluster.committed == []


def test_what_is_open_is_aborted_at_the_end(cluster: Kafka, publisher: Publisher) -> None:
    """It would hide what comes after it, for minutes; what was committed is left alone."""

    def fails_to_seal(_: Offsets) -> Record:
        raise ValueError("on purpose")

    publisher.publish(RECORDS, seal)
    with pytest.raises(ValueError, match="on purpose"):
        publisher.publish(RECORDS, fails_to_seal)
    publisher.close()
    assert cluster.calls[-1] == "abort"
    assert cluster.committed[:-1] == NAMES


def test_an_end_that_is_refused_is_none_to_be_told(cluster: Kafka, publisher: Publisher) -> None:
    """A producer that was fenced cannot abort, and what made it end is what counts."""

    def fails_to_seal(_: Offsets) -> Record:
        raise ValueError("on purpose")

    cluster.faults = {"abort": [FATAL]}
    with pytest.raises(ValueError, match="on purpose"):
        publisher.publish(RECORDS, fails_to_seal)
    publisher.close()


def test_nothing_is_aborted_at_the_end_where_nothing_is_open(cluster: Kafka, publisher: Publisher) -> None:
    """It is no call for a transaction that is committed."""
    publisher.publish(RECORDS, seal)
    publisher.close()
    assert "abort" not in cluster.calls


def test_a_full_queue_of_the_client_is_waited_for(cluster: Kafka, publisher: Publisher) -> None:
    """BufferError means: try again."""

    cluster.faults = {"produce": [full, full]}
    publisher.publish(RECORDS, seal)
    assert cluster.committed[:-1] == NAMES

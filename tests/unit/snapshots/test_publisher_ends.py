"""What ends a publication, instead of another try for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from bridge.errors import SinkBroken, TopologyError
from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.snapshots import publisher as module
from bridge.snapshots.publisher import Publisher
from tests.unit.kafka.fake_producer import FATAL, FakeProducer, Owner, commits_and_fails, fails
from tests.unit.snapshots.cluster import NAMES, RECORDS, SETTINGS, TOPICS, Kafka, seal

Fault = Callable[[FakeProducer], None]


@pytest.mark.parametrize("call", ["init", "produce", "commit"])
def test_what_kafka_will_never_take_is_not_tried_again(
    cluster: Kafka, publisher: Publisher, call: str
) -> None:
    """A person has to act."""
    refused = fails(KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    cluster.faults = {"begin": [FATAL], call: [refused]} if call == "init" else {call: [refused]}
    with pytest.raises(SinkBroken, match=r"settlement\.translations"):
        publisher.publish(RECORDS, seal)


def test_a_record_that_the_broker_refuses_says_why(cluster: Kafka, publisher: Publisher) -> None:
    """The calls after it would only say that the transaction has failed."""

    def refuse(producer: FakeProducer) -> None:
        producer.on_delivery(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE, "too large"), None)

    cluster.faults = {"flush": [refuse]}
    with pytest.raises(SinkBroken, match="too large"):
        publisher.publish(RECORDS, seal)
    assert cluster.committed == []


def purged(code: int) -> Callable[[FakeProducer], None]:
    """What the client says of each record of a transaction that has failed."""

    def fault(producer: FakeProducer) -> None:
        producer.on_delivery(KafkaError(code, "on purpose"), None)

    return fault


NO_RIGHT = fails(KafkaError.TOPIC_AUTHORIZATION_FAILED, txn_requires_abort=True)


@pytest.mark.parametrize(
    "faults",
    [
        {"flush": [purged(KafkaError._PURGE_QUEUE)]},
        {"flush": [purged(KafkaError._PURGE_INFLIGHT)]},
        {"produce": [lambda _: None, fails(KafkaError._STATE)]},
        {"offsets": [fails(KafkaError._STATE)]},
    ],
)
def test_what_only_follows_from_another_error_gives_way_to_it(
    cluster: Kafka, publisher: Publisher, faults: dict[str, list[Fault]]
) -> None:
    """The reason is asked for: a right that is missing ends it at once."""
    cluster.faults = {"begin": [lambda _: None, NO_RIGHT], **faults}
    with pytest.raises(SinkBroken, match=r"settlement\.translations writes: on purpose"):
        publisher.publish(RECORDS, seal)
    assert cluster.producers == 1


def test_one_record_that_is_refused_takes_those_beside_it_along(cluster: Kafka, publisher: Publisher) -> None:
    """Which of them is told first says nothing."""

    def refuse(producer: FakeProducer) -> None:
        purged(KafkaError._INVALID_DIFFERENT_RECORD)(producer)
        purged(KafkaError.INVALID_TIMESTAMP)(producer)

    cluster.faults = {"flush": [refuse]}
    with pytest.raises(SinkBroken, match="clock of this machine"):
        publisher.publish(RECORDS, seal)
    assert cluster.producers == 1


@pytest.mark.parametrize("topic", sorted(TOPICS))
def test_a_topic_that_is_gone_ends_it(cluster: Kafka, publisher: Publisher, topic: str) -> None:
    """Nobody makes it anew as long as the run is at work."""
    cluster.lost = {topic}
    cluster.faults = {"flush": [purged(KafkaError._UNKNOWN_PARTITION)] * 1000}
    with pytest.raises(TopologyError, match=rf"the topic {topic} is gone"):
        publisher.publish(RECORDS, seal)
    assert cluster.committed == []


def test_a_topic_that_a_broker_does_not_know_yet_is_not_gone(
    cluster: Kafka, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It says so while it starts, and while leaders are elected."""

    looks: list[set[str]] = []

    def look() -> set[str]:
        looks.append(set() if looks == [TOPICS] else TOPICS)
        return looks[-1]

    monkeypatch.setattr(admin, "metadata", lambda _: SimpleNamespace(topics=look()))
    cluster.faults = {"flush": [purged(KafkaError.UNKNOWN_TOPIC_OR_PART)]}
    publisher.publish(RECORDS, seal)
    assert cluster.committed[:-1] == NAMES
    assert looks.count(set()) == 1


def test_a_topic_that_was_made_anew_meanwhile_ends_it(
    cluster: Kafka, publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What has not changed is not in it, and would not be written."""
    monkeypatch.setattr(module, "ends_of", lambda *_: {0: 0})
    with pytest.raises(TopologyError, match=r"the topic settlement\.translations was made anew meanwhile"):
        publisher.publish(RECORDS, seal)
    assert cluster.committed == []


def test_snapshots_that_were_made_anew_meanwhile_end_it(cluster: Kafka, publisher: Publisher) -> None:
    """Nobody has published: the record of the last snapshot is gone with its topic."""
    publisher.publish(RECORDS, seal)

    def lose(producer: FakeProducer) -> None:
        cluster.committed.clear()
        FATAL(producer)

    cluster.faults = {"commit": [lose]}
    with pytest.raises(TopologyError, match=r"the topic settlement\.snapshots was made anew meanwhile"):
        publisher.publish(RECORDS, seal)


def hurried(owner: Owner, stop: threading.Event) -> Publisher:
    """One whose last moment comes soon."""
    return Publisher(SETTINGS, "translations", owner, stop, lambda _: None, 0.2)  # type: ignore[arg-type]


def test_it_does_not_try_to_publish_for_ever(cluster: Kafka, owner: Owner, stop: threading.Event) -> None:
    """Whoever waits for the end of a run hears what stood in its way."""
    with hurried(owner, stop) as publisher:
        publisher.open()
        cluster.away = 1_000_000
        with pytest.raises(
            KafkaUnavailable,
            match=r"^publishing as settlement\.translations: on purpose\. Nothing of it is published",
        ):
            publisher.publish(RECORDS, seal)
    assert cluster.committed == []


def test_nor_does_it_wait_for_ever_until_all_is_delivered(
    cluster: Kafka, owner: Owner, stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that takes nothing and says nothing."""
    monkeypatch.setattr(FakeProducer, "flush", lambda *_: stop.wait(0.01) or 1)
    with hurried(owner, stop) as publisher:
        publisher.open()
        with pytest.raises(KafkaUnavailable, match=r"has not taken all of it.* Nothing of it is publ"):
            publisher.publish(RECORDS, seal)


def test_a_commit_whose_outcome_nobody_tells(cluster: Kafka, owner: Owner, stop: threading.Event) -> None:
    """It is not said to have failed."""

    def go(producer: FakeProducer) -> None:
        cluster.away = 1_000_000
        commits_and_fails(producer)

    with hurried(owner, stop) as publisher:
        publisher.open()
        cluster.faults = {"commit": [go]}
        with pytest.raises(KafkaUnavailable, match=r"Whether it is published is not known: the next"):
            publisher.publish(RECORDS, seal)
    assert len(cluster.committed) == len(RECORDS) + 1

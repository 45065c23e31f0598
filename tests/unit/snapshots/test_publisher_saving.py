"""What a job remembers is committed whole and by the holder of the lock alone, without a snapshot."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError

from bridge.errors import NotOwner, SinkBroken, TopologyError
from bridge.kafka.batch import Record
from bridge.snapshots.publisher import Publisher
from tests.unit.kafka.fake_producer import (
    ABORT,
    FATAL,
    RETRY,
    FakeProducer,
    Owner,
    commits_and_fails,
    fails,
    never_returns,
)
from tests.unit.snapshots.cluster import NAMES, RECORDS, TOPICS, Kafka, seal

Fault = Callable[[FakeProducer], None]
STATE = [Record("settlement.snapshot-state", b"translations/%d" % n, b"state %d" % n, 0) for n in range(3)]
VALUES = [record.value for record in STATE]


@pytest.fixture
def cluster(cluster: Kafka) -> Kafka:
    cluster.topics = TOPICS | {"settlement.snapshot-state"}
    return cluster


@pytest.mark.parametrize(
    ("faults", "times"),
    [
        ({}, 1),
        ({"produce": [lambda _: None, FATAL]}, 1),
        ({"begin": [ABORT]}, 1),
        ({"flush": [lambda _: None, FATAL]}, 1),
        ({"offsets": [RETRY, ABORT]}, 1),
        ({"commit": [RETRY, ABORT, FATAL]}, 1),
        ({"commit": [commits_and_fails]}, 2),
        ({"commit": [never_returns, commits_and_fails]}, 2),
    ],
)
def test_whatever_fails_it_is_committed_whole(
    cluster: Kafka, publisher: Publisher, faults: dict[str, list[Fault]], times: int
) -> None:
    """Twice where the answer was lost, which changes nothing; the lock is part of each transaction."""
    cluster.faults = faults
    publisher.save(STATE)
    assert cluster.committed == VALUES * times
    assert cluster.calls.count("offsets") >= cluster.calls.count("commit") >= times


def test_a_snapshot_follows_it(cluster: Kafka, publisher: Publisher) -> None:
    """What was saved is not taken for the work of another run; nor is the snapshot, by what is saved next."""
    publisher.save(STATE)
    ends = publisher.publish(RECORDS, seal)
    cluster.faults = {"begin": [FATAL]}
    publisher.save(STATE)
    assert cluster.committed == [*VALUES, *NAMES, b"snapshot up to %d" % ends[0], *VALUES]


def test_a_lock_that_another_run_has_ends_it(cluster: Kafka, publisher: Publisher, owner: Owner) -> None:
    """What was learnt is that one's to save."""

    def lose(producer: FakeProducer) -> None:
        owner.is_owner = False
        ABORT(producer)

    cluster.faults = {"offsets": [lose]}
    with pytest.raises(NotOwner, match="taken over"):
        publisher.save(STATE)
    assert (cluster.committed, cluster.producers) == ([], 1)


def test_a_lock_that_was_lost_unnoticed_is_not_committed_with(
    cluster: Kafka, publisher: Publisher, owner: Owner
) -> None:
    """Between the records and the commit."""

    def lose(_: FakeProducer) -> None:
        owner.is_owner = False

    cluster.faults = {"flush": [lose]}
    with pytest.raises(NotOwner):
        publisher.save(STATE)
    assert (cluster.committed, "commit" in cluster.calls) == ([], False)


def test_a_snapshot_of_another_run_ends_it(cluster: Kafka, publisher: Publisher) -> None:
    """What it learnt is older than what that one saved."""

    def rival(producer: FakeProducer) -> None:
        producer.topic.committed.append(b"snapshot of a rival")
        FATAL(producer)

    cluster.faults = {"commit": [rival]}
    with pytest.raises(NotOwner, match="published meanwhile"):
        publisher.save(STATE)
    assert cluster.committed == [b"snapshot of a rival"]


def test_what_kafka_refuses_ends_it(cluster: Kafka, publisher: Publisher) -> None:
    """As of a snapshot."""
    cluster.faults = {"produce": [fails(KafkaError.TOPIC_AUTHORIZATION_FAILED, txn_requires_abort=True)]}
    with pytest.raises(SinkBroken, match=r"settlement\.translations"):
        publisher.save(STATE)


def test_a_topic_that_is_gone_ends_it(cluster: Kafka, publisher: Publisher) -> None:
    """It is not made anew by writing to it."""
    cluster.lost = {"settlement.snapshot-state"}
    with pytest.raises(TopologyError, match=r"the topic settlement\.snapshot-state is gone"):
        publisher.save(STATE)
    assert "produce" not in cluster.calls

"""Topics on a real Kafka: their identity and required settings."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bridge.config import FeedSettings, Settings, TopicsSettings
from bridge.errors import TopologyError
from bridge.kafka import admin, clients, topics
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.reader import TopicScan
from tests.harness import Place, until
from tests.integration.publishing import settings_of


def make(client: AdminClient, topic: str) -> None:
    client.create_topics([NewTopic(topic, 1)])[topic].result(30)


async def test_a_recreated_topic_has_another_id(place: Place) -> None:
    """A missing topic has none; a missing broker gives no answer."""
    client, topic = place.admin(), f"{place.prefix}.anew"
    assert admin.topic_id(client, topic) is None
    make(client, topic)
    await until(lambda: admin.topic_id(client, topic) is not None, "it is there")
    first = admin.topic_id(client, topic)
    assert admin.topic_id(client, topic) == first
    client.delete_topics([topic])[topic].result(30)
    await until(lambda: admin.topic_id(client, topic) is None, "it is gone")
    make(client, topic)
    await until(lambda: admin.topic_id(client, topic) not in (first, None), "it is another")
    with pytest.raises(KafkaUnavailable, match=f"^looking for {topic}: no broker answered"):
        admin.topic_id(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}), topic)


def made_by_somebody(place: Place, config: dict[str, str]) -> Settings:
    """A topic of bets with these settings, beside others as declared."""
    settings = settings_of(place)
    bets = topics.declare(settings).bets
    new = NewTopic(bets.name, bets.partitions, 1, config=bets.config | config)
    client = place.admin()
    client.create_topics([new])[bets.name].result(30)
    others = [change for change in topics.plan(client, topics.declare(settings)) if change.topic != bets]
    topics.apply(client, others, replication_factor=None)
    return settings


def refusal(settings: Settings, size: int, age: float = 0) -> str | None:
    """The broker's error for a record of that size and age."""
    delivered: list[Any] = []
    producer = Producer(
        {"bootstrap.servers": settings.kafka.bootstrap_servers, "message.max.bytes": 10**7, "log_level": 0}
    )
    producer.produce(
        topics.declare(settings).bets.name,
        bytes(size),
        b"k",
        timestamp=round((time.time() - age) * 1000),
        on_delivery=lambda error, _: delivered.append(error and error.name()),
    )
    assert producer.flush(60) == 0
    [error] = delivered
    return None if error is None else str(error)


@pytest.mark.parametrize(
    ("config", "size", "age", "refused", "harmful"),
    [
        ({"segment.bytes": "1048576"}, 2_000_000, 0, "RECORD_LIST_TOO_LARGE", True),
        ({"message.timestamp.before.max.ms": "60000"}, 1, 3600, "INVALID_TIMESTAMP", False),
        ({"message.timestamp.after.max.ms": "60000"}, 1, -600, "INVALID_TIMESTAMP", False),
        ({"message.timestamp.type": "LogAppendTime"}, 1, 3600, None, True),
    ],
    ids=["segment", "before", "after", "append time"],
)
def test_apply_corrects_a_topic_that_would_lose_records(
    place: Place, config: dict[str, str], size: int, age: float, refused: str | None, harmful: bool
) -> None:
    """By the plan, which names the setting; until then no bridge starts if it would lose bets."""
    settings = made_by_somebody(place, config)
    name = topics.declare(settings).bets.name
    assert refusal(settings, size, age) == refused
    [(setting, value)] = config.items()
    plan = place.run("topics", "plan")
    assert plan.returncode == 1
    assert f"{name}: alter: {setting} is {value}, must be " in plan.stdout
    if harmful:
        run = place.run("run", FEED__BASE_URL="http://127.0.0.1:1")
        assert run.returncode == 6
        assert f"{name}: {setting} is {value}, must be " in run.stderr
    applied = place.run("topics", "apply")
    assert applied.returncode == 0
    assert f"{name}: altered: {setting} is {value}, must be " in applied.stdout
    plan = place.run("topics", "plan")
    assert (plan.returncode, plan.stdout) == (0, "all topics match the settings\n")
    assert refusal(settings, size, age) is None


def test_append_time_hides_when_a_bet_was_received(place: Place) -> None:
    """With a broker whose clock is behind, the deduplicator would miss records."""
    for config, stamp in (({}, 0), ({"message.timestamp.type": "LogAppendTime"}, 3600)):
        settings = made_by_somebody(place, config)
        assert refusal(settings, 1, 3600) is None
        [record] = place.read("bets")
        assert record.timestamp()[1] / 1000 == pytest.approx(time.time() - 3600 + stamp, abs=600)
        client, name = place.admin(), topics.declare(settings).bets.name
        client.delete_topics([name])[name].result(30)


async def test_a_position_that_is_lost_is_not_taken_for_a_first_start(place: Place) -> None:
    """The topic of checkpoints is not created beside bets, but by an operator."""
    settings, client = settings_of(place), place.admin()
    declared, _ = topics.ensure(client, settings, topics.Topics.of_feed)
    gone = declared.checkpoints.name

    def delete() -> None:
        client.delete_topics([gone])[gone].result(30)

    delete()
    await until(lambda: admin.topic_id(client, gone) is None, "it is gone")
    topics.ensure(client, settings, topics.Topics.of_feed)  # there is no bet either
    assert refusal(settings, 1) is None
    delete()
    await until(lambda: admin.topic_id(client, gone) is None, "it is gone")
    with pytest.raises(TopologyError, match=f"^{gone} is gone, and {declared.bets.name} is not empty"):
        topics.ensure(client, settings, topics.Topics.of_feed)
    assert place.run("topics", "apply").returncode == 0
    topics.ensure(client, settings, topics.Topics.of_feed)


def test_numbers_at_their_ends_make_topics(place: Place) -> None:
    """The broker accepts all values within the settings' bounds: the largest record fits and is read back."""
    shape = TopicsSettings(prefix=place.prefix, partitions=1, min_compaction_lag_days=36_500)
    feed = FeedSettings(max_message_bytes=64 * 1024 * 1024)
    settings = settings_of(place)
    settings = settings.model_copy(update={"topics": shape, "feed": feed})
    topics.ensure(place.admin(), settings, topics.Topics.all)
    assert topics.plan(place.admin(), topics.declare(settings)) == []
    largest = topics.max_record_bytes(settings)
    producer = clients.producer(settings.kafka, transactional_id=place.prefix, max_record_bytes=largest)
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topics.declare(settings).bets.name, bytes(largest - 1024), b"k")
    producer.commit_transaction(60)
    read = list[int]()
    TopicScan(topics.declare(settings).bets.name, lambda m: read.append(len(m.value() or b""))).read(settings)
    assert read == [largest - 1024]

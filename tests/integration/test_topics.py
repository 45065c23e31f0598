"""Topics on a real Kafka: their identity and required settings."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from bridge.config import FeedSettings, Settings, TopicsSettings
from bridge.errors import TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.reader import TopicScan
from bridge.records import topics
from tests.harness import Place, simulate, until
from tests.integration.publishing import settings_of


def make(client: AdminClient, topic: str) -> None:
    client.create_topics([NewTopic(topic, 1)])[topic].result(30)


async def test_a_recreated_topic_has_another_id(place: Place) -> None:
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


def test_other_segments_than_wished_are_no_difference(place: Place) -> None:
    assert place.run("topics", "apply").returncode == 0
    client, name = place.admin(), topics.declare(settings_of(place)).checkpoints.name
    entry = ConfigEntry(name="segment.ms", value="7200000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
    client.incremental_alter_configs([resource])[resource].result(30)
    plan = place.run("topics", "plan")
    assert plan.returncode == 0
    assert plan.stdout == f"{name}: accept: segment.ms is 7200000, better 3600000\n"
    assert place.run("topics", "apply").returncode == 0
    assert place.run("topics", "plan").stdout == "all topics match the settings\n"


def test_append_time_hides_when_a_bet_was_received(place: Place) -> None:
    for config, stamp in (({}, 0), ({"message.timestamp.type": "LogAppendTime"}, 3600)):
        settings = made_by_somebody(place, config)
        assert refusal(settings, 1, 3600) is None
        [record] = place.read("bets")
        assert record.timestamp()[1] / 1000 == pytest.approx(time.time() - 3600 + stamp, abs=600)
        client, name = place.admin(), topics.declare(settings).bets.name
        client.delete_topics([name])[name].result(30)


async def test_a_position_that_is_lost_is_not_taken_for_a_first_start(place: Place) -> None:
    settings, client = settings_of(place), place.admin()
    declared = topics.ensure(client, settings, topics.Topics.of_feed)
    lost, bets = declared.checkpoints.name, declared.bets.name

    def ensure(start: str = "0") -> None:
        feed = settings.feed.model_copy(update={"start": start})
        topics.ensure(client, settings.model_copy(update={"feed": feed}), topics.Topics.of_feed)

    async def delete() -> None:
        client.delete_topics([lost])[lost].result(30)
        await until(lambda: admin.topic_id(client, lost) is None, "it is gone")

    await delete()
    ensure()  # there is no bet either
    assert refusal(settings, 1, age=3600) is None
    await delete()
    with pytest.raises(TopologyError, match=f"^{lost} is gone, and {bets} has records"):
        ensure("2h")
    assert place.run("topics", "apply").returncode == 0
    for start in ("0", "10m"):  # what a first start needed may have stayed in the settings
        with pytest.raises(
            TopologyError, match=f"^{lost} is without a checkpoint of the feed, and {bets} has records"
        ):
            ensure(start)
    checks = json.loads(place.run("doctor", "--json", FEED__START="0").stdout)
    [told] = [check for check in checks if check["check"] == "topics"]
    assert (told["outcome"], f"{lost} is without a checkpoint" in told["message"]) == ("fail", True), told
    ensure("2h")


async def test_a_standby_judges_the_topics_before_it_owns_the_feed(place: Place) -> None:
    async with simulate() as feed:
        owner, standby = (place.bridge(FEED__BASE_URL=feed.url) for _ in range(2))
        await until(lambda: "Live" in owner.states() + standby.states(), "live")
        if "Live" in standby.states():
            owner, standby = standby, owner
        await standby.reaches("Standby")
        name = f"{place.prefix}.bets"
        entry = ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        client = place.admin()
        client.incremental_alter_configs([resource])[resource].result(30)
        connections = len(feed.connections)
        assert await owner.end() == 0
        assert await standby.wait() == 6
        assert f"{name}: cleanup.policy is delete, must be compact" in standby.text()
        assert len(feed.connections) == connections


def test_numbers_at_their_ends_make_topics(place: Place) -> None:
    shape = TopicsSettings(prefix=place.prefix, partitions=1, min_compaction_lag_days=36_500)
    feed = FeedSettings(max_message_bytes=64 * 1024 * 1024)
    settings = settings_of(place)
    settings = settings.model_copy(update={"topics": shape, "feed": feed})
    topics.ensure(place.admin(), settings, topics.Topics.all)
    assert topics.plan(place.admin(), topics.declare(settings)) == []
    largest = topics.max_record_bytes(settings.feed)
    producer = clients.producer(settings.kafka, transactional_id=place.prefix, max_record_bytes=largest)
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(topics.declare(settings).bets.name, bytes(largest - 1024), b"k")
    producer.commit_transaction(60)
    read = list[int]()
    TopicScan(topics.declare(settings).bets.name, lambda m: read.append(len(m.value() or b""))).read(settings)
    assert read == [largest - 1024]


def test_fewer_partitions_than_declared_are_one_verdict(place: Place) -> None:
    assert place.run("topics", "apply").returncode == 0
    more = {"TOPICS__PARTITIONS": "12"}
    words = f"{place.prefix}.bets: leave as it is: it has 6 partitions, but 12 are declared"
    for command in ("plan", "apply"):
        done = place.run("topics", command, **more)
        assert done.returncode == 0
        assert words in done.stdout
    doctor = " ".join(place.run("doctor", **more).stdout.split())
    assert words in doctor
    assert "✓ topics" in doctor

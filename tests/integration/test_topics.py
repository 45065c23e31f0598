"""Topics on a real Kafka: their identity and required settings."""

from __future__ import annotations

import time
from typing import Any

import pytest
from confluent_kafka.admin import (
    AdminClient,
)

from bridge.config import FeedSettings, TopicsSettings
from bridge.errors import TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.reader import TopicScan
from bridge.records import topics
from tests.harness import Place, simulate, until
from tests.integration.publishing import settings_of


async def test_a_recreated_topic_has_another_id(place: Place) -> None:
    client, topic = place.admin(), f"{place.prefix}.anew"
    assert admin.topic_id(client, topic) is None
    place.make_topic("anew")
    await until(lambda: admin.topic_id(client, topic) is not None, "it is there")
    first = admin.topic_id(client, topic)
    assert admin.topic_id(client, topic) == first
    place.delete_topic("anew")
    place.make_topic("anew")
    await until(lambda: admin.topic_id(client, topic) not in (first, None), "it is another")
    with pytest.raises(KafkaUnavailable, match=f"^looking for {topic}: no broker answered"):
        admin.topic_id(AdminClient({"bootstrap.servers": "127.0.0.1:1", "log_level": 0}), topic)


def made_by_somebody(place: Place, config: dict[str, str]) -> None:
    """A topic of bets with these settings, beside others as declared."""
    settings = settings_of(place)
    bets = topics.declare(settings).bets
    client = place.admin()
    place.make_topic("bets", bets.partitions, bets.config | config)
    others = [change for change in topics.plan(client, topics.declare(settings)) if change.topic != bets]
    topics.apply(client, others, replication_factor=None)


def refusal(place: Place, size: int, age: float = 0) -> str | None:
    """The broker's error for a record of that size and age."""
    delivered: list[Any] = []
    producer = place.producer(message_max_bytes=10**7)
    producer.produce(
        f"{place.prefix}.bets",
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
    made_by_somebody(place, config)
    name = f"{place.prefix}.bets"
    assert refusal(place, size, age) == refused
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
    assert refusal(place, size, age) is None


def test_other_segments_than_wished_are_no_difference(place: Place) -> None:
    assert place.run("topics", "apply").returncode == 0
    name = f"{place.prefix}.checkpoints"
    place.configure("checkpoints", segment_ms="7200000")
    plan = place.run("topics", "plan")
    assert plan.returncode == 0
    assert plan.stdout == f"{name}: accept: segment.ms is 7200000, better 3600000\n"
    assert place.run("topics", "apply").returncode == 0
    assert place.run("topics", "plan").stdout == "all topics match the settings\n"


def test_a_position_that_is_lost_is_not_taken_for_a_first_start(place: Place) -> None:
    settings, client = settings_of(place), place.admin()
    declared = topics.ensure(client, settings, topics.Topics.of_feed)
    lost, bets = declared.checkpoints.name, declared.bets.name

    def ensure(start: str = "0") -> None:
        feed = settings.feed.model_copy(update={"start": start})
        topics.ensure(client, settings.model_copy(update={"feed": feed}), topics.Topics.of_feed)

    place.delete_topic("checkpoints")
    ensure()  # there is no bet either
    assert refusal(place, 1, age=3600) is None
    place.delete_topic("checkpoints")
    with pytest.raises(TopologyError, match=f"^{lost} is gone, and {bets} has records"):
        ensure("2h")
    assert place.run("topics", "apply").returncode == 0
    for start in ("0", "10m"):  # what a first start needed may have stayed in the settings
        with pytest.raises(
            TopologyError, match=f"^{lost} is without a checkpoint of the feed, and {bets} has records"
        ):
            ensure(start)
    ensure("2h")


async def test_a_standby_judges_the_topics_before_it_owns_the_feed(place: Place) -> None:
    async with simulate() as feed:
        owner, standby = (place.bridge(FEED__BASE_URL=feed.url) for _ in range(2))
        await until(lambda: "Live" in owner.states() + standby.states(), "live")
        if "Live" in standby.states():
            owner, standby = standby, owner
        await standby.reaches("Standby")
        name = f"{place.prefix}.bets"
        place.configure("bets", cleanup_policy="delete")
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

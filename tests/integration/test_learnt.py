"""The ids in bets are learnt once, on a real Kafka, whatever happens to runs, records and topics."""

from __future__ import annotations

import json
from collections.abc import Iterable

from confluent_kafka import OFFSET_END, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from bridge_sandbox.provider.rest.faults import RestFault
from tests.harness import Place
from tests.integration.snapshots import (
    Jobs,
    Mentioned,
    Topics,
    delete_topic,
    expected,
    simulated,
    without_ids,
)

DAY = 86_400.0


def forget_records(place: Place, name: str) -> None:
    """Delete all records of a topic, as its retention might if it were not compacted."""
    admin, topic = place.admin(), f"{place.prefix}.{name}"

    def set_policy(policy: str) -> None:
        entry = ConfigEntry("cleanup.policy", policy, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        for future in admin.incremental_alter_configs([resource]).values():
            future.result()

    set_policy("compact,delete")
    partitions = admin.list_topics(topic, timeout=10).topics[topic].partitions
    all_of_it = [TopicPartition(topic, partition, OFFSET_END) for partition in partitions]
    for future in admin.delete_records(all_of_it).values():
        future.result()
    set_policy("compact")


async def test_each_bet_is_read_once(place: Place) -> None:
    async with simulated(bets=300) as provider:
        jobs, topics = Jobs(place, provider, attempts=1), Topics(place)
        bets = await jobs.fill()
        wanted = expected(provider, bets)
        provider.rest.faults.inject(RestFault(endpoint="sports", status=500, times=None))
        await jobs.fails()
        provider.rest.faults.clear()
        assert (await jobs.run()).bets == 0
        assert without_ids(topics.present("translations")) == wanted
        # The translations have read them for both.
        assert [(await jobs.run("currencies")).bets for _ in range(2)] == [0, 0]
        exchanged = topics.present("currencies")
        used = {(bet.get("amount") or {}).get("currency") for bet in bets} - {None}
        assert used <= exchanged.keys()

        await delete_topic(place, "snapshot-state")
        assert (await jobs.run()).bets == len(bets)

        forget_records(place, "bets")
        plan = await jobs.plan(full=True)
        events = Mentioned.by(bets).events
        assert plan["endpoints"]["/api/translations/all/event/{eventId}"]["atLeast"] == len(events)
        for name in ("translations", "currencies"):
            report = await jobs.run(name, full=True)
            assert (report.bets, report.written, report.removed) == (0, 0, 0)


async def test_a_recreated_topic_of_bets_is_read_from_its_beginning(place: Place) -> None:
    async with simulated() as provider:
        jobs = Jobs(place, provider)
        bets = await jobs.fill()
        await jobs.run()
        await delete_topic(place, "bets")
        await jobs.fill()
        await jobs.fill()
        assert (await jobs.run()).bets == 2 * len(bets)


async def test_the_age_of_a_bet_counts_though_it_is_not_read_again(place: Place) -> None:
    async with simulated(bets=80) as provider:
        bets = [json.loads(message.body)["data"] for message in provider.published()]
        rare = next(events for bet in bets if (events := Mentioned.by([bet]).events))
        old = [bet for bet in bets if Mentioned.by([bet]).events & rare]
        new = [bet for bet in bets if not Mentioned.by([bet]).events & rare]
        await Jobs(place, provider).place_bets(old, age=5 * DAY)
        await Jobs(place, provider).place_bets(new)
        for days, full, wanted in (({}, False, new), ({"recent_days": 10}, True, bets)):
            report = await Jobs(place, provider, **days).run(full=full)
            assert report.bets == (0 if full else len(bets))
            assert things(place) == names_of(expected(provider, wanted))
        forgetful = await Jobs(place, provider, recent_days=1, keep_days=4).run(full=True)
        assert forgetful.bets == 0
        assert things(place) == names_of(expected(provider, new))


def things(place: Place) -> set[str]:
    """Return the keys in the topic, without those of templates, which one event may share with another."""
    return names_of(Topics(place).present("translations"))


def names_of(records: Iterable[str]) -> set[str]:
    return {key for key in records if "template" not in key}


async def test_foreign_records_in_the_topics_of_a_job(place: Place) -> None:
    async with simulated() as provider:
        jobs, topics = Jobs(place, provider), Topics(place)
        wanted = expected(provider, await jobs.fill())
        await jobs.run()
        event = next(key for key in wanted if key.startswith("event:"))
        brokers = place.cluster.bootstrap_servers
        producer = Producer({"bootstrap.servers": brokers, "partitioner": "murmur2_random", "log_level": 0})
        for topic, key, value in (
            ("snapshot-state", f"translations/in-use/{event}", b"\xff"),
            ("snapshot-state", "translations/owed/0", b'["event:x"]'),
            ("translations", event, b"\0\0\0\0\1\xff\xff\xff\xff"),
        ):
            producer.produce(f"{place.prefix}.{topic}", value, key)
        assert producer.flush(30) == 0
        await jobs.place_bets(json.loads(message.body)["data"] for message in provider.published())
        await jobs.run(full=True)
        assert without_ids(topics.present("translations")) == wanted

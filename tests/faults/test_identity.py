"""Topics that have the right name, and not what the checkpoint says of them (decision 0045)."""

from __future__ import annotations

import json
import re
import shlex
import time

import pytest
from confluent_kafka import KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from bridge.config import RegistrySettings, Settings
from bridge.kafka import admin
from bridge.kafka.partitioner import partition_of
from bridge.records.topics import declare
from bridge.registry import Registry
from bridge_sandbox.provider.server import Simulator
from tests.harness import Bridge, Place, assert_exact, simulate, until
from tests.repo.source import ROOT

COMMAND = re.compile(r"`bridge (checkpoint set --revision \d+ --reason) …`")


def recreate(place: Place, name: str, partitions: int) -> None:
    """Delete a topic and make it anew, as a tool does that keeps topics by their manifests."""
    place.delete_topic(name)
    place.make_topic(name, partitions, getattr(declare(Settings()), name).config)


def typed(place: Place, text: str) -> None:
    """Type what the message says."""
    command = COMMAND.search(text)
    assert command is not None, text
    done = place.run(*shlex.split(command[1]), "as told", "--yes")
    assert done.returncode == 0, done.stderr


def gaps(place: Place) -> list[str]:
    listed = place.run("gaps", "--json")
    assert listed.returncode == 0, listed.stderr
    return [gap["cause"] for gap in json.loads(listed.stdout)]


async def live(place: Place, feed: Simulator, bets: int = 60, **settings: str) -> Bridge:
    """A bridge that has published some bets."""
    bridge = await place.live(feed, **settings)
    await until(lambda: len(place.read("bets")) >= bets, "bets", so_far=bridge.text)
    return bridge


async def test_a_checkpoint_names_the_topics_and_their_ends(place: Place) -> None:
    async with simulate(rate=50) as feed:
        bridge = await live(place, feed)
        assert await bridge.end() == 0
    checkpoint, client = place.checkpoint(), place.admin()
    for topic, kind in zip(checkpoint["topics"], ("bets", "deadletters", "gaps"), strict=True):
        assert topic["name"] == f"{place.prefix}.{kind}"
        assert topic["id"] == admin.topic_id(client, topic["name"])
        ends = {number: partition["end"] for number, partition in enumerate(topic["partitions"])}
        records = place.read(kind)
        last = {m.partition(): m for m in records}
        assert {p: (m.offset() or 0) + 1 for p, m in last.items()} == {p: e for p, e in ends.items() if e}
        assert all((m.offset() or 0) < ends[m.partition() or 0] for m in records)


async def test_bets_made_anew_are_told_and_received_again(place: Place) -> None:
    async with simulate(rate=50) as feed:
        bridge = await live(place, feed)
        recreate(place, "bets", partitions=3)
        assert await bridge.wait() == 6, bridge.text()
        again = place.bridge(FEED__BASE_URL=feed.url)
        assert await again.wait() == 6, again.text()
        doctor = place.run("doctor", FEED__BASE_URL=feed.url)
        assert "✗ checkpoint" in doctor.stdout, doctor.stdout
        audit = place.run("audit", "--json")
        assert audit.returncode == 1
        assert "topics" in audit.stdout
        for text in (again.text(), doctor.stdout):
            assert f"{place.prefix}.bets is another topic" in " ".join(text.split())
        typed(place, again.text())
        assert gaps(place) == ["RecordsLost"]
        bridge = place.bridge(FEED__BASE_URL=feed.url)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
        doctor = place.run("doctor", FEED__BASE_URL=feed.url)
        assert "✓ checkpoint" in doctor.stdout, doctor.stdout
        assert place.run("audit").returncode == 0


async def test_bets_deleted_from_the_front_are_told_and_received_again(place: Place) -> None:
    async with simulate(rate=50) as feed:
        bridge = await live(place, feed)
        place.configure("bets", cleanup_policy="compact,delete")
        place.delete_records("bets", before=5, partitions=3)
        assert await bridge.wait() == 6, bridge.text()
        assert place.run("topics", "apply").returncode == 0
        doctor = place.run("doctor", FEED__BASE_URL=feed.url)
        assert "✗ checkpoint" in doctor.stdout, doctor.stdout
        again = place.bridge(FEED__BASE_URL=feed.url)
        assert await again.wait() == 6, again.text()
        assert "what partition 0 had before offset 5 was deleted" in again.text()
        assert place.run("audit").returncode == 1
        typed(place, again.text())
        bridge = place.bridge(FEED__BASE_URL=feed.url)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
        assert place.run("audit").returncode == 0


async def test_bets_without_a_checkpoint_are_no_first_start(place: Place) -> None:
    topic = f"{place.prefix}.checkpoints"
    async with simulate(rate=50) as feed:
        bridge = await live(place, feed)
        assert await bridge.end() == 0
        place.configure("checkpoints", cleanup_policy="compact,delete")
        place.delete_records("checkpoints")
        assert place.run("topics", "apply").returncode == 0
        settings = {"FEED__BASE_URL": feed.url, "FEED__START": "0"}
        doctor, refused = place.run("doctor", **settings), place.bridge(**settings)
        assert await refused.wait() == 6, refused.text()
        assert "✗ checkpoint" in doctor.stdout, doctor.stdout
        for text in (doctor.stdout, refused.text()):
            assert f"{topic} is without a checkpoint of the feed" in " ".join(text.split())
        bridge = place.bridge(FEED__BASE_URL=feed.url, FEED__START="1h")
        assert_exact(await place.settled(feed, bridge))


@pytest.mark.parametrize("forgotten", [False, True])
async def test_added_partitions_stay_empty(place: Place, forgotten: bool) -> None:
    """A key stays where it was: a restart finds all versions of a bet in one partition, in order.

    Also where the checkpoint is lost that knew where.
    """
    topic = f"{place.prefix}.bets"
    async with simulate(rate=50, resettle=0.3) as feed:
        bridge = await live(place, feed)
        client = place.admin()
        client.create_partitions([NewPartitions(topic, 12)])[topic].result(30)
        before = len(place.read("bets"))
        await until(lambda: len(place.read("bets")) > before + 50, "bets", so_far=bridge.text)
        assert await bridge.end() == 0
        plan = place.run("topics", "plan")
        assert plan.returncode == 1
        if forgotten:
            recreate(place, "checkpoints", partitions=1)
        bridge = place.bridge(FEED__BASE_URL=feed.url, FEED__START="1h")
        assert_exact(await place.settled(feed, bridge))
    assert all(m.partition() == partition_of(m.key() or b"", 6) for m in place.read("bets"))


def copy(place: Place, other: Place, topic: str, keep: int | None = None) -> None:
    """Copy the records of a topic, without markers, to the topic of another place; of bets the first ones."""
    producer = place.producer()
    records = sorted(place.read(topic), key=lambda m: m.timestamp()[1])
    for m in records[:keep]:
        send(producer, f"{other.prefix}.{topic}", m)
    assert producer.flush(30) == 0


def send(producer: Producer, topic: str, m: Message) -> None:
    value, partition = m.value(), m.partition() or 0
    producer.produce(topic, value, m.key(), partition, timestamp=m.timestamp()[1], headers=m.headers() or [])


async def test_a_mirror_must_have_what_the_checkpoint_says(place: Place) -> None:
    async with simulate(rate=50) as feed:
        bridge = await live(place, feed, bets=100)
        assert await bridge.end() == 0
        for lag in (0, 40):
            mirror = place.below(f"mirror-{lag}")
            assert mirror.run("topics", "apply").returncode == 0
            copy(place, mirror, "bets", len(place.read("bets")) - lag)
            for topic in ("deadletters", "gaps", "checkpoints"):
                copy(place, mirror, topic)
            if lag:
                refused = mirror.bridge(FEED__BASE_URL=feed.url)
                assert await refused.wait() == 6, refused.text()
                assert "may be missing from it" in refused.text()
                found = COMMAND.search(refused.text())
                assert found is not None
                assert int(found[1].split()[3]) < time.time() - 60
                typed(mirror, refused.text())
            bridge = await mirror.live(feed)
            assert_exact(await mirror.settled(feed, bridge))
            assert await bridge.end() == 0
            assert gaps(mirror) == ["RecordsLost"] * bool(lag)
            ids = {topic["name"]: topic["id"] for topic in mirror.checkpoint()["topics"]}
            assert ids == {name: admin.topic_id(mirror.admin(), name) for name in ids}


@pytest.mark.long
async def test_a_copy_with_new_timestamps_is_judged_by_its_newest_bet(place: Place) -> None:
    mirror = place.below("mirror")
    async with simulate(rate=50) as feed:
        bridge = await live(place, feed, bets=100)
        assert await bridge.end() == 0
        assert mirror.run("topics", "apply").returncode == 0
        with Registry(RegistrySettings(url=place.cluster.registry_url)) as registry:
            times = registry.codec("settled-bet", {"settlementTime": {}})
            bets = sorted(place.read("bets"), key=lambda m: times.decode(m.value() or b"")["settlementTime"])
        producer = mirror.producer()
        for m in bets[:-40]:
            producer.produce(f"{mirror.prefix}.bets", m.value(), m.key(), m.partition() or 0)
        assert producer.flush(30) == 0
        copy(place, mirror, "checkpoints")
        refused = mirror.bridge(FEED__BASE_URL=feed.url)
        assert await refused.wait() == 6, refused.text()
        assert "the newest published" in refused.text()
        typed(mirror, refused.text())
        bridge = mirror.bridge(FEED__BASE_URL=feed.url)
        assert_exact(await mirror.settled(feed, bridge))


async def test_a_bet_that_cannot_be_read_is_deleted_as_the_page_says(place: Place) -> None:
    topic = f"{place.prefix}.bets"
    async with simulate(rate=50) as feed:
        bridge = await live(place, feed)
        assert await bridge.end() == 0
        before = place.read("bets")
        written = list[Message]()
        foreign = bytes(1) + (999_999).to_bytes(4, "big")
        place.write("bets", foreign, "x", 0, on_delivery=lambda _, it: written.append(it))
        refused = place.bridge(FEED__BASE_URL=feed.url)
        assert await refused.wait() == 6, refused.text()
        client, up_to = place.admin(), TopicPartition(topic, 0, (written[0].offset() or 0) + 1)
        with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
            client.delete_records([up_to])[up_to].result(30)
        page = (ROOT / "docs/operations.md").read_text("utf-8")
        [wanted] = re.findall(r"--add-config '(cleanup.policy=[^']+)'", page)
        given = [one.partition("=") for one in re.findall(r"[\w.]+=(?:\[.*?\]|[^,]+)", wanted)]
        place.configure("bets", **{name: value.strip("[]") for name, _, value in given})
        client.delete_records([up_to])[up_to].result(30)
        assert place.run("topics", "apply").returncode == 0
        resource = ConfigResource(ResourceType.TOPIC, topic)
        assert client.describe_configs([resource])[resource].result(30)["cleanup.policy"].value == "compact"
        told = place.bridge(FEED__BASE_URL=feed.url)
        assert await told.wait() == 6, told.text()
        typed(place, told.text())
        bridge = await live(place, feed)
        assert await bridge.end() == 0
        kept = {message.value() for message in before if message.partition()}
        assert kept <= {message.value() for message in place.read("bets")}

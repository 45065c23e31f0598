"""Somebody deletes a topic while a bridge runs, on brokers that create topics by themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.kafka import admin
from bridge_sandbox import cluster as dev
from tests.brokers import broker_with, creating_topics
from tests.harness import Place, simulate, until

pytestmark = pytest.mark.xdist_group("creating")
CREATED_SECONDS = 8.0
"""By then a producer that lets brokers create topics has made it anew, which took 4 s."""


@pytest.fixture(scope="module")
def creating(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dev.Cluster]:
    """A broker with Kafka's default: what a client asks for is created."""
    with broker_with(tmp_path_factory.mktemp("creating"), creating_topics) as running:
        yield running


def reasons(topic: str) -> tuple[str, str]:
    """Why a bridge waits, by whether the topic was deleted before a transaction's end or during it."""
    return f"not delivered within 2 s: {topic} is gone", f"{topic}: Broker: Unknown topic or partition"


async def test_a_standby_says_which_topic_is_gone(creating: dev.Cluster, tmp_path: Path) -> None:
    place = Place(creating, "deleted-beside", tmp_path)
    topic, client = f"{place.prefix}.checkpoints", place.admin()
    async with simulate(rate=50) as feed:
        owner = await place.live(feed)
        standby = place.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: "owns the feed" in standby.text(), "it stands by", so_far=standby.text)
        client.delete_topics([topic])[topic].result(30)
        await until(lambda: topic in owner.text(), "the owner's reason", so_far=owner.text)
        assert await owner.end() == 0
        await until(lambda: f"the topic {topic} is gone" in standby.text(), "the reason", so_far=standby.text)
        assert await standby.end() == 0


@pytest.mark.parametrize("name", ["checkpoints", "bets"])
async def test_a_deleted_topic_is_named_and_not_made_anew(
    creating: dev.Cluster, tmp_path: Path, name: str
) -> None:
    place = Place(creating, f"deleted-{name}", tmp_path)
    topic, client = f"{place.prefix}.{name}", place.admin()
    async with simulate(rate=50) as feed:
        bridge = place.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: bool(place.read("bets")), "bets that the next one misses", so_far=bridge.text)
        client.delete_topics([topic])[topic].result(30)
        await until(lambda: any(reason in bridge.text() for reason in reasons(topic)), "the reason")
        await asyncio.sleep(CREATED_SECONDS)
        assert admin.topic_id(client, topic) is None
        assert await bridge.end() == 0
        assert admin.topic_id(client, topic) is None
        again = place.bridge(FEED__BASE_URL=feed.url)
        assert await again.wait() == 6

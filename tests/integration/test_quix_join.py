"""The example that joins settled bets with their names by Quix Streams, from the topics alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from confluent_kafka import Producer

from bridge.sandbox.provider.rest.settings import RestPolicy
from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from bridge.sandbox.provider.world.entities import Sizes
from bridge.sandbox.provider.world.words import LANGUAGES
from tests.harness import Place, assert_exact, until
from tests.integration.quix import Join, Truth, compared, environment_python

NEW_NAME = "Another sport"
IDLE_SECONDS = 15
PROVIDER = SimulatorSettings(
    port=0,
    rate=40,
    history_seconds=10,
    resettle=0.2,
    sizes=Sizes(sports=3, leagues=12, competitors=60, events=15),
    api=RestPolicy(rate=1000, burst=1000),
)


async def publish_names(place: Place, feed: Simulator) -> None:
    """Publish a complete snapshot of the provider's current names."""
    token = feed.rest.tokens.mint(feed.clock())
    ran = await asyncio.to_thread(
        place.run,
        *("translations", "--full"),
        API__BASE_URL=feed.url,
        API__TOKEN=token,
        API__LANGUAGES=json.dumps(LANGUAGES),
        API__REQUESTS_PER_SECOND="500",
    )
    assert ran.returncode == 0, ran.stderr


def abort(place: Place, records: dict[str, tuple[bytes, bytes]]) -> None:
    """Write a record to each of some topics, in a transaction that is aborted."""
    producer = Producer(
        {
            "bootstrap.servers": place.cluster.bootstrap_servers,
            "transactional.id": f"{place.prefix}.aborting",
            "partitioner": "murmur2_random",  # behind the record that has the same key
            "log_level": 0,
        }
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    for topic, (key, value) in records.items():
        producer.produce(f"{place.prefix}.{topic}", value, key)
    assert producer.flush(20) == 0
    producer.abort_transaction(20)


def misnamed(place: Place) -> dict[str, tuple[bytes, bytes]]:
    """A translation with another entry's texts, and a bet under a key that no bet has."""
    by_key = {bytes(m.key() or b""): bytes(m.value() or b"") for m in place.read("translations")}
    [bet, *_] = place.read("bets")
    return {"translations": (b"sport:1", by_key[b"region:100"]), "bets": (b"aborted", bet.value() or b"")}


async def test_every_bet_comes_with_its_names_in_every_language(place: Place) -> None:
    """Corrections have the values they correct; new names apply once published; no aborted records."""
    await asyncio.to_thread(environment_python)
    with Join(place, IDLE_SECONDS) as early:
        assert await asyncio.to_thread(early.process.wait, 60) == 1
        assert f"there is no topic {place.prefix}.bets" in early.text()
        assert f"{place.prefix}.bets" not in place.admin().list_topics(timeout=10).topics
    async with Simulator(PROVIDER) as feed:
        bridge = place.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: "Live" in bridge.states(), "live")
        await publish_names(place, feed)
        before = Truth(feed.rest.catalogue.truth())
        await asyncio.to_thread(lambda: abort(place, misnamed(place)))
        with Join(place, IDLE_SECONDS) as join:
            await until(lambda: len(join.bets()) > 500, "500 bets")
            early_count = len(join.bets())
            feed.rest.catalogue.rename("sport", 1, NEW_NAME)
            await publish_names(place, feed)
            changed_at = feed.now()
            await asyncio.sleep(4)
            assert_exact(await place.settled(feed, bridge))
            assert await bridge.end() == 0
            assert await join_ended(join) == 0, join.text()
        after = Truth(feed.rest.catalogue.truth())
        published = [message for message in feed.published() if message.bet_id is not None]
    lines = {(line["betId"], line["settlementVersion"]): line for line in join.bets()}
    assert len(lines) == len(join.bets()) == len(published)

    renamed, corrections = 0, 0
    previous: dict[str, dict[str, Any]] = {}
    early_ones = {(line["betId"], line["settlementVersion"]) for line in join.bets()[:early_count]}
    for message in published:
        old, new = before.line(message), after.line(message)
        identity = old["betId"], old["settlementVersion"]
        line = lines[identity]
        if identity in early_ones:
            assert compared(line) == old
        elif message.at > changed_at + 1:
            assert compared(line) == new
            renamed += old != new
        else:
            assert compared(line) in (old, new)
        assert line["corrects"] == previous.get(old["betId"])
        corrections += line["corrects"] is not None
        previous[old["betId"]] = {
            name: old[name] for name in ("settlementVersion", "betSettlement", "payout")
        }
    assert renamed > 10
    assert corrections > 10
    assert any(item["parts"] for message in published for item in before.line(message)["selections"])


async def join_ended(join: Join) -> int:
    """The exit code of a join that receives no more bets."""
    return await asyncio.to_thread(join.process.wait, 90)

"""Bets that a bridge has published, played again to another bridge: from the topic, and from a file."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Bridge, Place, assert_exact, simulate, until
from tests.integration.snapshots import Jobs, Topics, simulated, without_ids
from tests.recordings import write

pytestmark = pytest.mark.long


def published(place: Place) -> dict[bytes, list[bytes]]:
    """Key → the Avro bodies of its records, in order."""
    found: dict[bytes, list[bytes]] = defaultdict(list)
    for message in place.read("bets"):
        found[message.key() or b""].append((message.value() or b"")[5:])
    return found


async def address_of(simulator: Bridge) -> str:
    await until(lambda: "provider at http" in simulator.text() or simulator.process.poll() is not None, "it")
    assert simulator.process.poll() is None, simulator.text()
    return simulator.text().partition("provider at ")[2].split()[0]


async def test_what_a_topic_received_is_published_again(place: Place, tmp_path: Path) -> None:
    async with simulate(rate=100, history_seconds=10, resettle=0.3) as feed:
        bridge = place.bridge(FEED__BASE_URL=feed.url)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
    recorded = published(place)
    assert sum(map(len, recorded.values())) > 1_000

    arguments = ["--port", "0", "--bets", "topic:1h", "--speed", "max", "--keep-times"]
    simulator = place.bridge("simulate", *arguments)
    again = place.below("again")
    bridge = again.bridge(FEED__BASE_URL=await address_of(simulator))
    await until(lambda: published(again) == recorded, "the same bytes")
    assert await bridge.end() == 0
    assert "the recording has ended" in simulator.text()

    bets = (body for bodies in recorded.values() for body in bodies)
    codec = Codec(load("settled-bet"), 1)
    data = sorted((codec.decode(codec.header + body) for body in bets), key=lambda bet: bet["settlementTime"])
    path = write(tmp_path / "bets.avro", data)
    async with Simulator(SimulatorSettings(port=0, bets=(path,), ping_seconds=0.5)) as feed:
        now = place.below("now")
        bridge = await now.live(feed)
        assert_exact(await now.settled(feed, bridge))
        assert not feed.breaches
        assert await bridge.end() == 0


async def test_names_of_the_topics_are_published_again(place: Place) -> None:
    again, token = place.below("again"), place.directory / "recorded.token"
    async with simulated() as provider:
        jobs = Jobs(place, provider)
        await jobs.fill()
        for name in ("translations", "currencies"):
            await jobs.published(name)
        recorded = {name: without_ids(Topics(place).present(name)) for name in ("translations", "currencies")}
        assert min(map(len, recorded.values())) > 5

        arguments = ["--bets", "topic", "--names", "topic", "--speed", "max", "--api-rate", "1000"]
        simulator = place.bridge("simulate", "--port", "0", "--api-token-file", str(token), *arguments)
        address = await address_of(simulator)
        bridge = again.bridge(FEED__BASE_URL=address)
        await until(lambda: published(again).keys() == published(place).keys(), "the same bets")
        assert await bridge.end() == 0
        jobs = Jobs(again, provider, base_url=address, token_file=str(token))
        for name in ("translations", "currencies"):
            await jobs.published(name)
            assert without_ids(Topics(again).present(name)) == recorded[name]

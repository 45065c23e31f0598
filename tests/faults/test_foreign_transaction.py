"""A foreign open transaction on the topic of bets hides the records committed after it began."""

from __future__ import annotations

import asyncio

from confluent_kafka import Producer

from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from tests.harness import Place, assert_exact, until

PARTITIONS = 6


async def test_a_new_owner_waits_for_what_an_open_transaction_hides(place: Place) -> None:
    """The next owner neither connects nor publishes before it can read all records."""
    async with Simulator(SimulatorSettings(port=0, rate=100, history_seconds=5)) as feed:
        settings = {"FEED__BASE_URL": feed.url, "LIMITS__SCALE": "1"}
        bridge = place.bridge(**settings)
        await until(lambda: "Live" in bridge.states(), "live")
        other = Producer(
            {
                "bootstrap.servers": place.cluster.bootstrap_servers,
                "transactional.id": f"{place.prefix}.other-feed",
                "transaction.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        await asyncio.to_thread(other.init_transactions, 20)
        other.begin_transaction()
        for partition in range(PARTITIONS):
            other.produce(f"{place.prefix}.bets", b"never visible", b"other", partition=partition)
        assert await asyncio.to_thread(other.flush, 20) == 0
        await asyncio.sleep(2)  # what the bridge commits now is hidden from read_committed readers
        bridge.kill()
        connections = len(feed.connections)
        successor = place.bridge(**settings)
        await until(lambda: "Standby" in successor.states(), "standing by")
        await asyncio.sleep(6)  # longer than the dead owner keeps its place in the group
        assert len(feed.connections) == connections
        await asyncio.to_thread(other.abort_transaction, 20)
        await until(lambda: "Live" in successor.states(), "live")
        assert_exact(await place.settled(feed, successor))
        assert not feed.breaches

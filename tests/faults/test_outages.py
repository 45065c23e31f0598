"""Faults of the bridge and its surroundings: no bet is lost or duplicated."""

from __future__ import annotations

import asyncio
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from urllib.parse import urlsplit

from tests.harness import Place, assert_exact, simulate, until


async def test_a_clean_end_hands_over_at_once(cold: Place) -> None:
    async with simulate() as feed:
        first = cold.bridge(FEED__BASE_URL=feed.url, KAFKA__SESSION_TIMEOUT_MS="45000")
        second = cold.bridge(FEED__BASE_URL=feed.url, KAFKA__SESSION_TIMEOUT_MS="45000")
        await until(lambda: "Live" in first.states() + second.states(), "one of them is live")
        owner, standby = (first, second) if "Live" in first.states() else (second, first)
        assert await owner.end() == 0
        assert owner.states()[-1] == "Stopped"
        # A session lasts 45 s: had the group not been left, the standby would wait that long.
        await until(lambda: "Live" in standby.states(), "the standby is live", 30)
        assert_exact(await cold.settled(feed, standby))
        assert await standby.end() == 0


@contextmanager
def idle_clients(url: str | None, number: int) -> Iterator[None]:
    """Hold connections that send nothing."""
    target = urlsplit(url)
    with ExitStack() as held:
        for _ in range(number):
            client = held.enter_context(closing(socket.socket()))
            client.setblocking(False)  # do not wait for those that are not accepted
            client.connect_ex((target.hostname, target.port))
        yield


async def test_broker_and_registry_away_for_longer_than_a_transaction_may_last(
    cold: Place,
) -> None:
    """The bridge still owns the feed after the outage, finds its producer fenced, and recovers by itself.

    Also with 256 descriptors and 400 idle clients at its web port, and it answers probes all the time.
    """
    settings = {"KAFKA__TRANSACTION_TIMEOUT_MS": "10000", "KAFKA__SESSION_TIMEOUT_MS": "60000"}
    async with simulate() as feed:
        bridge = cold.bridge(FEED__BASE_URL=feed.url, **settings)
        resource.prlimit(bridge.process.pid, resource.RLIMIT_NOFILE, (256, 256))
        await bridge.reaches("Live")
        with idle_clients(bridge.address(), 400):
            assert (await bridge.get("/healthz")).status_code == 200
            await asyncio.to_thread(cold.cluster.servers["registry"].stop)
            await asyncio.to_thread(cold.cluster.servers["kafka-1"].stop, kill=True)
            await until(lambda: bridge.states()[-1] == "WaitingForKafka", "waiting", so_far=bridge.text)
            await asyncio.sleep(15)  # longer than a transaction may last
            assert (await bridge.get("/healthz")).status_code == 200
            await asyncio.to_thread(cold.cluster.restart, "kafka-1")
            await bridge.reaches("Live", 2)
            assert (await bridge.get("/healthz")).status_code == 200
            await asyncio.to_thread(cold.cluster.restart, "registry")
            assert_exact(await cold.settled(feed, bridge))
        assert await bridge.end() == 0
        assert not feed.breaches


async def test_sigterm_while_the_broker_is_away(cold: Place) -> None:
    async with simulate() as feed:
        bridge = cold.bridge(FEED__BASE_URL=feed.url)
        await bridge.reaches("Live")
        await asyncio.to_thread(cold.cluster.servers["kafka-1"].stop, kill=True)
        await asyncio.sleep(1)
        bridge.signal(signal.SIGTERM)
        assert await bridge.wait() == 0
        bridge = cold.bridge(FEED__BASE_URL=feed.url)
        await bridge.reaches("WaitingForKafka")
        await asyncio.to_thread(cold.cluster.restart, "kafka-1")
        assert_exact(await cold.settled(feed, bridge))
        assert await bridge.end() == 0

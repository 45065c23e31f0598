"""Faults of the bridge and its surroundings: no bet is lost or duplicated."""

from __future__ import annotations

import asyncio
import re
import resource
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from bridge_sandbox.provider.faults import Clear, Drop, Refuse, Stall
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Bridge, Place, assert_exact, until
from tests.processes import send
from tests.proxy import pipe
from tests.time_lapse import TimeLapse


def provider(**settings: object) -> Simulator:
    return Simulator(SimulatorSettings.model_validate({"port": 0, "rate": 20, **settings}))


async def live(bridge: Bridge, times: int = 1) -> None:
    await until(
        lambda: bridge.states().count("Live") >= times,
        f"live for the {times}. time",
        so_far=bridge.text,
    )


async def test_killed_at_any_moment(cold: Place) -> None:
    async with provider(limits_scale=300, history_seconds=20) as feed:
        bridge = cold.bridge(FEED__BASE_URL=feed.url, LIMITS__SCALE="300")
        for number in range(3):
            await until(lambda n=number: len(feed.connections) > n, f"connection {number + 1}")  # type: ignore[misc]
            await asyncio.sleep(0.4 * number)
            bridge.kill()
            bridge = cold.bridge(FEED__BASE_URL=feed.url, LIMITS__SCALE="300")
        assert_exact(await cold.settled(feed, bridge))
        assert await bridge.end() == 0
        assert not feed.breaches
    cold.balanced_counters()


async def test_a_standby_takes_over_when_the_owner_dies(place: Place) -> None:
    async with provider() as feed:
        first = place.bridge(FEED__BASE_URL=feed.url)
        await live(first)
        second = place.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: second.states() == ["Standby"], "the second stands by")
        await asyncio.sleep(4)
        assert second.states() == ["Standby"]
        assert len(feed.connections) == 1
        assert first.states().count("Standby") == 1, "a newcomer takes nothing away"
        first.kill()
        await live(second)
        assert_exact(await place.settled(feed, second))
        assert await second.end() == 0


async def test_a_clean_end_hands_over_at_once(cold: Place) -> None:
    async with provider() as feed:
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


async def test_an_owner_that_was_paused_writes_nothing(place: Place) -> None:
    async with provider(second="replace") as feed:
        first = place.bridge(FEED__BASE_URL=feed.url)
        await live(first)
        second = place.bridge(FEED__BASE_URL=feed.url)
        await until(lambda: second.states() == ["Standby"], "the second stands by")
        first.signal(signal.SIGSTOP)
        await live(second)
        first.signal(signal.SIGCONT)
        await until(lambda: first.states().count("Standby") >= 2, "the first stands by")
        await asyncio.sleep(2)
        assert_exact(await place.settled(feed, second))
        assert len(feed.connections) == 2
        assert await second.end() == 0
        await first.end()
    owners = {line["owner"] for line in second.lines() if "owner" in line}
    assert place.checkpoint()["owner"] in owners | {
        line["owner"] for line in first.lines() if "owner" in line
    }


class Front:
    """A TCP port of its own before the provider's, which can be away."""

    def __init__(self, port: int) -> None:
        self._provider = port
        self._port = 0
        self._links: set[asyncio.StreamWriter] = set()

    async def open(self) -> str:
        """Listen, each time at the same port. Returns the address."""
        self._server = await asyncio.start_server(self._forward, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{self._port}"

    async def close(self) -> None:
        """Refuse connections, and cut those there are."""
        self._server.close()
        for link in self._links:
            link.transport.abort()
        await self._server.wait_closed()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._provider)
        links = {writer, back}
        self._links |= links
        await asyncio.gather(pipe(reader, back), pipe(there, writer))
        self._links -= links


async def failed(bridge: Bridge, times: int) -> None:
    """Wait until so many connection attempts of a bridge have failed."""
    while True:
        metrics = (await bridge.get("/metrics")).text
        [found] = re.findall(
            r'^bridge_connections_total\{.*result="failed".*\} (\S+)$', metrics, re.MULTILINE
        )
        if float(found) >= times:
            return
        await asyncio.sleep(0.2)


@pytest.mark.parametrize("when", ["live", "at a start"])
async def test_a_provider_that_nothing_reaches_spends_nothing_of_its_limits(cold: Place, when: str) -> None:
    async with provider() as feed:
        front = Front(feed.port)
        url = await front.open()
        bridge = cold.bridge(FEED__BASE_URL=url)
        await live(bridge)
        if when == "at a start":
            assert await bridge.end() == 0
        await front.close()
        if when == "at a start":
            bridge = cold.bridge(FEED__BASE_URL=url)
        before = bridge.states().count("Live")
        await failed(bridge, 12)
        assert bridge.states()[-1] == "BackingOff"
        await front.open()
        await live(bridge, before + 1)
        assert len(feed.connections) == len(cold.checkpoint()["connections"]) == 2
        assert_exact(await cold.settled(feed, bridge))
        assert await bridge.end() == 0
        assert not feed.breaches
        await front.close()
    cold.balanced_counters()


async def test_the_pause_that_a_refusal_asks_for_outlives_the_process(cold: Place) -> None:
    async with provider() as feed:
        bridge = cold.bridge(FEED__BASE_URL=feed.url)
        await live(bridge)
        feed.inflict(Refuse(count=1, retry_after=20))
        feed.inflict(Drop())
        await until(lambda: bridge.states()[-1] == "WaitingForLimit", "waiting", so_far=bridge.text)
        assert bridge.lines()[-1]["reason"] == "the provider asked for a pause of 20s (Retry-After)"
        bridge.kill()
        bridge = cold.bridge(FEED__BASE_URL=feed.url)
        await live(bridge)
        _, refused, accepted = feed.connections
        assert accepted.at - refused.at > 19.9
        assert_exact(await cold.settled(feed, bridge))
        assert await bridge.end() == 0
    cold.balanced_counters()


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
    cold: Place, tmp_path: Path
) -> None:
    """The bridge still owns the feed after the outage, finds its producer fenced, and recovers by itself.

    Also with 256 descriptors and 400 idle clients at its web port, and it answers probes all the time.
    Prometheus tells that it waits.
    """
    settings = {"KAFKA__TRANSACTION_TIMEOUT_MS": "10000", "KAFKA__SESSION_TIMEOUT_MS": "60000"}
    async with provider() as feed, TimeLapse(every=0.3) as lapse:
        bridge = cold.bridge(FEED__BASE_URL=feed.url, **settings)
        lapse.pods["a"] = bridge
        resource.prlimit(bridge.process.pid, resource.RLIMIT_NOFILE, (256, 256))
        await live(bridge)
        lapse.scrapes.expect()
        with idle_clients(bridge.address(), 400):
            assert (await bridge.get("/healthz")).status_code == 200
            await asyncio.to_thread(cold.cluster.servers["registry"].stop)
            await asyncio.to_thread(cold.cluster.servers["kafka-1"].stop, kill=True)
            await until(lambda: bridge.states()[-1] == "WaitingForKafka", "waiting", so_far=bridge.text)
            await lapse.pass_by(600)
            lapse.scrapes.expect(SettlementWaitingForKafka={"namespace": "n", "feed": "settlement-v4"})
            assert (await bridge.get("/healthz")).status_code == 200
            await asyncio.to_thread(cold.cluster.restart, "kafka-1")
            await live(bridge, 2)
            assert (await bridge.get("/healthz")).status_code == 200
            await asyncio.to_thread(cold.cluster.restart, "registry")
            assert_exact(await cold.settled(feed, bridge))
            lapse.scrapes.expect()
        assert await bridge.end() == 0
        assert not feed.breaches
    lapse.scrapes.judge(tmp_path, "SettlementWaitingForKafka")


async def test_a_paused_broker(cold: Place) -> None:
    settings = {"KAFKA__TRANSACTION_TIMEOUT_MS": "10000", "KAFKA__SESSION_TIMEOUT_MS": "60000"}
    async with provider() as feed:
        bridge = cold.bridge(FEED__BASE_URL=feed.url, **settings)
        await live(bridge)
        send(cold.cluster.servers["kafka-1"], signal.SIGSTOP)
        await asyncio.sleep(13)
        send(cold.cluster.servers["kafka-1"], signal.SIGCONT)
        assert_exact(await cold.settled(feed, bridge))
        assert await bridge.end() == 0


async def test_sigterm_while_the_broker_is_away(cold: Place) -> None:
    async with provider() as feed:
        bridge = cold.bridge(FEED__BASE_URL=feed.url)
        await live(bridge)
        await asyncio.to_thread(cold.cluster.servers["kafka-1"].stop, kill=True)
        await asyncio.sleep(1)
        bridge.signal(signal.SIGTERM)
        assert await bridge.wait() == 0
        bridge = cold.bridge(FEED__BASE_URL=feed.url)
        await bridge.reaches("WaitingForKafka")
        await asyncio.to_thread(cold.cluster.restart, "kafka-1")
        assert_exact(await cold.settled(feed, bridge))
        assert await bridge.end() == 0


async def test_a_half_open_socket_is_given_up(place: Place) -> None:
    async with provider(ping_seconds=0.3, limits_scale=100, second="replace") as feed:
        settings = {"FEED__IDLE_TIMEOUT_SECONDS": "2", "LIMITS__SCALE": "100"}
        bridge = place.bridge(FEED__BASE_URL=feed.url, **settings)
        await live(bridge)
        feed.inflict(Stall())
        await bridge.reaches("IdleTimeout")
        feed.inflict(Clear())
        await live(bridge, 2)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
        assert not feed.breaches

"""The feed: what the bridge relies on when it connects to the provider (`FeedConnection`)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from bridge import clock
from bridge.clock import Clock
from bridge.config import FeedSettings
from bridge.errors import FeedLost, FeedRefused, FeedUnreached
from bridge.feed.protocol import HandshakeRequest, request
from bridge.feed.received import Received
from bridge.service.interfaces import FeedConnection
from bridge_sandbox.provider.faults import Drop, Fault, Refuse
from bridge_sandbox.provider.feed import Provider
from bridge_sandbox.provider.settings import SimulatorSettings

SIMULATED = SimulatorSettings(port=0, rate=100, history_seconds=60, ping_seconds=0.1)
REPLAYED = 20
"""Seconds of its history that a connection asks for."""
PATIENCE = 10.0


@dataclass
class Client:
    """A connection, and what was taken from it."""

    connection: FeedConnection
    woken: asyncio.Event
    taken: list[Received] = field(default_factory=list)

    def among(self, bodies: list[bytes]) -> list[bytes]:
        """Return what was taken of these."""
        wanted = {*bodies}
        return [it.body for it in self.taken if isinstance(it.body, bytes) and it.body in wanted]

    def has(self, body: bytes) -> bool:
        """Whether it is among the last that came."""
        return any(it.body == body for it in self.taken[-50:])

    def take(self) -> None:
        """Take what has come, a few at a time."""
        while self.connection.waiting:
            some = self.connection.receive_many(7)
            assert 0 < len(some) <= 7
            self.taken += some

    async def until(self, done: Callable[[], bool], *, takes: bool = True) -> None:
        """Wait until `done`; what comes wakes it up."""
        async with asyncio.timeout(PATIENCE):
            while not done():
                self.woken.clear()
                if takes:
                    self.take()
                if takes and not done():
                    await self.woken.wait()
                await asyncio.sleep(0)


@dataclass
class Line:
    """The simulated provider, and a way to it."""

    provider: Provider
    settings: FeedSettings
    connects: Callable[[FeedSettings, HandshakeRequest, Callable[[], None], Clock], Awaitable[FeedConnection]]
    now: Callable[[], float]
    """The provider's time, Unix seconds."""
    inflict: Callable[[Fault], object]
    replies: Callable[[], list[str]]
    """What it was sent."""
    cut_off: Callable[[], Awaitable[None]]
    """Nobody reaches it any more."""

    async def client(self, revision: int) -> Client:
        """Connect, in one attempt."""
        woken = asyncio.Event()
        asked = request(self.settings, revision)
        return Client(await self.connects(self.settings, asked, woken.set, clock.now), woken)

    def replayed(self) -> int:
        """A revision of a while ago."""
        return int(self.now()) - REPLAYED


class FeedContract:
    """The suite; the fixture `line` is a provider of `SIMULATED`, to whom nobody has connected."""

    async def test_a_replay_brings_each_message_once_and_in_order_and_then_the_live_ones(
        self, line: Line
    ) -> None:
        client, since = await line.client(line.replayed()), line.replayed()
        line.provider.log.end = line.now() + 0.3
        sent = [it.body for it in line.provider.log.read(since, line.provider.log.end)]
        await client.until(lambda: client.has(sent[-1]))
        assert client.among(sent) == sent
        assert len(sent) > 10 * REPLAYED
        received = [it.at for it in client.taken]
        assert received == sorted(received)
        assert abs(client.connection.heard_at - clock.now().monotonic) < PATIENCE
        assert client.connection.skew is not None
        await client.connection.disconnect()

    async def test_what_is_not_taken_waits_and_nothing_is_lost(self, line: Line) -> None:
        client, since = await line.client(line.replayed()), line.replayed()
        line.provider.log.end = line.now()
        sent = [it.body for it in line.provider.log.read(since, line.provider.log.end)]
        await client.until(lambda: client.connection.reading_paused, takes=False)
        assert client.connection.waiting
        await client.until(lambda: client.has(sent[-1]))
        assert client.among(sent) == sent
        await client.connection.disconnect()

    async def test_a_ping_is_answered(self, line: Line) -> None:
        client = await line.client(0)
        await client.until(lambda: bool(client.taken))
        client.connection.reply("here")
        await client.until(lambda: line.replies() == ["here"])
        await client.connection.disconnect()

    async def test_who_disconnects_makes_room_for_the_next(self, line: Line) -> None:
        client = await line.client(0)
        with pytest.raises(FeedRefused, match="409"):
            await line.client(0)
        await client.connection.disconnect()
        await client.until(lambda: line.provider.active is None, takes=False)
        await (await line.client(0)).connection.disconnect()

    @pytest.mark.parametrize(("code", "error"), [(1001, FeedLost), (1008, FeedRefused)])
    async def test_one_that_is_closed_says_why_once_what_came_is_taken(
        self, line: Line, code: int, error: type[FeedLost | FeedRefused]
    ) -> None:
        client = await line.client(line.replayed())
        await client.until(lambda: len(client.taken) > 10)
        line.inflict(Drop(code=code))
        await client.until(lambda: client.connection.ended)
        client.take()
        reason = client.connection.end_reason()
        assert type(reason) is error
        assert str(code) in str(reason)
        await client.connection.disconnect()

    async def test_a_refusal_has_its_status_and_its_pause(self, line: Line) -> None:
        line.inflict(Refuse(status=429, retry_after=30, count=1))
        with pytest.raises(FeedRefused) as refused:
            await line.client(0)
        assert (refused.value.status, refused.value.retry_after) == (429, 30.0)
        assert refused.value.skew is not None

    async def test_a_provider_that_is_not_reached_spends_no_attempt(self, line: Line) -> None:
        await line.cut_off()
        with pytest.raises(FeedUnreached):
            await line.client(0)
        assert line.provider.attempts == []

"""A provider that sends arbitrary bytes, and a bridge whose memory and event-loop turns are measured."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import TopicPartition
from websockets.frames import Opcode
from websockets.utils import accept_key

from tests.bombs import Bomb, bet, text
from tests.frames import frame
from tests.harness import Bridge, Place, until

MEMORY_MIB = 256
HOLD_MS = 1_000
"""Neither may be reached, whatever is sent."""
_BEAT_SECONDS = 0.5
_LETTERS_SECONDS = 30.0


class RawProvider:
    """Accepts each connection, with compression, and pings it while nothing else is sent."""

    def __init__(self) -> None:
        self.connections = 0
        self.url = ""
        self._writer: asyncio.StreamWriter | None = None
        self._sending = asyncio.Lock()
        self._listens = asyncio.Event()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it disconnects."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            asked = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in asked)}
            if "sec-websocket-key" not in headers:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                writer.close()
                return
            accepted = accept_key(headers["sec-websocket-key"])
            writer.write(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                "Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n"
                f"Sec-WebSocket-Accept: {accepted}\r\n\r\n".encode()
            )
            self.connections += 1
            self._writer = writer
            while await reader.read(65536):
                await self._listens.wait()
        if self._writer is writer:
            self._writer = None
        writer.close()

    async def beat(self) -> None:
        """Ping, so that the connection does not become idle."""
        while True:
            await asyncio.sleep(_BEAT_SECONDS)
            if not self._sending.locked():
                await self.send([frame(Opcode.PING, b"")])

    async def connected(self) -> None:
        """Wait for a connection."""
        await until(lambda: self._writer is not None, "a connection")

    async def send(self, pieces: Iterable[bytes], *, listen: bool = True) -> int:
        """Send these bytes, as fast as they are read. Returns how many, even if the bridge disconnects first.

        Meanwhile what the bridge sends is read or not.
        """
        sent = 0
        async with self._sending:
            await self.connected()
            writer = self._writer
            assert writer is not None
            if not listen:
                self._listens.clear()
            with contextlib.suppress(OSError):
                for piece in pieces:
                    if writer.is_closing():
                        break
                    writer.write(piece)
                    sent += len(piece)
                    await writer.drain()
            self._listens.set()
        return sent


@asynccontextmanager
async def raw_provider() -> AsyncIterator[RawProvider]:
    """A raw provider on the loopback interface."""
    provider = RawProvider()
    server = await asyncio.start_server(provider.accept, "127.0.0.1", 0)
    provider.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    beating = asyncio.create_task(provider.beat())
    try:
        yield provider
    finally:
        beating.cancel()
        server.close()


class Topics:
    """The bets and dead letters that became visible since the last look."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._consumer = place.consumer(fetch_message_max_bytes=1024 * 1024, queued_max_messages_kbytes=65536)
        topics = self._consumer.list_topics(timeout=10).topics
        self._consumer.assign(
            [
                TopicPartition(f"{place.prefix}.{name}", partition, 0)
                for name in ("bets", "deadletters")
                for partition in topics[f"{place.prefix}.{name}"].partitions
            ]
        )
        self.letters: Counter[str] = Counter()
        self.bets: Counter[str] = Counter()

    def look(self) -> None:
        """Read the new records."""
        for message in self._consumer.consume(1000, timeout=0.05):
            if message.error() is None:
                if (message.topic() or "").endswith(".bets"):
                    self.bets[(message.key() or b"").decode()] += 1
                else:
                    headers = dict(message.headers() or [])
                    self.letters[bytes(headers["kind"] or b"").decode()] += 1  # type: ignore[arg-type]

    def close(self) -> None:
        """End it."""
        self._consumer.close()


@dataclass(frozen=True)
class Damage:
    """The effect of a bomb."""

    bomb: str
    wire: int
    """Bytes sent."""
    peak_mib: float
    """The most memory that the process had meanwhile."""
    held_ms: float
    """The longest turn of its event loop, of CPU."""
    letters: dict[str, int]
    published: int
    connections: int
    """How often the bridge has connected again."""


class Target:
    """A running bridge, with the provider and the topics around it."""

    def __init__(self, place: Place, provider: RawProvider, bridge: Bridge, turns: Path) -> None:
        self._provider, self._bridge, self._turns = provider, bridge, turns
        self._topics = Topics(place)
        self._number = 0

    async def throw(self, bomb: Bomb, *, endless: bool = False) -> Damage:
        """Send a bomb and a bet behind it; returns when the bet is published.

        An endless one is sent, and what the bridge answers is not read, until it disconnects.
        """
        proc, provider, topics = Path(f"/proc/{self._bridge.process.pid}"), self._provider, self._topics
        letters, bets, before = topics.letters.copy(), topics.bets.total(), provider.connections
        size = self._turns.stat().st_size if self._turns.exists() else 0
        (proc / "clear_refs").write_text("5")  # the peak is what it is now
        wire = await provider.send(bomb.wire(), listen=not endless)
        if endless:
            await until(lambda: provider.connections > before, "the next connection")
        self._number += 1
        sentinel = f"sentinel-{self._number}"
        await provider.send([frame(Opcode.TEXT, text(bet(sentinel)))])
        await self._seen(sentinel, letters + Counter(bomb.letters))
        status = (proc / "status").read_text()
        peak = int(status.partition("VmHWM:")[2].split()[0]) / 1024
        turns = (
            [float(line) for line in self._turns.read_text()[size:].split()] if self._turns.exists() else []
        )
        return Damage(
            bomb.name,
            wire,
            peak,
            max(turns, default=0.0),
            dict(topics.letters - letters),
            topics.bets.total() - bets - 1,
            provider.connections - before,
        )

    async def _seen(self, key: str, letters: Counter[str]) -> None:
        """Wait for the bet, then for dead letters before it: large ones may reach the reader later."""
        while not self._topics.bets[key]:
            assert self._bridge.process.poll() is None, self._bridge.text()[-2000:]
            await asyncio.to_thread(self._topics.look)
        deadline = time.monotonic() + _LETTERS_SECONDS
        while not letters <= self._topics.letters and time.monotonic() < deadline:
            await asyncio.to_thread(self._topics.look)
        await asyncio.to_thread(self._topics.look)  # whatever else there is

    def close(self) -> None:
        """End what it reads with."""
        self._topics.close()


@asynccontextmanager
async def target(place: Place, **settings: str) -> AsyncIterator[Target]:
    """A bridge under attack."""
    turns = place.directory / "turns"
    async with raw_provider() as provider:
        bridge = place.watched(
            turns,
            FEED__BASE_URL=provider.url,
            FEED__PROXY="none",
            FEED__PING_REPLY="echo",
            LIMITS__SCALE="600",
            FEED__START="2m",
            **settings,
        )
        await provider.connected()
        aimed = Target(place, provider, bridge, turns)
        try:
            yield aimed
            assert await bridge.end() == 0
        finally:
            aimed.close()


def broken_bounds(bomb: Bomb, damage: Damage, connections: int = 0) -> list[str]:
    """Return the bounds that a bomb has broken."""
    checks = {
        f"{damage.peak_mib:.0f} MiB": damage.peak_mib < MEMORY_MIB,
        f"held for {damage.held_ms:.0f} ms": damage.held_ms < HOLD_MS,
        f"dead letters: {damage.letters}": damage.letters == bomb.letters,
        f"bets: {damage.published}": damage.published == bomb.published,
        f"connections: {damage.connections}": damage.connections == connections,
    }
    return [what for what, is_right in checks.items() if not is_right]

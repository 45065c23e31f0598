"""An open connection: what comes through it, how it is held back, and how it ends."""

from __future__ import annotations

import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.frames import Close, Opcode

from bridge.clock import Instant, now
from bridge.errors import FeedLost, FeedRefused
from bridge.feed import client
from bridge.feed.client import QUEUE_BYTES, QUEUE_MESSAGES
from bridge.feed.framing import HEAD_BYTES
from bridge.feed.received import Oversized
from tests.frames import frame
from tests.tls import Authority
from tests.unit.feed.provider import ONE_READ, PATIENCE, provider, reading, sending


@pytest.mark.parametrize("compression", ["deflate", "none"])
async def test_messages_of_any_size_come_as_they_were_sent(compression: str) -> None:
    large = hashlib.sha256(b"x").digest() * 30_000  # hardly compressible, several slices long
    used: list[int] = []

    async def handler(server: ServerConnection) -> None:
        used.append(len(server.protocol.extensions))
        await server.send("å")
        await server.send(b"\xff\x00")
        await server.send(large)
        await server.send(iter([large[:70_000], b"", large[70_000:]]))
        await server.send("")

    async with provider(handler) as url, reading(url, compression=compression) as reader:
        got = await reader.take(5)
    assert [m.body for m in got] == ["å".encode(), b"\xff\x00", large, large, b""]
    assert used == [1 if compression == "deflate" else 0]
    assert not any(m.after_read_pause for m in got)
    assert time.time() - PATIENCE < got[0].at <= got[-1].at <= time.time()


@pytest.mark.parametrize("compression", ["deflate", "none"])
@pytest.mark.parametrize("fragments", [1, 3])
async def test_a_message_above_the_limit_is_cut_to_its_head(compression: str, fragments: int) -> None:
    limit, large = 200_000, b"0123456789" * 100_000
    step = len(large) // fragments + 1
    pieces = iter([large[i : i + step] for i in range(0, len(large), step)])
    handler = sending(large[:limit], pieces, large[: limit + 1], "after")
    options: dict[str, Any] = {"compression": compression, "max_message_bytes": limit}
    async with provider(handler) as url, reading(url, **options) as reader:
        first, whole, one_more, after = (m.body for m in await reader.take(4))
    assert first == large[:limit]
    assert after == b"after"
    for got, sent in ((whole, large), (one_more, large[: limit + 1])):
        assert got == Oversized(len(sent), hashlib.sha256(sent).hexdigest(), sent[:HEAD_BYTES])


@pytest.mark.parametrize("size", [1_000, 50_000])
async def test_a_provider_that_is_not_listened_to_is_held_back(size: int) -> None:
    count = 40_000_000 // size
    sent = 0

    async def handler(server: ServerConnection) -> None:
        nonlocal sent
        for number in range(count):
            await server.send(b"%010d" % number + bytes(size - 10))
            sent += 1

    async with provider(handler, compression=None) as url, reading(url) as reader:
        connection = reader.connection
        await reader.until(lambda: not connection.transport.is_reading())
        assert sent < count
        assert connection.waiting <= min(QUEUE_MESSAGES, QUEUE_BYTES // size) + ONE_READ // size + 1
        got = 0
        while got < count:
            await reader.until(lambda: connection.waiting > 0)
            for message in connection.receive_many(10_000):
                assert isinstance(message.body, bytes)
                assert int(message.body[:10]) == got
                got += 1
        assert connection.transport.is_reading() or connection.closed


class Hand:
    """A clock that is set forward by hand."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> Instant:
        real = now()
        return Instant(real.wall, real.monotonic + self._ahead)

    def pass_(self, seconds: float) -> None:
        self._ahead += seconds


@pytest.mark.parametrize(
    ("pauses", "alive", "paused"),
    [([14.0], False, False), ([16.0], False, True), ([14.0] * 5, True, False)],
)
async def test_the_first_message_after_a_pause_in_reading_is_marked(
    pauses: list[float], alive: bool, paused: bool
) -> None:
    """After more than half the margin; the next message is not marked. While the event loop turns and the
    socket is read, silence is the provider's.
    """
    go_on = asyncio.Event()

    async def handler(server: ServerConnection) -> None:
        await server.send("before")
        await go_on.wait()
        await server.send("first")
        await server.send("second")

    clock = Hand()
    async with provider(handler) as url, reading(url, clock=clock, safety_margin_seconds=30) as reader:
        [before] = await reader.take(1)
        for seconds in pauses:
            clock.pass_(seconds)
            if alive:
                reader.connection.note_alive()
        go_on.set()
        after = await reader.take(2)
    assert [m.after_read_pause for m in (before, *after)] == [False, paused, False]


async def test_a_full_queue_is_a_stall() -> None:
    clock = Hand()
    async with (
        provider(sending(*[bytes(50_000)] * 400), compression=None) as url,
        reading(url, clock=clock, safety_margin_seconds=30) as reader,
    ):
        connection = reader.connection
        await reader.until(lambda: not connection.transport.is_reading())
        for _ in range(2):
            clock.pass_(14)
            connection.note_alive()
        held = connection.waiting
        assert [m.after_read_pause for m in await reader.take(held)] == [False] * held
        assert [m.after_read_pause for m in await reader.take(2)] == [True, False]
        connection.transport.abort()


async def test_a_reply_goes_out_as_text() -> None:
    replies: list[str | bytes] = []

    async def handler(server: ServerConnection) -> None:
        replies.append(await server.recv())

    async with provider(handler) as url, reading(url) as reader:
        reader.connection.reply("pong å")
        await reader.until(lambda: reader.connection.closed)
        reader.connection.reply("too late")
    assert replies == ["pong å"]


# Its end.


@pytest.mark.parametrize(
    ("end", "reason", "is_refusal"),
    [
        (frame(Opcode.CLOSE, b"\x03\xf5busy"), "1013 (try again later) busy", True),
        (frame(Opcode.CLOSE, b"\x03\xf4"), "1012 (service restart)", False),
        (frame(Opcode.TEXT, b"x", masked=True), "incorrect masking", False),
    ],
    ids=["refused", "closed", "broken"],
)
async def test_a_socket_that_is_left_open_does_not_delay_the_end(
    end: bytes, reason: str, is_refusal: bool
) -> None:
    hold = asyncio.Event()

    async def handler(server: ServerConnection) -> None:
        server.transport.write(frame(Opcode.TEXT, b"last words") + end)
        server.transport.pause_reading()  # neither the answer nor the end is seen
        await hold.wait()

    async with provider(handler, compression=None) as url, reading(url) as reader:
        await reader.until(lambda: reader.connection.ended)
        assert not reader.connection.closed
        found = reader.connection.end_reason()
        assert reason in str(found)
        assert isinstance(found, FeedRefused) is is_refusal
        assert [m.body for m in reader.connection.receive_many(10)] == [b"last words"]
        hold.set()


async def test_a_broken_line_is_an_end_too() -> None:
    async def handler(server: ServerConnection) -> None:
        server.transport.abort()

    async with provider(handler) as url, reading(url) as reader:
        await reader.until(lambda: reader.connection.closed)
        assert isinstance(reader.connection.end_reason(), FeedLost)


async def test_hanging_up_does_not_depend_on_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "HANG_UP_SECONDS", 0.1)

    async def handler(server: ServerConnection) -> None:
        server.transport.pause_reading()
        while True:
            await server.send(bytes(50_000))

    async with provider(handler, compression=None) as url:
        async with reading(url) as reader:
            await reader.until(lambda: reader.connection.reading_paused)
        assert reader.connection.closed or reader.connection.transport.is_closing()
        assert reader.connection.protocol.close_rcvd is None


async def test_a_cancelled_disconnect_closes_the_socket() -> None:
    ended = asyncio.Event()

    async def handler(server: ServerConnection) -> None:
        server.transport.pause_reading()  # the close frame gets no answer
        await ended.wait()
        server.transport.abort()

    async with provider(handler) as url, reading(url) as reader:
        disconnecting = asyncio.create_task(reader.connection.disconnect())
        await asyncio.sleep(0.05)
        disconnecting.cancel()
        await asyncio.wait([disconnecting])
        assert disconnecting.cancelled()
        assert reader.connection.closed
        ended.set()


@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "TLS"])
async def test_all_before_the_end_is_taken_while_the_queue_is_full(tmp_path: Path, over_tls: bool) -> None:
    data = b"".join(frame(Opcode.TEXT, b"%04d" % n) for n in range(6_000))

    async def handler(server: ServerConnection) -> None:
        server.transport.write(data + frame(Opcode.CLOSE, Close(1013, "").serialize()))
        server.transport.close()

    authority = Authority(tmp_path)
    options: dict[str, Any] = {"ssl": authority.server_context("127.0.0.1")} if over_tls else {}
    changes: dict[str, Any] = {"ca_file": authority.certificate} if over_tls else {}
    async with provider(handler, compression=None, **options) as url:
        url = url.replace("http:", "https:") if over_tls else url
        async with reading(url, refusal_close_codes=(1013,), **changes) as reader:
            connection, taken = reader.connection, []
            await reader.until(lambda: connection.waiting > 0)
            while not connection.closed or connection.waiting:
                taken += connection.receive_many(100)
                if not connection.waiting and not connection.closed:
                    await reader.until(lambda: connection.waiting > 0 or connection.closed)
            assert [m.body for m in taken] == [b"%04d" % n for n in range(6_000)]
            assert isinstance(connection.end_reason(), FeedRefused)

"""An open connection under a provider that sends more than can be held, or more than can be answered."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Iterable

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.frames import CloseCode, Opcode

from bridge.feed.client import QUEUE_BYTES, TAKE_BYTES, TURN_BYTES, UNREAD_BYTES
from bridge.feed.framing import SLICE_BYTES
from bridge.feed.received import Received
from tests.frames import frame
from tests.unit.feed.provider import Reader, provider, reading, writing

MIB = 1024 * 1024
MOST_OF_A_STEP = 1032 * SLICE_BYTES


def deflated(body: bytes, times: int = 1) -> bytes:
    """Return a whole compressed message: this body, several times."""
    squeezed = zlib.compressobj(9, zlib.DEFLATED, -15)
    data = (squeezed.compress(body) + squeezed.flush(zlib.Z_FULL_FLUSH)) * times
    sent = frame(Opcode.TEXT, data.removesuffix(b"\x00\x00\xff\xff"))
    return bytes([sent[0] | 0x40]) + sent[1:]


def sizes(taken: Iterable[Received]) -> list[int]:
    return [len(message.body) for message in taken]


async def test_what_is_small_on_the_wire_and_large_when_inflated_waits_there() -> None:
    count = 50  # of 1 KB each: one read would be 50 MiB
    data = b"".join(deflated(b"%03d" % n + bytes(MIB)) for n in range(count))
    async with provider(writing(data)) as url, reading(url, max_message_bytes=2 * MIB) as reader:
        connection = reader.connection
        taken: list[bytes] = []
        while len(taken) < count:
            await reader.until(lambda: connection.waiting > 0)
            assert connection.waiting * MIB <= QUEUE_BYTES + MOST_OF_A_STEP
            [message] = connection.receive_many(10)
            assert isinstance(message.body, bytes)
            taken.append(message.body[:3])
    assert taken == [b"%03d" % n for n in range(count)]


async def test_a_part_of_what_waits_is_taken() -> None:
    handler = writing(frame(Opcode.TEXT, bytes(10_000)) * 100)
    async with provider(handler, compression=None) as url, reading(url) as reader:
        connection = reader.connection
        await reader.until(lambda: connection.waiting == 100)
        assert sum(sizes(connection.receive_many(100))) in range(TAKE_BYTES, TAKE_BYTES + 10_000)
        rest = [size for _ in range(9) for size in sizes(connection.receive_many(100))]
    assert len(rest) == 100 - TAKE_BYTES // 10_000 - 1


@pytest.mark.parametrize(
    ("data", "turns"),
    [
        (frame(Opcode.CONT, b"", fin=False) * 120_000, 120_000 * 256 // (TURN_BYTES + 10_000 * 256)),
        (frame(Opcode.PONG, b"") * 120_000, 120_000 * 256 // (TURN_BYTES + 10_000 * 256)),
        (deflated(bytes(MIB), 128), 128 * MIB // (TURN_BYTES + MOST_OF_A_STEP)),
    ],
    ids=["empty fragments", "pongs", "inflation"],
)
async def test_others_have_their_turn_meanwhile(data: bytes, turns: int) -> None:
    begun = frame(Opcode.TEXT, b"", fin=False) if data[:1] == b"\x00" else b""
    end = frame(Opcode.CONT, b"") if begun else b""
    handler = writing(begun + data + end + frame(Opcode.TEXT, b"after"))
    async with provider(handler) as url, reading(url, max_message_bytes=MIB) as reader:
        seen = 0
        while not reader.connection.waiting or reader.connection._reader.more:
            seen += reader.connection._reader.more
            await asyncio.sleep(0)
    assert seen >= turns


async def heard_of(reader: Reader, data: bytes) -> bool:
    """Whether these bytes are taken for a sign of life."""
    connection = reader.connection
    connection.heard_at = before = connection.heard_at - 100
    connection.data_received(data)
    for _ in range(100):  # the turns that it takes
        await asyncio.sleep(0)
    assert not connection._reader.more
    return connection.heard_at > before


async def test_fragments_with_nothing_in_them_are_no_sign_of_life() -> None:
    async with provider() as url, reading(url) as reader:
        assert await heard_of(reader, frame(Opcode.TEXT, b"x", fin=False))
        assert not await heard_of(reader, frame(Opcode.CONT, b"", fin=False) * 1000)
        assert not await heard_of(reader, frame(Opcode.CONT, b"", fin=False) * 100_000)
        assert not await heard_of(reader, frame(Opcode.CONT, b"", fin=False)[:1])
        assert not await heard_of(reader, frame(Opcode.CONT, b"", fin=False)[1:])
        assert await heard_of(reader, frame(Opcode.PING, b""))
        assert await heard_of(reader, frame(Opcode.CONT, b"y", fin=False))
        assert await heard_of(reader, frame(Opcode.CONT, b""))
        assert await heard_of(reader, frame(Opcode.TEXT, bytes(100))[:50])
        assert [m.body for m in reader.connection.receive_many(2)] == [b"xy"]
        reader.connection.transport.abort()


async def test_who_asks_and_does_not_read_the_answers_is_left() -> None:
    async def handler(server: ServerConnection) -> None:
        server.transport.pause_reading()
        for _ in range(1_000):
            if server.transport.is_closing():
                return
            server.transport.write(frame(Opcode.PING, b"?" * 125) * 1_000)
            await asyncio.sleep(0)
        await server.wait_closed()

    async with provider(handler, compression=None) as url, reading(url) as reader:
        connection, most = reader.connection, 0
        while not connection.closed:
            most = max(most, connection.transport.get_write_buffer_size())
            await asyncio.sleep(0)
        assert most <= UNREAD_BYTES + 2 * SLICE_BYTES


@pytest.mark.parametrize(
    ("data", "times"),
    [
        (frame(Opcode.BINARY, bytes(50_000)), 2 * QUEUE_BYTES // 50_000),
        (frame(Opcode.BINARY, bytes(100_000)), 2 * QUEUE_BYTES // 100_000),
        (deflated(bytes(4 * MIB)), 8),
    ],
    ids=["small frames", "large frames", "inflation"],
)
async def test_hanging_up_amid_a_flood_is_polite(data: bytes, times: int) -> None:
    async with provider(writing(data, times)) as url, reading(url) as reader:
        connection = reader.connection
        await reader.until(lambda: connection.reading_paused)
        await connection.disconnect()
        assert connection.close_code == CloseCode.NORMAL_CLOSURE
        assert not connection.reading_paused
        assert connection.receive_many(1) == []


async def test_what_takes_several_turns_is_reported_at_the_last() -> None:
    data = deflated(bytes(MIB), 64) + frame(Opcode.TEXT, b"after")
    async with provider(writing(data)) as url, reading(url, max_message_bytes=MIB) as reader:
        assert [m.body for m in (await reader.take(2))[1:]] == [b"after"]


@pytest.mark.parametrize("end", [frame(Opcode.CLOSE, b"\x03\xe8"), b"\xf1\x01x"], ids=["closed", "broken"])
async def test_what_comes_after_the_end_is_no_message(end: bytes) -> None:
    data = frame(Opcode.TEXT, b"before") + end + frame(Opcode.TEXT, b"after")
    async with provider(writing(data), compression=None) as url, reading(url) as reader:
        await reader.until(lambda: reader.connection.closed)
        assert [m.body for m in reader.connection.receive_many(9)] == [b"before"]

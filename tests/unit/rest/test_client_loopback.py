"""The client on a loopback socket, and answers that only a socket can cut."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

import pytest

from bridge.config import ApiSettings
from bridge.errors import ApiError, AuthError
from bridge.rest.client import Client
from bridge.rest.endpoints import Questions
from tests.unit.snapshots.provider import api


def whole(body: bytes, *headers: str) -> bytes:
    """A response that may be followed by another on its connection."""
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Server:
    """Answers each request with the next raw response, and closes after an incomplete one."""

    def __init__(self, responses: Sequence[bytes]) -> None:
        self._responses = list(responses)
        self.connections: list[asyncio.Task[None] | None] = []
        self.answered, self.gone = asyncio.Event(), asyncio.Event()
        """A response was sent; a client has closed its connection."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(asyncio.current_task())
        with suppress(ConnectionResetError, asyncio.IncompleteReadError):  # by a client that needs no more
            while await reader.readuntil(b"\r\n\r\n"):
                response = self._responses.pop(0)
                writer.write(response)
                self.answered.set()
                if response in HALVES.values() or ANNOUNCED in response:
                    break
        if reader.at_eof():
            self.gone.set()
        writer.close()


@asynccontextmanager
async def serving(*responses: bytes) -> AsyncIterator[tuple[Server, ApiSettings]]:
    """A server of these responses, and settings with its address."""
    server = Server(responses)
    async with await asyncio.start_server(server.serve, "127.0.0.1", 0) as listening:
        host, port = listening.sockets[0].getsockname()
        yield server, api(base_url=f"http://{host}:{port}", requests_per_second=10_000.0)
        await asyncio.gather(*filter(None, server.connections))


async def at_once(seconds: float) -> None:
    """Sleep hardly at all."""
    await asyncio.sleep(min(seconds, 0.001))


SPORT = b'{"id": 1, "translations": {"en": "Football"}}'


async def test_a_connection_is_kept() -> None:
    packed = whole(gzip.compress(SPORT), "Content-Encoding: gzip")
    async with serving(*[whole(SPORT)] * 9, packed) as (server, settings), Client(settings) as client:
        request = Questions(settings).single("sport", 1)
        answers = [await client.ask(request) for _ in range(10)]
    assert [answer.content for answer in answers] == [{"id": 1, "translations": {"en": "Football"}}] * 10
    assert len(server.connections) == 1


ANNOUNCED = b"Content-Length: 99\r\n"
"""Of a body that is shorter."""
PACKED = gzip.compress(SPORT)
HALVES = {
    "less than announced": b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n" + SPORT,
    "packed, less than announced": whole(PACKED, "Content-Encoding: gzip")[:-9],
    "no last chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n" + SPORT[:5] + b"\r\n",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n99\r\n" + SPORT,
    "until the end of the connection": b"HTTP/1.1 200 OK\r\n\r\n" + SPORT[:-9],
    "packed, until the end": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + PACKED[:-20],
    "packed, announced": whole(PACKED[:-20], "Content-Encoding: gzip"),
    "nothing": b"HTTP/1.1 200 OK\r\n\r\n",
    "half a head": b"HTTP/1.1 200 OK\r\nConte",
    "no head": b"",
}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
async def test_an_incomplete_answer_is_retried(half: bytes) -> None:
    async with serving(half, whole(SPORT)) as (_, settings), Client(settings, sleep=at_once) as client:
        answer = await client.ask(Questions(settings).single("sport", 1))
    assert answer.content == {"id": 1, "translations": {"en": "Football"}}
    assert client.requests == 2


async def test_half_a_refusal_is_a_refusal() -> None:
    refused = b"HTTP/1.1 %s\r\nRetry-After: 600\r\n" + ANNOUNCED + b"\r\n{"

    async def sleep(seconds: float) -> None:
        if seconds > 500:
            raise TimeoutError("it waits as it was told")
        await at_once(seconds)

    request = Questions(api()).single("sport", 1)
    for status, error in ((b"401 Unauthorized", AuthError), (b"429 Too Many Requests", TimeoutError)):
        answer = refused % status
        async with serving(answer, answer) as (_, settings), Client(settings, sleep=sleep) as client:
            with pytest.raises(error):
                await client.ask(request)


@pytest.mark.parametrize("within", [b"[%s]", b'[{"id":1},%s', b"%s"])
async def test_a_compressed_bomb_takes_little_memory(within: bytes) -> None:
    bomb = whole(gzip.compress(within % (b" " * (40 << 20))), "Content-Encoding: gzip")
    assert len(bomb) < 1 << 20
    async with serving(bomb) as (_, settings):
        settings = settings.model_copy(update={"max_answer_bytes": 4 << 20})
        async with Client(settings) as client:
            tracemalloc.start()
            try:
                with pytest.raises(
                    ApiError, match="sport/1 answered more than 4,194,304 bytes, decompressed"
                ):
                    await client.ask(Questions(settings).single("sport", 1))
                assert tracemalloc.get_traced_memory()[1] < 32 << 20
            finally:
                tracemalloc.stop()


async def test_a_cancelled_request_closes_its_connection() -> None:
    beginning = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + SPORT
    async with asyncio.timeout(5), serving(beginning) as (server, settings), Client(settings) as client:
        asking = asyncio.create_task(client.ask(Questions(settings).single("sport", 1)))
        await server.answered.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await server.gone.wait()

"""A provider on the loopback interface that does what a test needs, and a client of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request as HttpRequest
from websockets.http11 import Response

from bridge.clock import Clock, now
from bridge.config import FeedSettings
from bridge.errors import FeedLost, FeedRefused, SettingsError
from bridge.feed.client import Connection, connect
from bridge.feed.protocol import request
from bridge.feed.received import Received

Handler = Callable[[ServerConnection], Awaitable[None]]
PATIENCE = 10.0
ONE_READ = 256 * 1024
"""What asyncio reads from a socket at most at once."""


@asynccontextmanager
async def provider(handler: Handler | None = None, **options: Any) -> AsyncIterator[str]:
    """A provider that does this with each connection; its base address."""

    async def stay(server: ServerConnection) -> None:
        await server.wait_closed()

    async with serve(handler or stay, "127.0.0.1", 0, close_timeout=0.1, **options) as server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"


def sending(*messages: Any, close: tuple[int, str] | None = None) -> Handler:
    """A provider that sends messages, and then closes or ends the connection."""

    async def handler(server: ServerConnection) -> None:
        for message in messages:
            await server.send(message)
        if close:
            await server.close(*close)

    return handler


def writing(data: bytes, times: int = 1) -> Handler:
    """A provider that writes bytes as they are, and stays."""

    async def handler(server: ServerConnection) -> None:
        for _ in range(times):
            server.transport.write(data)
        await server.wait_closed()

    return handler


def refusing(
    status: int, body: str, location: str | None = None
) -> Callable[[ServerConnection, HttpRequest], Response]:
    """A provider's answer to each handshake; `{path}` in the body is what was asked for."""

    def answer(_: ServerConnection, asked: HttpRequest) -> Response:
        headers = Headers({"Location": location} if location else {})
        return Response(status, "No", headers, body.replace("{path}", asked.path).encode())

    return answer


class Reader:
    """An open connection and what was taken from it."""

    def __init__(self, connection: Connection, woken: asyncio.Event) -> None:
        self.connection = connection
        self._woken = woken

    async def until(self, done: Callable[[], bool]) -> None:
        """Wait until the connection has reported it."""
        async with asyncio.timeout(PATIENCE):
            while not done():
                self._woken.clear()
                await self._woken.wait()

    async def take(self, count: int) -> list[Received]:
        """The next messages, in bursts of any size."""
        found: list[Received] = []
        while len(found) < count:
            await self.until(lambda: self.connection.waiting > 0)
            found += self.connection.receive_many(min(7, count - len(found)))
        return found


@asynccontextmanager
async def reading(base_url: str, *, clock: Clock = now, **changes: Any) -> AsyncIterator[Reader]:
    settings = FeedSettings(**{"base_url": base_url, "proxy": "none", **changes})
    woken = asyncio.Event()
    connection = await connect(settings, request(settings, 17), woken.set, clock)
    try:
        yield Reader(connection, woken)
    finally:
        await connection.disconnect()


async def failure(base_url: str, **changes: Any) -> Exception:
    """The error of a connection attempt that cannot succeed."""
    with pytest.raises((FeedLost, FeedRefused, SettingsError)) as caught:
        async with reading(base_url, **changes):
            pass
    return caught.value

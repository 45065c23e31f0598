"""An HTTP proxy that supports only CONNECT."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Proxy:
    """Its address and the requests it received."""

    url: str
    requests: list[str] = field(default_factory=list)


@asynccontextmanager
async def proxy(status: int = 200) -> AsyncIterator[Proxy]:
    """A proxy that answers each request with this status, and 200 with a tunnel."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = (await reader.readuntil(b"\r\n\r\n")).decode()
        running.requests.append(asked)
        writer.write(f"HTTP/1.1 {status} -\r\n\r\n".encode())
        if status == 200:
            host, _, port = asked.split()[1].rpartition(":")
            there, back = await asyncio.open_connection(host, int(port))
            await asyncio.gather(pipe(reader, back), pipe(there, writer))
        writer.close()

    async with await asyncio.start_server(handle, "127.0.0.1", 0) as server:
        running = Proxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        yield running


async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Pass on all that comes, then close."""
    with suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
    target.close()

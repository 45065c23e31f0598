"""Servers that speak TLS and want to see certificates, in front of those that do not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.proxy import pipe


class Front:
    """A port of this machine that only clients with a certificate can use, for a server without TLS."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._writers: set[asyncio.StreamWriter] = set()
        self.context: ssl.SSLContext
        self.required = b""
        """What the head of each connection's first request must have."""
        self.port = 0

    async def open(self) -> asyncio.Server:
        """Begin to listen, on the same port as before, even while that is still served."""
        server = await asyncio.start_server(
            self._serve, "127.0.0.1", self.port, ssl=self.context, reuse_port=True
        )
        self.port = server.sockets[0].getsockname()[1]
        return server

    def drop(self) -> None:
        """End all connections."""
        for writer in self._writers.copy():
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            if self.required not in head:
                writer.write(b"HTTP/1.1 401 -\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                return
            there, back = await asyncio.open_connection("127.0.0.1", self._port)
            back.write(head)
            await asyncio.gather(pipe(reader, back), pipe(there, writer))
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()


@asynccontextmanager
async def fronts(*all_: Front) -> AsyncIterator[list[asyncio.Server]]:
    """Have them listen inside the block."""
    servers = [await front.open() for front in all_]
    try:
        yield servers
    finally:
        for server in servers:
            server.close()
        for front in all_:
            front.drop()

"""The end of a connection, behind more than can be held."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.frames import Close, Opcode

from bridge.errors import FeedRefused
from tests.frames import frame
from tests.tls import Authority
from tests.unit.feed.provider import provider, reading

COUNT = 6_000


@pytest.mark.parametrize("over_tls", [False, True], ids=["plain", "TLS"])
async def test_what_came_before_the_end_is_taken(tmp_path: Path, over_tls: bool) -> None:
    """All messages, and the code of the close frame behind them, though they wait while the queue is full."""
    data = b"".join(frame(Opcode.TEXT, b"%04d" % n) for n in range(COUNT))

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
            assert [m.body for m in taken] == [b"%04d" % n for n in range(COUNT)]
            assert isinstance(connection.end_reason(), FeedRefused)

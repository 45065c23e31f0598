"""How far the provider's clock is from ours: what a `Date` can say, and how it is asked for."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator, Callable
from email.utils import formatdate
from pathlib import Path

import pytest

from bridge.clock import AnchoredClock
from bridge.config import FeedSettings
from bridge.errors import FeedLost
from bridge.feed.provider_clock import ask
from tests.tls import Authority

DATE = "Mon, 21 Sep 2026 14:13:20 GMT"
AT = 1_790_000_000.0


@contextlib.asynccontextmanager
async def provider(
    answer: Callable[[], bytes], tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server that gives everyone the same answer; its base address, and what it was asked."""
    asked: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(answer())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


def dated(ahead: float = 0.0, status: str = "404 Not Found", more: str = "") -> Callable[[], bytes]:
    def answer() -> bytes:
        date = formatdate(time.time() + ahead, usegmt=True)
        return f"HTTP/1.1 {status}\r\nDate: {date}\r\n{more}Content-Length: 0\r\n\r\n".encode()

    return answer


@pytest.mark.parametrize("ahead", [-40, 0, 40])
async def test_any_status_shows_the_time(ahead: int) -> None:
    async with provider(dated(ahead)) as (address, _):
        skew = await ask(FeedSettings(base_url=f"ws://{address}"))
    assert skew is not None
    by_the_wall = skew.by(AnchoredClock().offset)
    assert by_the_wall.low <= ahead <= by_the_wall.high
    assert skew.high - skew.low < 5


async def test_the_feed_is_not_asked_and_the_credential_not_sent() -> None:
    async with provider(dated()) as (address, asked):
        await ask(
            FeedSettings(
                base_url=f"http://user:s3cret@{address}/base/",
                auth="header",
                auth_name="X-Key",
                auth_value="s3cret",
            )
        )
    [request] = asked
    assert request.startswith(b"GET /base/ HTTP/1.1\r\n")
    assert b"s3cret" not in request
    assert b"authorization" not in request.lower()


@pytest.mark.parametrize(
    ("answer", "is_told"),
    [
        (dated(status="302 Found", more="Location: /feed/settlement/v4\r\n"), True),
        (dated(-600, more="Age: 600\r\n"), False),
        (lambda: b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", False),
    ],
    ids=["a redirect", "kept by a cache", "no date"],
)
async def test_one_answer_says_the_time_or_nothing(answer: Callable[[], bytes], is_told: bool) -> None:
    async with provider(answer) as (address, asked):
        skew = await ask(FeedSettings(base_url=f"http://{address}"))
    assert ((skew is not None), len(asked)) == (is_told, 1)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("https://127.0.0.1/base/", r"to https://127\.0\.0\.1/base/: .*BRIDGE_FEED__BASE_URL"),
        ("//:443/login", r"the answer of http://127\.0\.0\.1:\d+/base/ cannot be read: \w+Error"),
        ("https://www..xn--p1ai/x", r"the answer of http://127\.0\.0\.1:\d+/base/ cannot be read: \w+Error"),
    ],
    ids=["to TLS", "to no host", "to no name"],
)
async def test_a_redirect_elsewhere_ends_this_request_only(location: str, said: str) -> None:
    moved = dated(status="301 Moved Permanently", more=f"Location: {location}\r\n")
    async with provider(moved) as (address, _):
        with pytest.raises(FeedLost, match=said):
            await ask(FeedSettings(base_url=f"ws://{address}/base"))


async def test_a_provider_that_does_not_answer_is_reported() -> None:
    async with provider(lambda: b"") as (address, _):
        pass
    with pytest.raises(FeedLost, match="cannot be reached"):
        await ask(FeedSettings(base_url=f"http://{address}"))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        impatient = FeedSettings(base_url=f"http://{address}", connect_timeout_seconds=0.2)
        with pytest.raises(FeedLost, match=r"did not answer in 0\.2s"):
            await ask(impatient)


async def test_it_identifies_itself_to_a_provider_that_asks(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.client_files()
    async with provider(dated(), authority.server_context("127.0.0.1", asks=True)) as (address, asked):
        stranger = FeedSettings(base_url=f"https://{address}", ca_file=authority.certificate)
        known = {"client_certificate_file": certificate, "client_key_file": key}
        assert await ask(stranger.model_copy(update=known)) is not None
        with pytest.raises(FeedLost, match="cannot be reached"):
            await ask(stranger)
    assert len(asked) == 1


async def test_the_proxy_is_asked_where_one_is_set() -> None:
    async with provider(dated()) as (address, asked):
        await ask(FeedSettings(base_url="http://provider.example", proxy=f"http://{address}"))
    assert asked[0].startswith(b"GET http://provider.example/ HTTP/1.1\r\n")

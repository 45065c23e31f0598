"""The socket, against a provider on the loopback interface that does what each test needs."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.frames import Opcode
from websockets.http11 import Request as HttpRequest
from websockets.http11 import Response

from bridge.config import FeedSettings
from bridge.errors import FeedLost, FeedRefused, SettingsError
from bridge.feed.client import QUEUE_BYTES, QUEUE_MESSAGES, Connection, dial, hang_up
from bridge.feed.events import Oversized, Received
from bridge.feed.frames import HEAD_BYTES
from bridge.feed.session import request
from tests.frames import frame
from tests.proxy import proxy
from tests.tls import Authority

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
        """Wait until the connection has told of it."""
        async with asyncio.timeout(PATIENCE):
            while not done():
                self._woken.clear()
                await self._woken.wait()

    async def take(self, count: int) -> list[Received]:
        """The next messages, in bursts of any size."""
        found: list[Received] = []
        while len(found) < count:
            await self.until(lambda: self.connection.waiting > 0)
            found += self.connection.take(min(7, count - len(found)))
        return found


@asynccontextmanager
async def reading(base_url: str, **changes: Any) -> AsyncIterator[Reader]:
    """An open connection to a provider."""
    settings = FeedSettings(**{"base_url": base_url, "proxy": "none", **changes})
    woken = asyncio.Event()
    connection = await dial(settings, request(settings, 17), woken.set)
    try:
        yield Reader(connection, woken)
    finally:
        await hang_up(connection)


async def failure(base_url: str, **changes: Any) -> Exception:
    """What a dial ends with that cannot succeed."""
    with pytest.raises((FeedLost, FeedRefused, SettingsError)) as caught:
        async with reading(base_url, **changes):
            pass
    return caught.value


# The handshake.


async def test_it_asks_the_interfaces_path_and_hears_the_providers_clock() -> None:
    """The request carries the revision, the answer the provider's time."""
    paths: list[str] = []

    async def handler(server: ServerConnection) -> None:
        assert server.request is not None
        paths.append(server.request.path)

    before = time.time()
    async with provider(handler) as url, reading(url) as reader:
        heard = reader.connection.provider_time()
        assert heard is not None
        assert before - 1 <= heard <= time.time()
    assert paths == ["/feed/settlement/v4?revision=17"]


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({"auth": "bearer"}, "Authorization: Bearer s3cret\r\n"),
        ({"auth": "header", "auth_name": "X-Key"}, "X-Key: s3cret\r\n"),
        ({"auth": "query", "auth_name": "key"}, "revision=17&key=s3cret "),
    ],
)
async def test_the_credential_is_sent(settings: dict[str, str], seen: str, tmp_path: Path) -> None:
    """As a bearer token, in a header or in the query; anew from its file at each dial."""
    requests: list[str] = []

    async def handler(server: ServerConnection) -> None:
        assert server.request is not None
        requests.append(f"GET {server.request.path} HTTP/1.1\r\n{server.request.headers}")

    file = tmp_path / "secret"
    async with provider(handler) as url:
        for secret in ("s3cret", "rotated"):
            file.write_text(f"{secret}\n")
            async with reading(url, auth_value_file=file, **settings) as reader:
                await reader.until(lambda: reader.connection.over)
    assert [seen in requests[0], seen.replace("s3cret", "rotated") in requests[1]] == [True, True]


async def test_a_refusal_tells_its_status_and_a_little_of_its_text() -> None:
    """The body is cut: it may be a page of any size."""
    async with provider(process_request=refusing(429, "too many\n" + "x" * 5000)) as url:
        error = await failure(url)
    assert isinstance(error, FeedRefused)
    assert error.status == 429
    assert str(error).startswith("the provider refused the connection: HTTP 429: too many\nxxx")
    assert len(str(error)) < 260


async def test_a_redirect_is_not_followed() -> None:
    """It would be one more attempt that nobody counted."""
    attempts: list[str] = []

    async def handler(server: ServerConnection) -> None:
        attempts.append("followed")

    async with (
        provider(handler) as other,
        provider(process_request=refusing(302, "", other.replace("http", "ws"))) as url,
    ):
        error = await failure(url)
    assert isinstance(error, FeedRefused)
    assert (error.status, attempts) == (302, [])


@pytest.mark.parametrize("auth", ["bearer", "header", "query"])
@pytest.mark.parametrize("status", [401, 404, 500])
async def test_no_error_shows_the_credential(auth: str, status: int) -> None:
    """Not even when the provider repeats what it was asked."""
    secret = "s3cret of a kind/&"
    async with provider(process_request=refusing(status, f"no {{path}} for {secret}")) as url:
        error = await failure(url, auth=auth, auth_name="key", auth_value=secret)
    assert "no /feed" in str(error)
    assert "s3cret" not in f"{error!r} {error.__cause__!r} {vars(error)}"


async def test_nobody_listening_is_a_lost_connection() -> None:
    """And may be tried again."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        error = await failure(f"http://127.0.0.1:{taken.getsockname()[1]}")
    assert isinstance(error, FeedLost)
    assert str(error).startswith("no connection: ")


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-nonsense\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"]
)
async def test_no_proper_answer_is_a_lost_connection(answer: bytes) -> None:
    """Closed at once, something that is not HTTP, or an acceptance of nothing."""

    async def serve_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve_nonsense, "127.0.0.1", 0) as server:
        error = await failure(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert isinstance(error, FeedLost)
    assert str(error).startswith("the handshake failed: ")


async def test_no_answer_at_all_is_given_up() -> None:
    """After the connect time-out."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        error = await failure(f"http://127.0.0.1:{silent.getsockname()[1]}", connect_timeout_seconds=0.1)
    assert isinstance(error, FeedLost)
    assert "timed out" in str(error)


# Proxies and TLS.


async def test_it_goes_through_a_proxy() -> None:
    """Which is asked for a tunnel to the provider, with its own credentials."""

    async def handler(server: ServerConnection) -> None:
        await server.send("through")

    async with provider(handler) as url, proxy() as middle:
        address = middle.url.replace("://", "://user:pass@")
        async with reading(url, proxy=address) as reader:
            assert [m.body for m in await reader.take(1)] == [b"through"]
        assert middle.requests[0].startswith(f"CONNECT {url.removeprefix('http://')} HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n" in middle.requests[0]


async def test_a_proxy_that_refuses_is_a_lost_connection() -> None:
    """It says nothing of the provider's limits."""
    async with proxy(status=407) as middle:
        error = await failure("http://provider.example", proxy=middle.url)
    assert isinstance(error, FeedLost)
    assert "407" in str(error)


@pytest.mark.parametrize("address", ["ftp://u:s3cret@proxy.example", "proxy.example:3128", "http://p:99999"])
async def test_a_proxy_that_cannot_be_one_is_a_wrong_setting(address: str) -> None:
    """It is named, but not shown: it may hold a password."""
    error = await failure("http://provider.example", proxy=address)
    assert isinstance(error, SettingsError)
    assert "BRIDGE_FEED__PROXY" in str(error)
    assert "s3cret" not in str(error)


async def test_it_trusts_the_authority_that_the_settings_name(tmp_path: Path) -> None:
    """A provider with a certificate of its own authority."""
    authority = Authority(tmp_path)

    async def handler(server: ServerConnection) -> None:
        await server.send("encrypted")

    async with provider(handler, ssl=authority.server_context("127.0.0.1")) as url:
        https = url.replace("http:", "https:")
        async with reading(https, ca_file=authority.certificate) as reader:
            assert [m.body for m in await reader.take(1)] == [b"encrypted"]
        async with (
            proxy() as middle,
            reading(https, ca_file=authority.certificate, proxy=middle.url) as reader,
        ):
            assert [m.body for m in await reader.take(1)] == [b"encrypted"]


async def test_it_trusts_nobody_else(tmp_path: Path) -> None:
    """Neither another authority, nor this one for another host, nor a public one for a private provider."""
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    trusted = {"another": other.certificate, "public": None}
    async with provider(ssl=authority.server_context("127.0.0.1")) as url:
        for file in trusted.values():
            error = await failure(url.replace("http:", "https:"), ca_file=file)
            assert isinstance(error, FeedLost)
            assert "CERTIFICATE_VERIFY_FAILED" in str(error)
    async with provider(ssl=authority.server_context("127.0.0.2")) as url:
        error = await failure(url.replace("http:", "https:"), ca_file=authority.certificate)
    assert isinstance(error, FeedLost)
    assert "not valid for '127.0.0.1'" in str(error)


@pytest.mark.parametrize("content", [None, "no certificate\n"])
async def test_an_authority_that_is_none_is_a_wrong_setting(content: str | None, tmp_path: Path) -> None:
    """A file that is not there, or not PEM, is named with its setting."""
    file = tmp_path / "ca.pem"
    if content is not None:
        file.write_text(content)
    error = await failure("https://127.0.0.1:1", ca_file=file)
    assert isinstance(error, SettingsError)
    assert str(error).startswith(f"feed.ca_file (BRIDGE_FEED__CA_FILE): cannot use {file}")


# What comes through it.


@pytest.mark.parametrize("compression", ["deflate", "none"])
async def test_messages_of_any_size_come_as_they_were_sent(compression: str) -> None:
    """Text and binary, small and large, whole and fragmented, with and without compression."""
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
    assert not any(m.stalled for m in got)
    assert time.time() - PATIENCE < got[0].at <= got[-1].at <= time.time()


@pytest.mark.parametrize("compression", ["deflate", "none"])
@pytest.mark.parametrize("fragments", [1, 3])
async def test_a_message_above_the_limit_is_cut_to_its_head(compression: str, fragments: int) -> None:
    """Its size is that of what it inflates to; the connection lives, and what follows is whole."""
    limit, large = 200_000, b"0123456789" * 100_000
    step = len(large) // fragments + 1

    async def handler(server: ServerConnection) -> None:
        await server.send(large[:limit])
        await server.send(iter([large[i : i + step] for i in range(0, len(large), step)]))
        await server.send(large[: limit + 1])
        await server.send("after")

    options = {"compression": compression, "max_message_bytes": limit}
    async with provider(handler) as url, reading(url, **options) as reader:
        first, whole, one_more, after = (m.body for m in await reader.take(4))
    assert first == large[:limit]
    assert after == b"after"
    for got, sent in ((whole, large), (one_more, large[: limit + 1])):
        assert got == Oversized(len(sent), hashlib.sha256(sent).hexdigest(), sent[:HEAD_BYTES])


@pytest.mark.parametrize("size", [1_000, 50_000])
async def test_a_provider_that_is_not_listened_to_is_held_back(size: int) -> None:
    """The queue is bounded by count and by bytes; when it is emptied all the rest comes, in order."""
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
            for message in connection.take(10_000):
                assert isinstance(message.body, bytes)
                assert int(message.body[:10]) == got
                got += 1
        assert connection.transport.is_reading() or connection.over


async def test_reading_goes_on_as_soon_as_there_is_room() -> None:
    """Not only once the queue is empty."""

    async def handler(server: ServerConnection) -> None:
        for number in range(20_000):
            await server.send(b"%0*d" % (1000, number))

    async with provider(handler, compression=None) as url, reading(url) as reader:
        connection = reader.connection
        await reader.until(lambda: not connection.transport.is_reading())
        while not connection.transport.is_reading():
            assert connection.take(1)
        assert connection.waiting > 0
        connection.transport.abort()


@pytest.mark.parametrize(("seconds", "stalled"), [(14.0, False), (16.0, True)])
async def test_the_first_message_after_a_stall_is_marked(seconds: float, stalled: bool) -> None:
    """When the socket was not read for more than half the overlap; the next one is not marked."""
    go_on = asyncio.Event()

    async def handler(server: ServerConnection) -> None:
        await server.send("before")
        await go_on.wait()
        await server.send("first")
        await server.send("second")

    async with provider(handler) as url, reading(url, overlap_seconds=30) as reader:
        [before] = await reader.take(1)
        reader.connection._read_at -= seconds  # as if it had been read then for the last time
        go_on.set()
        after = await reader.take(2)
    assert not before.stalled
    assert [m.stalled for m in after] == [stalled, False]


async def test_a_quiet_feed_is_no_stall() -> None:
    """While the event loop turns and nothing holds the socket up, silence is the provider's."""
    go_on = asyncio.Event()

    async def handler(server: ServerConnection) -> None:
        await go_on.wait()
        await server.send("later")

    async with provider(handler) as url, reading(url, overlap_seconds=30) as reader:
        connection = reader.connection
        for _ in range(5):
            connection._read_at -= 14
            connection.breathe()
        go_on.set()
        [message] = await reader.take(1)
        assert not message.stalled


async def test_a_full_queue_is_a_stall() -> None:
    """Breathing does not help while the socket is not read."""

    async def handler(server: ServerConnection) -> None:
        for _ in range(400):
            await server.send(bytes(50_000))

    async with provider(handler, compression=None) as url, reading(url, overlap_seconds=30) as reader:
        connection = reader.connection
        await reader.until(lambda: not connection.transport.is_reading())
        for _ in range(2):
            connection._read_at -= 14
            connection.breathe()
        held = connection.waiting
        assert [m.stalled for m in await reader.take(held)] == [False] * held
        assert [m.stalled for m in await reader.take(2)] == [True, False]
        connection.transport.abort()


async def test_a_ping_of_the_protocol_is_heard() -> None:
    """It is no message, but a sign of life, and it is answered."""
    go_on, answered = asyncio.Event(), asyncio.Event()

    async def handler(server: ServerConnection) -> None:
        await go_on.wait()
        await (await server.ping())
        answered.set()
        await server.wait_closed()

    async with provider(handler) as url, reading(url) as reader:
        reader.connection.heard_at = began = time.monotonic() - 100
        go_on.set()
        async with asyncio.timeout(PATIENCE):
            await answered.wait()
        assert reader.connection.heard_at > began
        assert reader.connection.waiting == 0


async def test_a_reply_goes_out_as_text() -> None:
    """And one that finds the connection closed is no news."""
    replies: list[str | bytes] = []

    async def handler(server: ServerConnection) -> None:
        replies.append(await server.recv())

    async with provider(handler) as url, reading(url) as reader:
        reader.connection.reply("pong å")
        await reader.until(lambda: reader.connection.over)
        reader.connection.reply("too late")
    assert replies == ["pong å"]


# Its end.


async def test_what_came_before_the_end_can_still_be_taken() -> None:
    """And the reason of the end is known."""

    async def handler(server: ServerConnection) -> None:
        await server.send("last words")
        await server.close(1012, "restart")

    async with provider(handler) as url, reading(url) as reader:
        await reader.until(lambda: reader.connection.over)
        assert [m.body for m in reader.connection.take(10)] == [b"last words"]
        assert "1012" in str(reader.connection.why_over())


@pytest.mark.parametrize("size", [5, 100_000])
async def test_a_provider_that_breaks_the_protocol_is_hung_up_on(size: int) -> None:
    """A masked frame, small or large, ends the connection; what came before is kept."""

    async def handler(server: ServerConnection) -> None:
        await server.send("before")
        server.transport.write(frame(Opcode.TEXT, bytes(size), masked=True))
        await server.wait_closed()

    async with provider(handler, compression=None) as url, reading(url) as reader:
        await reader.until(lambda: reader.connection.over)
        assert [m.body for m in reader.connection.take(10)] == [b"before"]
        assert "1002" in str(reader.connection.why_over())


async def test_a_broken_line_is_an_end_too() -> None:
    """Without a closing handshake."""

    async def handler(server: ServerConnection) -> None:
        server.transport.abort()

    async with provider(handler) as url, reading(url) as reader:
        await reader.until(lambda: reader.connection.over)
        assert isinstance(reader.connection.why_over(), FeedLost)


async def test_hanging_up_does_not_depend_on_the_provider() -> None:
    """One that goes on sending into a full queue is left after a moment."""

    async def handler(server: ServerConnection) -> None:
        while True:
            await server.send(bytes(50_000))

    async with provider(handler, compression=None) as url:
        async with reading(url) as reader:
            await reader.until(lambda: not reader.connection.transport.is_reading())
        assert reader.connection.over or reader.connection.transport.is_closing()

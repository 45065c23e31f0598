"""Opening a connection: the request, the proxy, TLS, and each way to fail."""

from __future__ import annotations

import asyncio
import contextlib
import re
import socket
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.datastructures import Headers
from websockets.http11 import Request as HttpRequest
from websockets.http11 import Response
from websockets.utils import accept_key

from bridge.clock import Instant, now
from bridge.errors import FeedLost, FeedRefused, FeedUnreached
from tests.proxy import proxy
from tests.tls import Authority
from tests.unit.feed.provider import failure, provider, reading, refusing, sending


async def test_the_request_is_sent() -> None:
    requests: list[str] = []

    async def handler(server: ServerConnection) -> None:
        assert server.request is not None
        requests.append(f"GET {server.request.path} HTTP/1.1\r\n{server.request.headers}")

    async with provider(handler) as url, reading(url, auth="bearer", auth_value="s3cret") as reader:
        await reader.until(lambda: reader.connection.closed)
    [sent] = requests
    assert sent.startswith("GET /feed/settlement/v4?revision=17 HTTP/1.1\r\n")
    assert "Authorization: Bearer s3cret\r\n" in sent


@pytest.mark.parametrize(
    ("status", "text", "said"),
    [
        (429, "too many\n" + "x" * 5000, "too many\nxxx"),
        (404, "no such page", "Is feed.base_url (BRIDGE_FEED__BASE_URL) right? no such page"),
    ],
)
async def test_a_refusal_has_its_status_and_a_little_of_its_text(status: int, text: str, said: str) -> None:
    async with provider(process_request=refusing(status, text)) as url:
        error = await failure(url)
    assert isinstance(error, FeedRefused)
    assert error.status == status
    assert str(error).startswith(f"the provider refused the connection: HTTP {status}: {said}")
    assert len(str(error)) < 260


@pytest.mark.parametrize(
    ("headers", "pause"),
    [
        ({}, None),
        ({"Retry-After": "600"}, 600),
        ({"Retry-After": "Mon, 21 Sep 2026 14:23:20 GMT", "Date": "Mon, 21 Sep 2026 14:13:20 GMT"}, 600),
        ({"Retry-After": "soon"}, None),
    ],
)
async def test_a_refusal_has_the_pause_that_it_asks_for(headers: dict[str, str], pause: float | None) -> None:
    def refuse(_: ServerConnection, __: HttpRequest) -> Response:
        return Response(503, "No", Headers(headers))

    async with provider(process_request=refuse) as url:
        error = await failure(url)
    assert isinstance(error, FeedRefused)
    assert error.retry_after == pause


async def test_a_redirect_is_not_followed() -> None:
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
    secret = "s3cret/of&a=kind" if auth == "bearer" else "s3cret of a kind/&"
    async with provider(process_request=refusing(status, f"no {{path}} for {secret}")) as url:
        error = await failure(url, auth=auth, auth_name="key", auth_value=secret)
    assert "no /feed" in str(error)
    assert "s3cret" not in f"{error!r} {error.__cause__!r} {vars(error)}"


def _nobody() -> tuple[socket.socket, str]:
    """An address at which nobody listens, while the socket is open."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    return taken, f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.mark.parametrize("away", ["port", "host", "time-out", "proxy", "tunnel", "tls"])
async def test_a_host_that_is_not_reached(away: str) -> None:
    taken, url = _nobody()
    with taken:
        match away:
            case "port":
                error = await failure(url)
            case "host":
                error = await failure("http://nowhere.invalid")
            case "time-out":
                error = await _while_the_queue_is_full()
            case "proxy":
                error = await failure("http://provider.example", proxy=url)
            case "tunnel":
                async with proxy(status=502) as middle:
                    error = await failure("http://provider.example", proxy=middle.url)
            case _:
                error = await failure(url.replace("http:", "https:"))
    assert isinstance(error, FeedUnreached)
    assert str(error).startswith(("no connection: ", "the handshake failed: "))
    assert away != "host" or "nowhere.invalid: " in str(error)


async def _while_the_queue_is_full() -> Exception:
    with _silent(("127.0.0.1", 0)) as address:
        return await failure(f"http://127.0.0.1:{address[1]}", connect_timeout_seconds=0.2)


@contextlib.contextmanager
def _silent(address: tuple[str, int]) -> Iterator[tuple[str, int]]:
    """A host that answers no SYN: its queue of connections is full."""
    with socket.socket() as silent, contextlib.ExitStack() as waiting:
        silent.bind(address)
        silent.listen(0)
        for _ in range(2):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(silent.getsockname())
        yield silent.getsockname()


async def test_the_next_address_of_a_host_is_tried_while_one_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolve = socket.getaddrinfo

    def both(_: object, *arguments: Any, **options: Any) -> list[Any]:
        return [one for it in ("127.0.0.2", "127.0.0.1") for one in resolve(it, *arguments, **options)]

    async with provider() as url:
        port = int(url.rpartition(":")[2])
        with _silent(("127.0.0.2", port)):
            monkeypatch.setattr(socket, "getaddrinfo", both)
            async with reading(f"http://provider.example:{port}", connect_timeout_seconds=2):
                pass


async def test_an_attempt_during_which_the_process_stood_still_may_have_reached_the_host() -> None:
    readings = iter([0.0, 10.6])
    taken, url = _nobody()
    with taken:
        error = await failure(url, clock=lambda: Instant(now().wall, next(readings)))
    assert type(error) is FeedLost


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_a_connection_that_is_reset_at_once_has_reached_the_host(scheme: str) -> None:
    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()

    async with await asyncio.start_server(reset, "127.0.0.1", 0) as server:
        error = await failure(f"{scheme}://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert type(error) is FeedLost


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-nonsense\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\n\r\n"]
)
async def test_no_proper_answer_is_a_lost_connection(answer: bytes) -> None:
    async def serve_nonsense(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve_nonsense, "127.0.0.1", 0) as server:
        error = await failure(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert isinstance(error, FeedLost)
    assert str(error).startswith("the handshake failed: ")


async def test_no_answer_at_all_is_given_up() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        error = await failure(f"http://127.0.0.1:{silent.getsockname()[1]}", connect_timeout_seconds=0.1)
    assert type(error) is FeedLost  # it was reached
    assert "timed out" in str(error)


ODD_ANSWERS = {
    "two dates": b"Date: Mon, 21 Sep 2026 14:13:20 GMT\r\nDate: Mon, 21 Sep 2026 14:13:21 GMT\r\n",
    "two dates that disagree": b"Date: Mon, 21 Sep 2026 14:13:20 GMT\r\nDate: yesterday\r\n",
    "a date that is none": b"Date: \xff\xfe\r\n",
    "a date of no year": b"Date: Mon, 21 Sep 99999 14:13:20 GMT\r\n",
    "two connections": b"Connection: close\r\n",
    "two upgrades": b"Upgrade: h2c\r\n",
    "two keys": b"Sec-WebSocket-Accept: x\r\n",
    "an unknown extension": b"Sec-WebSocket-Extensions: x-unknown\r\n",
    "an extension twice": b"Sec-WebSocket-Extensions: permessage-deflate, permessage-deflate\r\n",
    "a window of no bits": b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits=-9\r\n",
    "an extension with half a quote": b'Sec-WebSocket-Extensions: permessage-deflate; a="\r\n',
    "a protocol": b"Sec-WebSocket-Protocol: x\r\n",
    "a length of letters": b"Content-Length: abc\r\n",
    "two lengths": b"Content-Length: 1\r\nContent-Length: 2\r\n",
    "chunks": b"Transfer-Encoding: chunked\r\n",
    "a cookie of megabytes": b"Set-Cookie: " + b"x" * 3_000_000 + b"\r\n",
    "headers without number": b"X: y\r\n" * 100_000,
    "a line without a colon": b"nonsense\r\n",
    "a folded line": b"X: y\r\n z\r\n",
    "a NUL": b"X: \0\r\n",
    "bare newlines": b"X: y\nZ: z\n",
}
"""Headers that a provider, or what lies in between, may add to its answer."""
ODD_STATUSES = {
    "continue": b"HTTP/1.1 100 Continue\r\n\r\n",
    "no content": b"HTTP/1.1 204 No Content\r\n\r\n",
    "no reason": b"HTTP/1.1 403 \r\nContent-Length: 0\r\n\r\n",
    "status without number": b"HTTP/1.1 ok\r\n\r\n",
    "status out of range": b"HTTP/1.1 999 Odd\r\nContent-Length: 0\r\n\r\n",
    "another version": b"HTTP/2.0 200 OK\r\n\r\n",
    "a length below zero": b"HTTP/1.1 403 No\r\nContent-Length: -5\r\n\r\n",
    "a length of letters": b"HTTP/1.1 403 No\r\nContent-Length: abc\r\n\r\n",
    "a body of megabytes": b"HTTP/1.1 403 No\r\n\r\n" + b"x" * 8_000_000,
    "chunks of nonsense": b"HTTP/1.1 403 No\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "zipped nonsense": b"HTTP/1.1 403 No\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "a location that is none": b"HTTP/1.1 302 Found\r\nLocation: //[\r\nContent-Length: 0\r\n\r\n",
    "a page": b"<html>" * 2_000_000,
}


def accepting(headers: bytes) -> Callable[[bytes], bytes]:
    """An answer to a handshake that accepts it, with more headers."""

    def answer(asked: bytes) -> bytes:
        [key] = re.findall(rb"(?i)sec-websocket-key: (\S+)", asked)
        accepted = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        return b"%bSec-WebSocket-Accept: %b\r\n%b\r\n" % (
            accepted,
            accept_key(key.decode()).encode(),
            headers,
        )

    return answer


@pytest.mark.parametrize(
    "answer",
    [accepting(headers) for headers in ODD_ANSWERS.values()]
    + [lambda _, answer=answer: answer for answer in ODD_STATUSES.values()],
    ids=[*ODD_ANSWERS, *(f"status: {name}" for name in ODD_STATUSES)],
)
async def test_no_answer_does_more_than_end_that_connection(answer: Callable[[bytes], bytes]) -> None:
    closed = asyncio.Event()

    async def serve_odd(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(await reader.readuntil(b"\r\n\r\n")))
        with contextlib.suppress(OSError):
            await writer.drain()
            if await reader.read(1):  # a close frame, if it was let in
                writer.write(b"\x88\x00")
                writer.write_eof()
            await reader.read()
        closed.set()
        writer.close()

    async with await asyncio.start_server(serve_odd, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        with contextlib.suppress(FeedLost, FeedRefused):
            async with reading(url, connect_timeout_seconds=2):
                pass
        await closed.wait()


# Proxies and TLS.


async def test_it_goes_through_a_proxy() -> None:
    async with provider(sending("through")) as url, proxy() as middle:
        address = middle.url.replace("://", "://user:pass@")
        async with reading(url, proxy=address) as reader:
            assert [m.body for m in await reader.take(1)] == [b"through"]
        assert middle.requests[0].startswith(f"CONNECT {url.removeprefix('http://')} HTTP/1.1\r\n")
        assert "Proxy-Authorization: Basic dXNlcjpwYXNz\r\n" in middle.requests[0]


async def test_it_trusts_the_authority_that_the_settings_name(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with provider(sending("encrypted"), ssl=authority.server_context("127.0.0.1")) as url:
        https = url.replace("http:", "https:")
        async with reading(https, ca_file=authority.certificate) as reader:
            assert [m.body for m in await reader.take(1)] == [b"encrypted"]
        async with (
            proxy() as middle,
            reading(https, ca_file=authority.certificate, proxy=middle.url) as reader,
        ):
            assert [m.body for m in await reader.take(1)] == [b"encrypted"]


async def test_it_trusts_nobody_else(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")
    trusted = {"another": other.certificate, "public": None}
    async with provider(ssl=authority.server_context("127.0.0.1")) as url:
        for file in trusted.values():
            error = await failure(url.replace("http:", "https:"), ca_file=file)
            assert isinstance(error, FeedLost)
            assert "certificate verify failed" in str(error)
    async with provider(ssl=authority.server_context("127.0.0.2")) as url:
        error = await failure(url.replace("http:", "https:"), ca_file=authority.certificate)
    assert isinstance(error, FeedLost)
    assert "not valid for '127.0.0.1'" in str(error)


async def test_it_identifies_itself_to_a_provider_that_asks(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, other = Authority(tmp_path), Authority(tmp_path / "other")

    def files(of: Authority) -> dict[str, Any]:
        certificate, key = of.client_files()
        return {"client_certificate_file": certificate, "client_key_file": key}

    asking = authority.server_context("127.0.0.1", asks=True)
    async with provider(sending("known"), ssl=asking) as url:
        https = url.replace("http:", "https:")
        async with reading(https, ca_file=authority.certificate, **files(authority)) as reader:
            assert [m.body for m in await reader.take(1)] == [b"known"]
        for refused in (files(other), {}):
            error = await failure(https, ca_file=authority.certificate, **refused)
            assert isinstance(error, FeedLost)

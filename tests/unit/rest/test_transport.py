"""Where requests go, who asks, and what their errors become."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest

from bridge.config import ApiSettings
from bridge.rest.transport import EXCERPT_CHARACTERS, MAX_REFUSAL_BYTES, Answer, Transport, Unavailable
from tests.tls import Authority
from tests.unit.snapshots.provider import SPORTS, api

PATH = SPORTS.target
Handler = Callable[[httpx2.Request], httpx2.Response]


async def answered(settings: ApiSettings, handler: Handler, target: str = PATH) -> Answer:
    """Send one request to a handler."""
    transport = Transport(settings, httpx2.MockTransport(handler))
    try:
        return await transport.get(target, "token", bool)
    finally:
        await transport.aclose()


@pytest.mark.parametrize(
    ("base", "target", "address"),
    [
        ("https://provider.example", PATH, f"https://provider.example{PATH}"),
        ("https://provider.example/", PATH, f"https://provider.example{PATH}"),
        ("http://provider.example:8080/v1/", PATH, f"http://provider.example:8080/v1{PATH}"),
        ("https://provider.example/a%20b//", PATH, f"https://provider.example/a%20b{PATH}"),
        ("http://[::1]:8080", PATH, f"http://[::1]:8080{PATH}"),
        ("https://user:pass@provider.example", PATH, f"https://provider.example{PATH}"),
        (
            "https://a.example",
            "/x?y=%E2%82%AC%20%2B%26%25&z=1,2",
            "https://a.example/x?y=%E2%82%AC%20%2B%26%25&z=1,2",
        ),
    ],
)
async def test_a_target_is_added_to_the_base_address(base: str, target: str, address: str) -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200)

    await answered(api(base_url=base), answer, target)
    assert [str(request.url) for request in seen] == [address]
    assert address.endswith(seen[0].url.raw_path.decode())
    assert seen[0].headers["Authorization"] == "Bearer token"


def _errors(*kinds: type[Exception]) -> set[type[Exception]]:
    named = (getattr(httpx2, name) for name in httpx2.__all__)
    return {item for item in named if isinstance(item, type) and issubclass(item, kinds)}


@pytest.mark.parametrize("error", sorted(_errors(httpx2.RequestError), key=str))
async def test_each_error_of_a_request_is_unavailable(error: type[Exception]) -> None:
    for text in ("in its words", ""):

        def fail(_: httpx2.Request, text: str = text) -> httpx2.Response:
            raise error(text)

        with pytest.raises(Unavailable, match=text or error.__name__):
            await answered(api(), fail)


def test_no_other_error_of_the_library_can_come_from_a_request() -> None:
    assert _errors(Exception) - _errors(httpx2.RequestError) == {
        httpx2.HTTPError,
        httpx2.HTTPStatusError,
        httpx2.InvalidURL,
        httpx2.CookieConflict,
        httpx2.StreamError,
        httpx2.StreamClosed,
        httpx2.StreamConsumed,
        httpx2.RequestNotRead,
        httpx2.ResponseNotRead,
    }


@pytest.mark.parametrize("status", [200, 401, 404, 503])
async def test_whether_the_provider_answers_is_asked_without_the_token(status: int) -> None:
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(status)

    def fail(_: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused")

    settings = api(base_url="https://user:pass@provider.example/v1/")
    assert await Transport(settings, httpx2.MockTransport(answer)).knock() == status
    [request] = seen
    assert str(request.url) == "https://provider.example/v1/"
    assert "Authorization" not in request.headers
    with pytest.raises(Unavailable, match="refused"):
        await Transport(settings, httpx2.MockTransport(fail)).knock()


async def test_only_the_beginning_of_a_huge_refusal_is_kept() -> None:
    answer = await answered(api(), lambda _: httpx2.Response(400, text="." + "ж" * 10**6))
    assert len(answer.refusal) == MAX_REFUSAL_BYTES
    assert str(answer) == "HTTP 400: ." + "ж" * (EXCERPT_CHARACTERS - 1)


async def test_it_identifies_itself_to_a_provider_that_asks(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.client_files()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]")
        await writer.drain()
        writer.close()

    asking = authority.server_context("127.0.0.1", asks=True)
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=asking) as server:
        base = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        stranger = api(base_url=base, ca_file=authority.certificate)
        known = {"client_certificate_file": certificate, "client_key_file": key}
        transport = Transport(stranger.model_copy(update=known))
        assert (await transport.get(PATH, "token", bool)).status == 200
        await transport.aclose()
        transport = Transport(stranger)
        with pytest.raises(Unavailable):
            await transport.get(PATH, "token", bool)
        await transport.aclose()

"""Where requests go, and the settings of the way there."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from bridge.errors import SettingsError
from bridge.rest.transport import EXCERPT_CHARACTERS, MAX_REFUSAL_BYTES, Transport, Unavailable
from tests.unit.snapshots.provider import SPORTS, api

PATH = SPORTS.target


@pytest.mark.parametrize(
    ("base", "address"),
    [
        ("https://provider.example", f"https://provider.example{PATH}"),
        ("https://provider.example/", f"https://provider.example{PATH}"),
        ("http://provider.example:8080/v1/", f"http://provider.example:8080/v1{PATH}"),
        ("https://provider.example/a%20b//", f"https://provider.example/a%20b{PATH}"),
        ("http://[::1]:8080", f"http://[::1]:8080{PATH}"),
        ("https://user:pass@provider.example", f"https://provider.example{PATH}"),
    ],
)
async def test_a_path_is_added_to_the_base_address(base: str, address: str) -> None:
    """Which may have a path of its own; what is before an @ is not sent in place of the token."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(200)

    transport = Transport(api(base_url=base), httpx2.MockTransport(answer))
    await transport.get(PATH, "token", bool)
    await transport.aclose()
    assert [str(request.url) for request in seen] == [address]
    assert seen[0].headers["Authorization"] == "Bearer token"


async def test_a_query_arrives_as_it_was_encoded() -> None:
    """Nothing in it is encoded twice, or decoded."""
    seen: list[bytes] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.url.raw_path)
        return httpx2.Response(200)

    transport = Transport(api(), httpx2.MockTransport(answer))
    target = "/api/CurrencyExchange/currency-precision?symbol=%E2%82%AC%20%2B%26%25&ids=1,2"
    await transport.get(target, "token", bool)
    await transport.aclose()
    assert seen == [target.encode()]


def _errors(*kinds: type[Exception]) -> set[type[Exception]]:
    named = (getattr(httpx2, name) for name in httpx2.__all__)
    return {item for item in named if isinstance(item, type) and issubclass(item, kinds)}


@pytest.mark.parametrize("error", sorted(_errors(httpx2.RequestError), key=str))
async def test_whatever_happens_on_the_way_is_no_answer(error: type[Exception]) -> None:
    """Each error of the library about a request, with its words, or its name when it has none."""
    for text in ("in its words", ""):

        def fail(_: httpx2.Request, text: str = text) -> httpx2.Response:
            raise error(text)

        transport = Transport(api(), httpx2.MockTransport(fail))
        with pytest.raises(Unavailable, match=text or error.__name__):
            await transport.get(PATH, "token", bool)
        await transport.aclose()


def test_no_other_error_of_the_library_can_come_from_a_request() -> None:
    """The rest is about addresses, which are checked before, and about uses that are not made of it."""
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


async def test_of_a_huge_refusal_only_the_beginning_is_kept() -> None:
    """Even when it ends in the middle of a character, it can be told."""
    transport = Transport(api(), httpx2.MockTransport(lambda _: httpx2.Response(400, text="." + "ж" * 10**6)))
    answer = await transport.get(PATH, "token", bool)
    await transport.aclose()
    assert len(answer.refusal) == MAX_REFUSAL_BYTES
    assert str(answer) == "HTTP 400: ." + "ж" * (EXCERPT_CHARACTERS - 1)


@pytest.mark.parametrize("base", [None, "https://provider.example/\x01"])
def test_a_base_address_that_is_none_names_its_setting(base: str | None) -> None:
    """And how to give one."""
    with pytest.raises(SettingsError, match=r"BRIDGE_API__BASE_URL.* https://provider\.example"):
        Transport(api(base_url=base))


@pytest.mark.parametrize("proxy", ["ftp://user:pass@proxy.example", "http://user:pass@proxy:no-port"])
def test_a_proxy_that_cannot_be_used_is_not_shown(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its address may hold a password."""
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    with pytest.raises(SettingsError, match=r"BRIDGE_API__PROXY\), or HTTPS_PROXY") as caught:
        Transport(api(proxy="env"))
    assert "pass" not in str(caught.value)


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_certificate_authority_that_is_none_names_its_file(content: str | None, tmp_path: Path) -> None:
    """And the setting that led there."""
    file = tmp_path / "ca.pem"
    if content:
        file.write_text(content)
    with pytest.raises(SettingsError, match=r"BRIDGE_API__CA_FILE\): cannot use .*ca\.pem"):
        Transport(api(ca_file=file))

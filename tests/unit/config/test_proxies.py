"""One reading of the variables that name a proxy, for feed, REST, registry and doctor."""

from __future__ import annotations

import httpx2
import pytest

from bridge.config import proxy_of
from bridge.errors import SettingsError

HOSTS = ("10.1.2.3", "a.example.com", "example.com", "badexample.com", "[::1]", "[fd00::1]", "localhost")
PROXY = "http://proxy.example:3128"
pytestmark = pytest.mark.usefixtures("no_proxies")


@pytest.mark.parametrize(
    "no_proxy",
    [
        *("", "10.0.0.0/8", "10.1.2.3, localhost", "example.com", ".example.com", "*.example.com"),
        *("EXAMPLE.com", "a.example.com,10.0.0.0/8", "*", "other.example,*", "[::1]", "::1", "fd00::/8"),
        *("example.com:8443", "10.1.2.3:8443", "example.com:9999"),
    ],
)
def test_the_hosts_that_need_none_are_those_of_the_registry_s_client(
    no_proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", PROXY)
    monkeypatch.setenv("NO_PROXY", no_proxy)
    with httpx2.Client() as client:
        urls = [f"https://{host}:8443/" for host in HOSTS]
        direct = [client._transport_for_url(httpx2.URL(url)) is client._transport for url in urls]
    assert [proxy_of("feed", url.replace("https", "wss")) is None for url in urls] == direct
    assert [proxy_of("api", url) is None for url in urls] == direct


@pytest.mark.parametrize(
    ("name", "value", "url", "found"),
    [
        ("HTTPS_PROXY", "proxy.example:3128", "wss://feed.example", PROXY),
        ("ALL_PROXY", PROXY, "wss://feed.example", PROXY),
        ("https_proxy", PROXY, "https://feed.example", PROXY),
        ("HTTPS_PROXY", PROXY, "ws://feed.example", None),
        ("HTTP_PROXY", PROXY, "ws://feed.example", PROXY),
    ],
)
def test_each_variable_counts_for_the_feed_as_for_rest(
    name: str, value: str, url: str, found: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    assert proxy_of("feed", url) == found
    assert proxy_of("feed", url, "none") is None
    assert proxy_of("feed", url, "https://other.example") == "https://other.example"


@pytest.mark.parametrize("value", ["ftp://u:s3cret@proxy.example", "socks4://u:s3cret@proxy.example"])
def test_one_that_cannot_be_used_is_an_error_that_does_not_show_it(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    for section, named in (("feed", r"^feed\.proxy"), ("registry", "^HTTPS_PROXY or a similar")):
        with pytest.raises(SettingsError, match=named) as raised:
            proxy_of(section, "https://host.example")
        assert "s3cret" not in str(raised.value)

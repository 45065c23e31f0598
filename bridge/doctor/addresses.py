"""The addresses in the settings that this machine connects to itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from bridge.config import Settings, http_scheme, proxy_of
from bridge.errors import SettingsError

_KAFKA_PORT: Final = 9092
_PORTS: Final = {"http": 80, "https": 443}


class HostAddress(NamedTuple):
    """A host and port, with the setting that names them."""

    setting: str
    host: str
    port: int
    is_tls: bool

    def __str__(self) -> str:
        """Return `broker-1:9093 (kafka.bootstrap_servers)`."""
        return f"{self.host}:{self.port} ({self.setting})"


def addresses(settings: Settings) -> list[HostAddress]:
    """Return the addresses of Kafka, registry and provider, without those that a proxy connects to."""
    found = brokers(settings)
    for setting, url, proxy in servers(settings):
        parts = urlsplit(url)
        scheme = http_scheme(parts.scheme)
        if parts.hostname and proxy is None:
            port = parts.port or _PORTS[scheme]
            found.append(HostAddress(setting, parts.hostname, port, scheme == "https"))
    return found


def servers(settings: Settings) -> Iterator[tuple[str, str, str | None]]:
    """Yield the setting and the address of registry and provider, and the proxy that connects to it.

    Not one whose proxy cannot be used: who connects says so.
    """
    feed, api = settings.feed, settings.api
    for setting, url, given in (
        ("registry.url", settings.registry.url, "env"),
        ("registry.token_endpoint_url", settings.registry.token_endpoint_url, "env"),
        ("feed.base_url", feed.base_url, feed.proxy),
        ("api.base_url", api.base_url, api.proxy),
    ):
        with suppress(SettingsError):
            if url:
                yield setting, url, proxy_of(setting.partition(".")[0], url, given)


def brokers(settings: Settings) -> list[HostAddress]:
    """Return the addresses of Kafka; librdkafka reports what is none."""
    protocol = str(settings.kafka.public_properties().get("security.protocol", "plaintext")).lower()
    found = []
    for server in (settings.kafka.bootstrap_servers or "").split(","):
        with suppress(ValueError):
            parts = urlsplit(f"//{server.strip().rpartition('://')[2]}")
            if parts.hostname:
                port = parts.port or _KAFKA_PORT
                found.append(
                    HostAddress("kafka.bootstrap_servers", parts.hostname, port, protocol.endswith("ssl"))
                )
    return found

"""The addresses in the settings that this machine connects to itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from bridge.config import Settings

_KAFKA_PORT: Final = 9092
_PORTS: Final = {"http": 80, "https": 443}
_HTTP: Final = {"ws": "http", "wss": "https"}


class Address(NamedTuple):
    """A host and port, with the setting that names them."""

    setting: str
    host: str
    port: int
    is_tls: bool

    def __str__(self) -> str:
        """Return `broker-1:9093 (kafka.bootstrap_servers)`."""
        return f"{self.host}:{self.port} ({self.setting})"


def addresses(settings: Settings) -> list[Address]:
    """Return the addresses of Kafka, registry and provider, without those that a proxy connects to."""
    found = brokers(settings)
    for setting, url, proxy in (
        ("registry.url", settings.registry.url, "env"),
        ("feed.base_url", settings.feed.base_url, settings.feed.proxy),
        ("api.base_url", settings.api.base_url, settings.api.proxy),
    ):
        parts = urlsplit(url or "")
        scheme = _HTTP.get(parts.scheme, parts.scheme)
        if parts.hostname and not _is_proxied(proxy, scheme, parts.hostname):
            port = parts.port or _PORTS[scheme]
            found.append(Address(setting, parts.hostname, port, scheme == "https"))
    return found


def brokers(settings: Settings) -> list[Address]:
    """Return the addresses of Kafka; librdkafka reports what is none."""
    protocol = str(settings.kafka.public_properties().get("security.protocol", "plaintext")).lower()
    found = []
    for server in (settings.kafka.bootstrap_servers or "").split(","):
        with suppress(ValueError):
            parts = urlsplit(f"//{server.strip().rpartition('://')[2]}")
            if parts.hostname:
                port = parts.port or _KAFKA_PORT
                found.append(
                    Address("kafka.bootstrap_servers", parts.hostname, port, protocol.endswith("ssl"))
                )
    return found


def _is_proxied(proxy: str, scheme: str, host: str) -> bool:
    if proxy != "env":
        return proxy != "none"
    return not {scheme, "all"}.isdisjoint(getproxies()) and not proxy_bypass(host)

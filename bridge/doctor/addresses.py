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
        if parts.hostname and proxy_to(url, proxy) is None:
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


def proxy_to(url: str | None, setting: str) -> str | None:
    """Return the proxy that connects to the address with this setting of it, None without one."""
    parts = urlsplit(url or "")
    if setting != "env":
        return None if setting == "none" else setting
    if not parts.hostname or proxy_bypass(parts.hostname):
        return None
    found = getproxies()
    return found.get(_HTTP.get(parts.scheme, parts.scheme), found.get("all"))

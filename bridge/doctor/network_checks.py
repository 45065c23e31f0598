"""Checks of the ways to Kafka, the registry and the provider: host names, and the REST side."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable

from bridge.config import ApiSettings, Settings
from bridge.doctor.addresses import Address, addresses
from bridge.doctor.finding import Finding, Outcome
from bridge.errors import SettingsError
from bridge.formatting import plain_error, plural
from bridge.rest.transport import Transport, Unavailable


def check_hosts(settings: Settings) -> Finding:
    """Whether the host names in the settings resolve. A proxy resolves what it connects to."""
    return resolve(addresses(settings))


def resolve(wanted: Iterable[Address]) -> Finding:
    """Whether the hosts of these addresses resolve."""
    known, unknown = set[str](), []
    for address in wanted:
        try:
            socket.getaddrinfo(address.host, address.port)
        except (OSError, UnicodeError) as error:
            unknown.append(f"{address}: {plain_error(error)}")
        else:
            known.add(address.host)
    if unknown:
        advice = "Correct the setting, or ask whoever runs the name server."
        return Finding(Outcome.TROUBLE, "\n".join(unknown), advice)
    if not known:
        return Finding(Outcome.OK, "no host is configured")
    return Finding(Outcome.OK, f"{plural(len(known), 'host')} found: {', '.join(sorted(known))}")


def check_rest(settings: Settings) -> Finding:
    """Whether the provider's REST side answers. Asks no endpoint, and sends no token."""
    try:
        status = asyncio.run(_knock(settings.api))
    except (Unavailable, SettingsError) as error:
        advice = "Check api.base_url, api.proxy and api.ca_file; `bridge run` does not need it."
        return Finding(Outcome.TROUBLE, f"the provider's REST side cannot be reached: {error}", advice)
    message = f"the provider's REST side answers (HTTP {status}); no endpoint was asked"
    if status >= 500:
        return Finding(Outcome.WARN, message, "If this persists, the snapshot jobs fail: ask the provider.")
    return Finding(Outcome.OK, message)


async def _knock(settings: ApiSettings) -> int:
    transport = Transport(settings)
    try:
        return await transport.knock()
    finally:
        await transport.aclose()

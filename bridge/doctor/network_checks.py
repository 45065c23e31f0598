"""The check of the way to the provider's REST side."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from urllib.parse import urlsplit

from bridge.config import ApiSettings, Settings
from bridge.doctor.finding import Finding, Verdict
from bridge.errors import SettingsError
from bridge.rest.transport import Transport, Unavailable


def check_rest(settings: Settings) -> Finding:
    """Whether the provider's REST side answers. Asks no endpoint, and sends no token."""
    try:
        status = asyncio.run(_knock(settings.api))
    except (Unavailable, SettingsError) as error:
        advice = "Check api.base_url, api.proxy and api.ca_file; `bridge run` does not need it."
        host = urlsplit(settings.api.base_url or "").hostname
        message = f"the provider's REST side at {host} cannot be reached: {error}"
        return Finding(Verdict.TROUBLE, message, advice)
    message = f"the provider's REST side answers (HTTP {status}); no endpoint was asked"
    if status >= 500:
        return Finding(Verdict.WARN, message, "If this persists, the snapshot jobs fail: ask the provider.")
    return Finding(Verdict.OK, message)


async def _knock(settings: ApiSettings) -> int:
    async with aclosing(Transport(settings)) as transport:
        return await transport.knock()

"""TLS to the provider."""

from __future__ import annotations

import ssl

from bridge.config import FeedSettings
from bridge.errors import SettingsError


def context(settings: FeedSettings) -> ssl.SSLContext:
    """What a certificate of the provider's is checked by. Raises SettingsError for a file that is none."""
    try:
        return ssl.create_default_context(cafile=settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"feed.ca_file (BRIDGE_FEED__CA_FILE): cannot use {settings.ca_file} as certificates: {error}"
        ) from None

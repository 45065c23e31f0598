"""TLS to the provider."""

from __future__ import annotations

import ssl
from pathlib import Path

from bridge.config import env_name
from bridge.errors import SettingsError


def context(section: str, ca_file: Path | None) -> ssl.SSLContext:
    """What a certificate of the provider's is checked by; `section` is that of the setting `ca_file`.

    Raises SettingsError for a file that is none.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        name = f"{section}.ca_file ({env_name(section, 'ca_file')})"
        raise SettingsError(f"{name}: cannot use {ca_file} as certificates: {error}") from None

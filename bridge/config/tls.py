"""TLS contexts, also while the file of a certificate authority is missing for a moment."""

from __future__ import annotations

import ssl
from pathlib import Path

from bridge.config.fields import env_name
from bridge.errors import SettingsError
from bridge.formatting import plain_error
from bridge.log import get

_last: dict[Path | None, ssl.SSLContext] = {}
_warned: set[Path | None] = set()


def context(section: str, ca_file: Path | None) -> ssl.SSLContext:
    """Return a context that verifies certificates with `ca_file`, a setting of `section`.

    While the file cannot be used, its last content counts. Raises SettingsError if it could never be used.
    """
    try:
        _last[ca_file] = ssl.create_default_context(cafile=ca_file)
        _warned.discard(ca_file)
    except (OSError, ssl.SSLError) as error:
        reason = plain_error(error)
        name = f"{section}.ca_file ({env_name(section, 'ca_file')})"
        if ca_file not in _last:
            raise SettingsError(f"{name}: cannot use {ca_file} as certificates: {reason}") from None
        if ca_file not in _warned:
            get().warning(
                "certificate file unusable, using the last certificates",
                setting=name,
                file=str(ca_file),
                reason=reason,
            )
        _warned.add(ca_file)
    return _last[ca_file]

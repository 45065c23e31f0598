"""Certificate authorities, also while the file of one is away for a moment."""

from __future__ import annotations

import ssl
from pathlib import Path

from bridge.config.fields import env_name
from bridge.errors import SettingsError
from bridge.log import get

_last: dict[Path | None, ssl.SSLContext] = {}
_told: set[Path | None] = set()


def context(section: str, ca_file: Path | None) -> ssl.SSLContext:
    """What the other side's certificate is checked by; `section` is that of the setting `ca_file`.

    While the file is none, it is by what it held before. Raises SettingsError where it never was one.
    """
    try:
        _last[ca_file] = ssl.create_default_context(cafile=ca_file)
        _told.discard(ca_file)
    except (OSError, ssl.SSLError) as error:
        name = f"{section}.ca_file ({env_name(section, 'ca_file')})"
        if ca_file not in _last:
            raise SettingsError(f"{name}: cannot use {ca_file} as certificates: {error}") from None
        if ca_file not in _told:
            get().warning(
                f"{name} cannot be used: the last certificates are", file=str(ca_file), reason=str(error)
            )
        _told.add(ca_file)
    return _last[ca_file]

"""The bearer token of the REST side (interface, "Authentication"): read anew each time, and its end foretold.

Only the provider can tell whether a token is good. All that is read in it here is when it ends.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import orjson
from joserfc import jws
from joserfc.errors import JoseError

from bridge.config import ApiSettings, secret_trouble
from bridge.errors import SettingsError
from bridge.formatting import duration, utc
from bridge.log import get

SOON_SECONDS: Final = 900.0
"""A token that ends within this time is told of."""

_usable: dict[Path, str] = {}
"""The last one of a file that a header can hold; it outlives a run, as that of `read_secret` does."""
_accepted: dict[Path, str] = {}
"""The last one of a file that the provider took for good."""


class Token:
    """The token of the settings, or of their file, as it is at each moment."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings
        self._told = ""

    @property
    def setting(self) -> str:
        """The environment variable that it comes from."""
        return "BRIDGE_API__TOKEN_FILE" if self._settings.token_file else "BRIDGE_API__TOKEN"

    @property
    def trouble(self) -> str:
        """Why its file cannot be read at this moment; empty when it can, or there is none."""
        file = self._settings.token_file
        return "" if file is None else secret_trouble(file)

    @property
    def accepted(self) -> str | None:
        """The last one of the file that the provider accepted."""
        file = self._settings.token_file
        return None if file is None else _accepted.get(file)

    def accept(self, token: str) -> None:
        """The provider has answered to this one anything but that it is no good."""
        if self._settings.token_file is not None:
            _accepted[self._settings.token_file] = token

    def read(self, wall: float) -> str:
        """The token as it is now, at `wall` (Unix seconds); the log is told, once, when it ends soon.

        While its file is away, or holds what no header can, it is the last one. Raises SettingsError when
        there never was one.
        """
        token, file = self._settings.bearer(), self._settings.token_file
        if re.fullmatch(r"[!-~]+", token):
            if file is not None:
                _usable[file] = token
        elif file in _usable:
            token = _usable[file]
        else:
            found = "what cannot be a bearer token" if token else "no token"
            raise SettingsError(
                f"{self.setting} holds {found}. Give the token alone: one word of ASCII characters, without "
                "`Bearer` in front of it."
            )
        if token != self._told:
            self._tell(token, wall)
        return token

    def _tell(self, token: str, wall: float) -> None:
        end = expiry(token)
        if end is None or end - wall > SOON_SECONDS:
            return
        self._told = token
        if end > wall:
            get().warning("the token expires soon", setting=self.setting, left=duration(end - wall))
        else:
            get().warning("the token has expired, by our clock", setting=self.setting, at=utc(end))


def expiry(token: str) -> float | None:
    """The claim `exp` of a JWT, Unix seconds, its signature unchecked; None for any other token."""
    try:
        claims = orjson.loads(jws.extract_compact(token.encode()).payload)
    except (JoseError, ValueError):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    return float(end) if isinstance(end, int | float) and not isinstance(end, bool) else None


def validity_of(token: str, wall: float) -> str:
    """What a token says of itself at `wall` (Unix seconds), as the rest of a sentence about it."""
    end = expiry(token)
    if end is None:
        return "does not say how long it is valid"
    return f"expired at {utc(end)}" if end <= wall else f"says that it is valid until {utc(end)}"

"""The bearer token of the REST side (interface, "Authentication"): read anew each time, and its end foretold.

Only the provider can tell whether a token is good. All that is read in it here is when it ends.
"""

from __future__ import annotations

import re
from typing import Final

import orjson
from joserfc import jws
from joserfc.errors import JoseError

from bridge.config import ApiSettings, secret_trouble
from bridge.errors import SettingsError
from bridge.log import get
from bridge.text import duration, utc

SOON_SECONDS: Final = 900.0
"""A token that ends within this time is told of."""


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

    def read(self, wall: float) -> str:
        """The token as it is now, at `wall` (Unix seconds); the log is told, once, when it ends soon.

        While its file is away it is the last one. Raises SettingsError when there never was one, or no
        header can hold it.
        """
        token = self._settings.bearer()
        if not re.fullmatch(r"[!-~]+", token):
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

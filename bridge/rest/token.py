"""The bearer token of the REST API (interface, "Authentication"), read for each request.

Only the provider decides whether a token is valid. Of its claims only `exp` is read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import orjson
from joserfc import jws
from joserfc.errors import JoseError

from bridge.config import ApiSettings
from bridge.errors import SettingsError
from bridge.formatting import format_duration, format_utc
from bridge.log import get

SOON_SECONDS: Final = 900.0
"""A warning is logged when a token expires within this time."""

_accepted: dict[Path, str] = {}
"""File → its last token that the provider accepted. Outlives a run, as `last_good` does."""


class Token:
    """The current token of the settings, or of their file."""

    def __init__(self, settings: ApiSettings) -> None:
        self.refused: set[str] = set()
        """Tokens that were refused: one is not sent again while another works, or if none did."""
        self._settings = settings
        self._warned_of = ""

    @property
    def setting(self) -> str:
        """The environment variable that holds the token or names its file."""
        return "BRIDGE_API__TOKEN_FILE" if self._settings.token_file else "BRIDGE_API__TOKEN"

    def accept(self, token: str) -> None:
        """Note that the provider accepted this token: it answered anything but 401."""
        if self._settings.token_file is not None:
            _accepted[self._settings.token_file] = token

    def candidates(self, wall: float) -> list[str]:
        """Return the token as `read` does, and the last one of its file that the provider accepted."""
        present, file = self.read(wall), self._settings.token_file
        accepted = present if file is None else _accepted.get(file, present)
        return [present] if accepted == present else [present, accepted]

    def read(self, wall: float) -> str:
        """Return the token at `wall` (Unix seconds). Logs one warning per token that expires soon.

        While the file is missing or holds no token, returns the last one. Raises SettingsError if there never
        was one.
        """
        if not (token := self._settings.secret.read()):
            raise SettingsError(f"{self.setting} holds no token: it is empty")
        if token != self._warned_of:
            self._warn_if_expiring(token, wall)
        return token

    def _warn_if_expiring(self, token: str, wall: float) -> None:
        end = expiry(token)
        if end is None or end - wall > SOON_SECONDS:
            return
        self._warned_of = token
        if end > wall:
            get().warning("token expires soon", setting=self.setting, left=format_duration(end - wall))
        else:
            get().warning(
                "token has expired by this machine's clock", setting=self.setting, at=format_utc(end)
            )


def expiry(token: str) -> float | None:
    """Return the `exp` claim of a JWT in Unix seconds, without verifying it; None for any other token."""
    try:
        claims = orjson.loads(jws.extract_compact(token.encode()).payload)
    except (JoseError, ValueError):
        return None
    end = claims.get("exp") if isinstance(claims, dict) else None
    return float(end) if isinstance(end, int | float) and not isinstance(end, bool) else None


def validity_of(token: str, wall: float) -> str:
    """Return what the token claims about its validity at `wall` (Unix seconds), as a predicate."""
    end = expiry(token)
    if end is None:
        return "does not say how long it is valid"
    return (
        f"expired at {format_utc(end)}" if end <= wall else f"says that it is valid until {format_utc(end)}"
    )

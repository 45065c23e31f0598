"""The variables of settings."""

from __future__ import annotations

from typing import Final

ENV_PREFIX: Final = "BRIDGE_"


def env_name(*path: str) -> str:
    """Return the environment variable of a setting: `("feed", "base_url")` → `BRIDGE_FEED__BASE_URL`."""
    return ENV_PREFIX + "__".join(part.upper() for part in path)

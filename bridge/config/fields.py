"""Types and checks shared by the sections of the settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from bridge.config.secrets import read_secret
from bridge.log import conceal

LONGEST_SECONDS = 366 * 86_400
"""A year: longer than anything in a feed lasts, and short enough for all arithmetic with times."""
MOST_BYTES = 64 * 1024 * 1024
"""Largest object in memory; librdkafka's consumers fetch at most 100 MB at once."""
LONGEST_AGE_DAYS = 36_500
"""A century: the longest age and retention."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST_SECONDS, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0, le=100_000)]
Bytes = Annotated[int, Field(gt=0, le=MOST_BYTES)]
FilePath = Annotated[Path, Field(strict=False)]


class Section(BaseModel):
    """A section of the settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def has_host(address: str) -> bool:
    """Return whether an address has a host, a valid port if any, and user and password both or neither."""
    try:
        parts = urlsplit(address)
        (parts.hostname or "").encode("idna")
        is_port = parts.port != 0
    except ValueError:
        return False
    return is_port and bool(parts.hostname) and (parts.username is None) == (parts.password is None)


def secret_of(name: str, value: SecretStr | None, file: Path | None, user: str | None = None) -> str:
    """Return the current secret, from its value or its file. Raises SettingsError like `read_secret`."""
    secret = value.get_secret_value() if value else ""
    if file is not None:
        secret = read_secret(f"{name}_FILE", file)
    conceal(secret, name, user)
    return secret

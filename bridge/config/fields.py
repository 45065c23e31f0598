"""What the settings of all sections are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from bridge.config.secrets import read_secret
from bridge.log import conceal

LONGEST_SECONDS = 366 * 86_400
"""Nothing of a feed lasts longer than a year; what is worked out of it stays within what times can be."""
MOST_BYTES = 64 * 1024 * 1024
"""Of one thing in memory; librdkafka's readers take 100 MB at once."""
LONGEST_AGE_DAYS = 36_500
"""Of an age in words, and of how long to keep something: for ever, for all that a person means by it."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST_SECONDS, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0, le=100_000)]
Bytes = Annotated[int, Field(gt=0, le=MOST_BYTES)]
FilePath = Annotated[Path, Field(strict=False)]


class Section(BaseModel):
    """A section of the settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


def has_host(address: str) -> bool:
    """Whether host, port and, where there are any, user and password of an address can be told apart."""
    try:
        parts = urlsplit(address)
        (parts.hostname or "").encode("idna")
        is_port = parts.port != 0
    except ValueError:
        return False
    return is_port and bool(parts.hostname) and (parts.username is None) == (parts.password is None)


def secret_of(name: str, value: SecretStr | None, file: Path | None, user: str | None = None) -> str:
    """A secret as it is now, of its value or its file. Raises SettingsError as `read_secret`."""
    secret = value.get_secret_value() if value else ""
    if file is not None:
        secret = read_secret(f"{name}_FILE", file)
    conceal(secret, name, user)
    return secret

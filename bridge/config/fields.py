"""What the settings of all sections are made of."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from bridge.config.secrets import read_secret
from bridge.log import conceal

Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[int, Field(gt=0)]
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

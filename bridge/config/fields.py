"""Types and checks shared by the sections of the settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.util import find_spec
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Annotated, Any, Final, Self
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from bridge.config.names import env_name
from bridge.config.secrets import Secret
from bridge.errors import SettingsError
from bridge.masking import MASK

_OF_SOCKS: Final = ("python-socks", "socksio")
"""The packages that SOCKS needs: for the feed, and for what is asked by HTTP."""
LONGEST_SECONDS = 366 * 86_400
"""A year: longer than anything in a feed lasts, and short enough for all arithmetic with times."""
MOST_BYTES = 64 * 1024 * 1024
"""Largest object in memory; librdkafka's consumers fetch at most 100 MB at once."""
LONGEST_AGE_DAYS = 36_500
"""A century: the longest age and retention."""

Seconds = Annotated[float, Field(ge=0, le=LONGEST_SECONDS, allow_inf_nan=False)]
Count = Annotated[int, Field(gt=0, le=100_000)]
Bytes = Annotated[int, Field(gt=0, le=MOST_BYTES)]
Name = Annotated[str, Field(min_length=1)]
Text = Annotated[str, Field(pattern="^[ -~]+$")]
"""What a header can carry."""
FilePath = Annotated[Path, Field(strict=False)]


class Section(BaseModel):
    """A section of the settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    def secrets(self) -> Iterable[Secret]:
        """Return the secrets that are in use."""
        return ()


class TlsSection(Section):
    """A section with a server that may speak TLS."""

    ca_file: FilePath | None = Field(default=None, examples=["/etc/ssl/authority.pem"])
    """The server's certificate authority, PEM, if not a public one."""
    client_certificate_file: FilePath | None = Field(default=None, examples=["/run/secrets/tls.crt"])
    """The bridge's own certificate with its chain, PEM."""
    client_key_file: FilePath | None = Field(default=None, examples=["/run/secrets/tls.key"])
    """Its private key, PEM without a password, unless that file has it."""

    @model_validator(mode="after")
    def _key_has_a_certificate(self) -> Self:
        if self.client_key_file is not None and self.client_certificate_file is None:
            raise ValueError("client_key_file needs client_certificate_file")
        return self


class Address(str):
    """An address. If it holds a password, no repr and no JSON shows that."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(self._shown())

    def _shown(self) -> str:
        return re.sub(r"(//[^/@:]*:)[^/]*@", rf"\1{MASK}@", self)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        shown = core_schema.plain_serializer_function_ser_schema(cls._shown, when_used="json")
        return core_schema.no_info_after_validator_function(cls, handler(str), serialization=shown)


def has_host(address: str) -> bool:
    """Return whether an address has a host, a valid port if any, and user and password both or neither."""
    try:
        parts = urlsplit(address)
        (parts.hostname or "").encode("idna")
        host = re.sub(r":[0-9]*$", "", parts.netloc.rpartition("@")[2])
        # Else the HTTP client refuses it.
        if "[" in host or "]" in host:
            inner = re.fullmatch(r"\[([^][]*)\]", host)
            IPv6Address(inner[1] if inner else "")
        elif re.fullmatch(r"([0-9]+\.){3}[0-9]+", host):
            IPv4Address(host)
        is_port = parts.port != 0
    except ValueError:
        return False
    return is_port and bool(parts.hostname) and (parts.username is None) == (parts.password is None)


def is_address(example: str, *schemes: str) -> AfterValidator:
    """Accept an address of one of the schemes, without a query."""

    def check(value: str) -> str:
        if not (re.match(rf"({'|'.join(schemes)})://[^/?#\s]+[^?#\s]*$", value) and has_host(value)):
            raise ValueError(f"must be an address such as {example}, without a query")
        if not re.fullmatch("[!-~]+", value):
            raise ValueError("must be ASCII: write an internationalized name in its xn-- form")
        parts = urlsplit(value)
        if parts.scheme in ("https", "wss") and (parts.hostname or "").endswith("."):
            raise ValueError("must not have a dot at the end of the host: no certificate has one")
        return value

    return AfterValidator(check)


def check_proxy(value: str) -> str:
    """Return `env`, `none` or the address of a proxy; SOCKS only when its packages are installed."""
    scheme = "" if value in ("env", "none") else value.partition("://")[0]
    if scheme and not (scheme in ("http", "https", "socks5", "socks5h") and has_host(value)):
        raise ValueError('must be an address such as http://proxy.example:3128, "env" or "none"')
    missing = [name for name in _OF_SOCKS if find_spec(name.replace("-", "_")) is None]
    if scheme.startswith("socks") and missing:
        raise ValueError(f"SOCKS needs the package {' and the package '.join(missing)}")
    return value


def proxy_error(section: str) -> SettingsError:
    """Return the error for a proxy that cannot be used. Its address may hold a password and is left out."""
    own = "" if section == "registry" else f"{section}.proxy ({env_name(section, 'proxy')}), or "
    return SettingsError(
        f"{own}HTTPS_PROXY or a similar variable, cannot be used. Give an address such as "
        'http://proxy.example:3128, "env" or "none"; SOCKS needs the packages '
        f"{' and '.join(_OF_SOCKS)}."
    )


def only_one(settings: BaseModel, secret: str) -> None:
    """Raise ValueError if a secret is given both as a value and by its file."""
    if getattr(settings, secret) is not None and getattr(settings, f"{secret}_file") is not None:
        raise ValueError(f"give either {secret} or {secret}_file, not both")

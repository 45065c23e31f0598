"""Settings of the simulator: how the world looks, and what the interface leaves open."""

from __future__ import annotations

import hmac
import re
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, NamedTuple, Self
from urllib.parse import parse_qs

from pydantic import Field, FilePath, SecretStr, model_validator

from bridge_sandbox.provider.feed import Policy, Refusal
from bridge_sandbox.provider.rate_limits import LimitSettings
from bridge_sandbox.provider.recording import Bets, Recording, Tempo
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.stream import LONGEST_SECONDS, Seconds, Source, Stream, StreamSettings
from bridge_sandbox.provider.world.entities import Sizes, World


class Handshake(NamedTuple):
    """What a client asks for, and who it is."""

    revision: int | None
    refusal: Refusal | None
    """Why it is refused regardless of the limits."""
    client: str
    """The name of its credential; empty if that has none, or is wrong."""


class SimulatorSettings(Policy, StreamSettings):
    """Everything about a simulated provider. Raises pydantic's ValidationError when something is wrong."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 8900
    """0 is any free port, which is also used where the default is taken."""
    certificate: FilePath | None = None
    """PEM file with the certificate chain and the private key; TLS when set."""
    compression: Literal["deflate", "none"] = "deflate"
    """Whether permessage-deflate is agreed to when a client offers it."""

    bets: tuple[Path, ...] = ()
    """Avro files with recorded bets, or directories of such files; without one, bets are made."""
    speed: Tempo = 1
    keep_times: bool = False
    """Whether recorded bets keep their date-times, or are moved to now."""

    names: tuple[Path, ...] = ()
    """Avro files with recorded translations or currencies, or directories of such files."""

    seed: int = 1
    fragment_bytes: Annotated[int, Field(ge=0)] = 0
    """A longer message is sent in several frames of this size; 0: in one."""
    history_seconds: Seconds = 0
    """How long the stream already ran when the simulator starts."""
    limits_scale: Annotated[float, Field(ge=1, le=LONGEST_SECONDS)] = 1
    """Divides every duration in the limits."""
    limits: LimitSettings = LimitSettings()
    """The figures of the provider's limits."""
    bucket_may_overflow: bool = False
    """Whether only a full bucket refuses a small recovery, or one that would overflow, too."""
    clock_skew_seconds: Annotated[float, Field(ge=-LONGEST_SECONDS, le=LONGEST_SECONDS)] = 0
    """How far the provider's clock is ahead of this machine's."""
    control_port: Annotated[int, Field(ge=0, le=65535)] | None = None
    """Port of the control endpoint, on the same host: 0 is any free one, None is none."""

    auth: Literal["none", "bearer", "header", "query"] = "none"
    auth_name: str | None = None
    """Name of the header or of the query parameter."""
    auth_value: SecretStr | None = None
    clients: dict[str, SecretStr] = Field(default_factory=dict)
    """Further credentials, by the names that the log of connections has for who uses them."""

    sizes: Sizes = Sizes()
    """Number of entities of each kind; the feed and the REST side share them."""
    api: RestPolicy = RestPolicy()
    """Translations and currencies."""

    @model_validator(mode="after")
    def _auth_is_whole(self) -> Self:
        secrets = [it.get_secret_value() for it in self._credentials().values()]
        if self.auth != "none" and not (secrets and all(secrets)):
            raise ValueError(f"auth = {self.auth} needs auth_value")
        if self.auth in ("header", "query") and not self.auth_name:
            raise ValueError(f"auth = {self.auth} needs auth_name")
        return self

    @model_validator(mode="after")
    def _bets_are_made_or_recorded(self) -> Self:
        others = StreamSettings.model_fields.keys() if self.bets else {"speed", "keep_times"}
        if wrong := sorted(self.model_fields_set & others):
            raise ValueError(
                f"{wrong[0]}: {'not' if self.bets else 'only'} for recorded bets, those of `bets`"
            )
        return self

    def tls(self) -> ssl.SSLContext | None:
        """Return the TLS context, if any. Raises OSError if the file has no certificate with its key."""
        if self.certificate is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.certificate)
        return context

    def stream(self, origin: float, recorded: Bets | None = None) -> Source:
        """What is published from `origin` (Unix seconds) on, with its world."""
        world = World(self.seed, origin, self.sizes)
        if recorded is None:
            return Stream(world, origin, self)
        waits = not self.history_seconds
        return Recording(world, origin, recorded, self.speed, waits=waits, keep_times=self.keep_times)

    def handshake(self, query: str, header: Callable[[str], str]) -> Handshake:
        """Read a handshake (interface, "Settlement feed").

        `header` returns the value of a header, empty if there is none.
        """
        # The last value of each parameter.
        given = {name: values[-1] for name, values in parse_qs(query, keep_blank_values=True).items()}
        number = re.fullmatch(r"[0-9]{1,15}", given.get("revision", ""))
        revision = int(number[0]) if number else None
        client, refusal = self._client(given, header), None
        if client is None:
            refusal = Refusal(401, "the credentials are missing or wrong")
        elif "revision" in given and revision is None:
            refusal = Refusal(400, "revision must be a Unix timestamp in seconds")
        return Handshake(revision, refusal, client or "")

    def _client(self, query: dict[str, str], header: Callable[[str], str]) -> str | None:
        """Return the name of the credential, empty for that of all; None if it is missing or wrong."""
        credentials, name = self._credentials(), self.auth_name or ""
        match self.auth:
            case "query":
                given = query.get(name, "")
            case "header":
                given = header(name)
            case "bearer":
                given = header("Authorization")
            case "none":
                return ""
        prefix = "Bearer " if self.auth == "bearer" else ""
        found = [
            client
            for client, secret in credentials.items()
            if hmac.compare_digest(given.encode(), f"{prefix}{secret.get_secret_value()}".encode())
        ]
        return found[0] if found else None

    def _credentials(self) -> dict[str, SecretStr]:
        """Return all credentials by the names of their clients; that of `auth_value` has none."""
        return ({"": self.auth_value} if self.auth_value else {}) | self.clients

"""The settings by section: what each means, its default, and what it may be."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator

from bridge.config.fields import (
    LONGEST_AGE_DAYS,
    LONGEST_SECONDS,
    Bytes,
    Count,
    FilePath,
    Seconds,
    Section,
    has_host,
    secret_of,
)
from bridge.config.secrets import read_secret, secret_trouble
from bridge.errors import SettingsError
from bridge.formatting import shortened
from bridge.log import conceal


def _is_no_job(name: str) -> str:
    if name in ("translations", "currencies"):
        raise ValueError("is taken: the job of that name has its lock and its transactional id by it")
    return name


class FeedSettings(Section):
    """The provider's feed: where it is, how to be let in, how patient to be."""

    base_url: str | None = None
    """The provider's base address; http(s) or ws(s). The path of the feed is added to it."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$"), AfterValidator(_is_no_job)] = (
        "settlement-v4"
    )
    """Key of the checkpoint, and part of the transactional id and of the leadership group."""
    auth: Literal["none", "bearer", "header", "query"] = "none"
    auth_name: str | None = None
    """Name of the header or of the query parameter, where `auth` is one of these."""
    auth_value: SecretStr | None = None
    auth_value_file: FilePath | None = None
    ping_reply: str = "none"
    """`none`, `echo` (the message as it came), or a template with `{pingId}`."""
    idle_timeout_seconds: Annotated[float, Field(gt=0, le=LONGEST_SECONDS, allow_inf_nan=False)] = 60
    """A socket from which not even a ping came for so long is half-open: it is closed."""
    live_after_pings_seconds: Seconds = 120
    """Pings alone must last so long before catching up counts as done."""
    safety_margin_seconds: Seconds = 30
    """How far behind the position the revision stays."""
    max_out_of_orderness_seconds: Seconds = 60
    """How far out of order `settlementTime` may be."""
    max_clock_skew_seconds: Seconds = 15
    """A provider's clock that is further from ours than that stops the bridge. At most the overlap."""
    start: str = "0"
    """First start: `0` as the interface says, an age such as `2d`, or an ISO 8601 time."""
    on_gap: Literal["stop", "continue"] = "stop"
    """What to do once a gap is declared: stop with exit 5, or go on behind it."""
    refusal_statuses: frozenset[Annotated[int, Field(ge=300, le=599)]] = frozenset({403, 429})
    """HTTP answers to a dial that mean: not now. 401 is not one of them, it is about the credential."""
    refusal_close_codes: frozenset[Annotated[int, Field(ge=1000, le=4999)]] = frozenset({1008, 1013})
    """WebSocket close codes that mean the same, after the dial was accepted."""
    optional_fields: frozenset[str] = frozenset()
    """Paths of non-nullable fields that the provider leaves out when they hold zero, false or None."""
    converter: Literal["pydantic", "compiled"] = "pydantic"
    """What reads a message: pydantic alone, or first compiled code that leaves to it what is unusual."""
    max_message_bytes: Bytes = 8 * 1024 * 1024
    """A larger message is dead-lettered by its size, hash and first 64 KiB. Memory grows with it."""
    compression: Literal["deflate", "none"] = "deflate"
    proxy: str = "env"
    """`env` (HTTPS_PROXY and its kin), `none`, or the proxy's address."""
    ca_file: FilePath | None = None
    """Certificate authority of the provider, PEM, where it is not a public one."""
    connect_timeout_seconds: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 10

    @field_validator("base_url")
    @classmethod
    def _has_scheme(cls, value: str | None) -> str | None:
        if value is not None and not (
            re.match(r"^(https?|wss?)://[^/?#\s]+[^?#\s]*$", value) and has_host(value)
        ):
            raise ValueError("must be an address such as https://provider.example, without a query")
        return value

    @field_validator("ping_reply")
    @classmethod
    def _has_ping_id(cls, value: str) -> str:
        if value not in ("none", "echo") and "{pingId}" not in value:
            raise ValueError('must be "none", "echo" or a template that contains {pingId}')
        return value

    @field_validator("start")
    @classmethod
    def _is_start(cls, value: str) -> str:
        parse_start(value, now=0.0)
        return value

    @model_validator(mode="after")
    def _auth_is_whole(self) -> Self:
        given = self.auth_value is not None, self.auth_value_file is not None
        if self.auth != "none" and sum(given) != 1:
            raise ValueError(f"auth = {self.auth} needs one of auth_value and auth_value_file")
        if self.auth in ("header", "query") and not self.auth_name:
            raise ValueError(f"auth = {self.auth} needs auth_name")
        return self

    @model_validator(mode="after")
    def _overlap_covers_skew(self) -> Self:
        # Before the first answer the skew is not known: the overlap has to bear it.
        if self.max_clock_skew_seconds > self.safety_margin_seconds:
            raise ValueError(
                f"max_clock_skew_seconds = {self.max_clock_skew_seconds:g} must not be above "
                f"safety_margin_seconds = {self.safety_margin_seconds:g}"
            )
        return self

    @property
    def stall_seconds(self) -> float:
        """What is read after a longer pause is read late. Whether it is read is looked at once a second."""
        return max(self.safety_margin_seconds / 2, 2.5)

    def auth_secret(self) -> str:
        """The credential as it is now, its file read at each call. Raises SettingsError as `read_secret`."""
        return secret_of("BRIDGE_FEED__AUTH_VALUE", self.auth_value, self.auth_value_file)

    def auth_trouble(self) -> str:
        """Why the credential's file cannot be read at this moment; empty when it can, or there is none."""
        return "" if self.auth_value_file is None else secret_trouble(self.auth_value_file)


class LimitsSettings(Section):
    """The provider's limits on connections and recovery (interface, "Limits")."""

    initial_connections: Count = 5
    initial_window_seconds: Seconds = 1800
    proper_connections: Count = 5
    proper_window_seconds: Seconds = 300
    large_connections: Count = 5
    large_window_seconds: Seconds = 1800
    large_age_seconds: Seconds = 3600
    bucket_seconds: Seconds = 3600
    bucket_drain: Annotated[float, Field(ge=0.01, le=LONGEST_SECONDS, allow_inf_nan=False)] = 4
    """Seconds of recovery that drain from the bucket in a second."""
    max_age_seconds: Seconds = 259_200
    scale: Annotated[float, Field(ge=1, le=LONGEST_SECONDS, allow_inf_nan=False)] = 1
    """Time in every limit runs this many times faster. Only for tests against a provider scaled alike."""

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.bucket_seconds < self.large_age_seconds:
            raise ValueError(
                f"bucket_seconds = {self.bucket_seconds:g} must not be below "
                f"large_age_seconds = {self.large_age_seconds:g}, or some recoveries would never be let in"
            )
        if self.large_age_seconds > self.max_age_seconds:
            raise ValueError(
                f"large_age_seconds = {self.large_age_seconds:g} must not be above "
                f"max_age_seconds = {self.max_age_seconds:g}"
            )
        return self

    @property
    def memory_seconds(self) -> float:
        """How far back the feed can replay, in seconds of real time."""
        return self.max_age_seconds / self.scale


class KafkaSettings(BaseModel):
    """The cluster. Every other key is a librdkafka property, with `_` for `.`."""

    model_config = ConfigDict(frozen=True, extra="allow", hide_input_in_errors=True)

    bootstrap_servers: str | None = None

    @model_validator(mode="after")
    def _are_scalars(self) -> Self:
        for name, value in (self.model_extra or {}).items():
            if not isinstance(value, str | int | float | bool):
                raise ValueError(f"{name} must be a string, a number or true/false")
            if isinstance(value, float):
                raise ValueError(f"{name} must be a whole number")
            if name.replace(".", "_") == "session_timeout_ms" and not _is_session(value):
                raise ValueError(f"{name} must be a whole number from 1 to {LONGEST_SESSION_MS}")
            if name.replace(".", "_") in _OURS:
                raise ValueError(f"{name} is set by the bridge itself and cannot be changed")
        return self

    def __repr_args__(self) -> Iterable[tuple[str | None, Any]]:
        """Everything but the secrets, which librdkafka's names do not mark as such."""
        for name, value in super().__repr_args__():
            yield name, "**********" if name and _SECRET.search(name) else value

    def properties(self) -> dict[str, str | int | float | bool]:
        """librdkafka's names and values; `…_file` of a secret is read now.

        Raises SettingsError as `read_secret`.
        """
        found: dict[str, str | int | float | bool] = {"bootstrap.servers": self.bootstrap_servers or ""}
        for name, value in (self.model_extra or {}).items():
            if name in ("sasl_password_file", "ssl_key_password_file"):
                value = read_secret(f"BRIDGE_KAFKA__{name.upper()}", Path(str(value)))
                name = name.removesuffix("_file")
            elif _SECRET.search(name):
                conceal(str(value), name)
            found[name.replace("_", ".")] = value
        return found


def _is_session(value: str | int | float | bool) -> bool:
    """Not what librdkafka takes for one: of 1e300 it takes the 1."""
    return re.fullmatch(r"[0-9]{1,7}", str(value)) is not None and 0 < int(value) <= LONGEST_SESSION_MS


LONGEST_SESSION_MS = 3_600_000
_SECRET = re.compile(r"pass(word|phrase)|secret|key[_.]pem|jaas")
_OURS = frozenset(
    {
        "acks",
        "auto_offset_reset",
        "enable_auto_commit",
        "enable_auto_offset_store",
        "enable_idempotence",
        "enable_partition_eof",
        "group_id",
        "group_instance_id",
        "group_protocol",
        "isolation_level",
        "max_in_flight_requests_per_connection",
        "partition_assignment_strategy",
        "partitioner",
        "transactional_id",
    }
)


class RegistrySettings(Section):
    """A schema registry that speaks Confluent's API."""

    url: str | None = None
    user: str | None = None
    password: SecretStr | None = None
    password_file: FilePath | None = None
    ca_file: FilePath | None = None

    def secret(self) -> str:
        """The registry's password as it is now. Raises SettingsError as `read_secret`."""
        return secret_of("BRIDGE_REGISTRY__PASSWORD", self.password, self.password_file, self.user)


class TopicsSettings(Section):
    """Names and shape of the topics."""

    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "settlement"
    partitions: Annotated[int, Field(gt=0, le=10_000)] = 6
    """As many as a broker makes at once, at most."""
    replication_factor: Annotated[int, Field(gt=0, le=32767)] | None = None
    """What the cluster offers, up to 3, where it is not set."""
    min_compaction_lag_days: Annotated[float, Field(ge=4, le=LONGEST_AGE_DAYS, allow_inf_nan=False)] = 7
    """Every version of a bet stays readable for so long. The guard needs at least four days."""


class BatchSettings(Section):
    """The unit of a transaction: committed when it is full, or that old; older while messages wait."""

    max_records: Count = 5000
    max_bytes: Bytes = 8 * 1024 * 1024
    max_age_ms: Annotated[int, Field(gt=0, le=10_000)] = 20


class WebSettings(Section):
    """Where health and metrics are served, over HTTP."""

    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65535)] = 9464
    """0 takes any free port; the log says which."""


def age_seconds(text: str) -> int:
    """`90s`, `30m`, `2h` or `3d` in seconds. Raises SettingsError."""
    age = re.fullmatch(r"(\d+)([smhd])", text, re.ASCII)
    if age is None:
        raise SettingsError(f"{shortened(text)!r} is not an age such as 90s, 30m, 2h or 3d")
    unit = {"s": 1, "m": 60, "h": 3600, "d": 86400}[age[2]]
    # By its digits first: Python does not read a number of thousands of them.
    if len(age[1]) > 12 or (seconds := int(age[1]) * unit) > LONGEST_AGE_DAYS * 86_400:
        raise SettingsError(f"{shortened(text)!r} is too long: an age is at most {LONGEST_AGE_DAYS}d")
    return seconds


def parse_start(text: str, now: float) -> int | None:
    """Where a first start begins, in Unix seconds; None for the interface's own `0`.

    `text` is `0`, an age (`90s`, `30m`, `2h`, `3d`) or an ISO 8601 time with its zone. Raises ValueError.
    """
    if text == "0":
        return None
    with contextlib.suppress(SettingsError):
        return int(now) - age_seconds(text)
    with contextlib.suppress(ValueError):
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is not None:
            return int(moment.timestamp())
    raise ValueError("must be 0, an age such as 2d, or a time with its zone such as 2026-01-31T12:00:00Z")

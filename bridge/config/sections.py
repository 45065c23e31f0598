"""The sections feed, limits, registry, topics, batch and web: meaning, default, bounds of each setting."""

from __future__ import annotations

import difflib
import re
from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from bridge.config.fields import (
    LONGEST_AGE_DAYS,
    LONGEST_SECONDS,
    Address,
    Bytes,
    Count,
    FilePath,
    Seconds,
    Section,
    TlsSection,
    check_proxy,
    is_address,
    only_one,
    secret_of,
)
from bridge.config.secrets import Form, secret_problem
from bridge.errors import SettingsError
from bridge.formatting import parse_instant, shortened


def _is_no_job(name: str) -> str:
    if name in ("translations", "currencies"):
        raise ValueError("is reserved: the job of this name uses it for its lock and its transactional id")
    return name


def _ends_without_a_dot(prefix: str) -> str:
    if prefix.endswith("."):
        raise ValueError("must not end with a dot: the names have one between it and the rest")
    return prefix


class FeedSettings(TlsSection):
    """The provider's feed: its address, authentication, time-outs and margins."""

    base_url: Annotated[Address, is_address("https://provider.example", "https?", "wss?")] | None = Field(
        default=None, examples=["https://provider.example"]
    )
    """The provider's base address, http(s) or ws(s). The bridge adds the path of the feed. `bridge run` needs
    it.
    """
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$"), AfterValidator(_is_no_job)] = (
        "settlement-v4"
    )
    """Key of the checkpoint; part of the transactional id and of the owner group's id. Not `translations` or
    `currencies`.
    """
    auth: Literal["none", "bearer", "header", "query"] = "none"
    """How the bridge authenticates. `header` and `query` need `auth_name`; all but `none` need the
    credential, from `auth_value` or `auth_value_file`.
    """
    auth_name: str | None = Field(default=None, examples=["X-Api-Key"])
    """Name of the header or query parameter that carries the credential."""
    auth_value: SecretStr | None = Field(default=None, examples=["…"])
    """The credential. Prefer `auth_value_file`."""
    auth_value_file: FilePath | None = Field(default=None, examples=["/run/secrets/feed"])
    """A file that holds the credential. The bridge reads it at the start and before each connection attempt,
    so it picks up a rotated one. If the file becomes unreadable, the bridge keeps using the last value read.
    """
    ping_reply: str = "none"
    """The answer to a ping: `none`, `echo` (the message as it came), or a template that contains `{pingId}`.
    """
    idle_timeout_seconds: Annotated[float, Field(gt=0, le=LONGEST_SECONDS, allow_inf_nan=False)] = 60
    """A connection on which nothing arrives for this long, not even a ping, is closed."""
    live_after_pings_seconds: Seconds = 120
    """A connection that carries only pings for this long has caught up."""
    safety_margin_seconds: Seconds = 30
    """How far the position stays behind what has been received, in addition to
    `max_out_of_orderness_seconds`.
    """
    max_out_of_orderness_seconds: Seconds = 60
    """How far out of order `settlementTime` may be."""
    max_clock_skew_seconds: Annotated[float, Field(ge=1, le=LONGEST_SECONDS, allow_inf_nan=False)] = 15
    """The bridge stops with exit 9 when the provider's clock differs from this machine's by more. At most
    `safety_margin_seconds`.
    """
    start: str = "0"
    """Where a first start begins: `0` (an initial connection, `revision=0`: the provider decides what it
    replays), an age (`90s`, `2h`, `1d 4h`), or an ISO 8601 time with its zone. Ignored once there is a
    checkpoint, except that anything but `0` ends the attempts with `revision=0`, which go on until all that
    it replays has come.
    """
    on_gap: Literal["stop", "continue"] = "stop"
    """What follows a gap: `stop` ends the process with exit 5, `continue` resumes after the gap."""
    unconverted_messages: Count = 100
    """So many dead letters in a row, without a bet among them, over `unconverted_seconds` or more, mean that
    nothing can be converted.
    """
    unconverted_seconds: Seconds = 60
    """From the first of these messages to the last."""
    on_unconverted: Literal["continue", "stop"] = "continue"
    """What follows then: with `continue` the bridge goes on, and is not ready until a bet can be converted;
    `stop` ends the process with exit 11.
    """
    refusal_statuses: frozenset[Annotated[int, Field(ge=300, le=599)]] = frozenset({403, 429})
    """HTTP statuses with which the provider refuses a connection attempt for now. 401 always means that the
    credential is wrong.
    """
    refusal_close_codes: frozenset[Annotated[int, Field(ge=1000, le=4999)]] = frozenset({1008, 1013})
    """WebSocket close codes with which the provider refuses a connection that it has accepted."""
    optional_fields: frozenset[str] = Field(default=frozenset(), examples=[["data.partialRefund"]])
    """Paths of non-nullable fields that the provider omits when they hold their type's zero, such as
    `data.partialRefund` or `data.selections[].limitsFactor`. A message that omits any other such field is a
    dead letter.
    """
    max_message_bytes: Bytes = 8 * 1024 * 1024
    """A larger message is a dead letter with its size, its hash and its first 64 KiB. The default is more
    than ten times the largest bet. Memory grows with this setting ([reliability](reliability.md)), and the
    topics must take 1 MiB more.
    """
    compression: Literal["deflate", "none"] = "deflate"
    """Whether to offer permessage-deflate to the provider."""
    proxy: Annotated[Address, AfterValidator(check_proxy)] = Address("env")
    """`env` (`HTTPS_PROXY` and similar variables), `none`, or the proxy's address."""
    connect_timeout_seconds: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 10
    """How long a connection attempt may take."""

    @field_validator("base_url")
    @classmethod
    def _has_not_the_path_of_the_feed(cls, value: Address | None) -> Address | None:
        if value is not None and (path := re.search(r"/feed/settlement/v\d+/?$", value)):
            raise ValueError(f"must end before {path[0]}: the bridge adds that")
        return value

    @field_validator("ping_reply")
    @classmethod
    def _has_ping_id(cls, value: str) -> str:
        if value not in ("none", "echo") and "{pingId}" not in value:
            raise ValueError('must be "none", "echo" or a template that contains {pingId}')
        return value

    @field_validator("optional_fields")
    @classmethod
    def _can_be_omitted(cls, value: frozenset[str]) -> frozenset[str]:
        from bridge.messages.model import omittable_fields

        known = omittable_fields()
        if unknown := sorted(value - known.keys()):
            nearest = difflib.get_close_matches(unknown[0], known, n=1, cutoff=0)[0]
            raise ValueError(
                f"{shortened(unknown[0])!r} is not a required number, boolean, result or time: only these "
                f"can be omitted. Did you mean {nearest}?"
            )
        return value

    @field_validator("start")
    @classmethod
    def _is_start(cls, value: str) -> str:
        parse_start(value, now=0.0)
        return value

    @model_validator(mode="after")
    def _auth_is_complete(self) -> Self:
        given = self.auth_value is not None, self.auth_value_file is not None
        if self.auth != "none" and sum(given) != 1:
            raise ValueError(f"auth = {self.auth} needs either auth_value or auth_value_file")
        if self.auth in ("header", "query") and not self.auth_name:
            raise ValueError(f"auth = {self.auth} needs auth_name")
        if self.auth == "header" and not re.fullmatch(r"[\w!#$%&'*+.^`|~-]+", self.auth_name or "", re.ASCII):
            raise ValueError("auth_name must be the name of a header")
        if self.auth == "query" and self.auth_name == "revision":
            raise ValueError("auth_name = revision is the bridge's own parameter")
        return self

    @model_validator(mode="after")
    def _margin_covers_skew(self) -> Self:
        # Before the first answer the skew is unknown: the margin has to cover it.
        if self.max_clock_skew_seconds > self.safety_margin_seconds:
            raise ValueError(
                f"max_clock_skew_seconds = {self.max_clock_skew_seconds:g} must not be above "
                f"safety_margin_seconds = {self.safety_margin_seconds:g}"
            )
        return self

    @property
    def stall_seconds(self) -> float:
        """A longer pause in reading delays messages too much. Reading is checked once a second."""
        return max(self.safety_margin_seconds / 2, 2.5)

    @property
    def _auth_form(self) -> Form:
        return {"bearer": Form.BEARER, "header": Form.HEADER}.get(self.auth, Form.ANY)

    def auth_secret(self) -> str:
        """Return the current credential; a file is read at each call. Raises like `read_secret`."""
        return secret_of(
            "BRIDGE_FEED__AUTH_VALUE", self.auth_value, self.auth_value_file, form=self._auth_form
        )

    def auth_problem(self) -> str:
        """Return why the credential's file cannot be read now, "" if it can, or there is none."""
        file = self.auth_value_file
        return "" if file is None else secret_problem(file, self._auth_form)


class LimitsSettings(Section):
    """The provider's limits on connections and recovery. Change them only when the provider does."""

    initial_connections: Count = 5
    """Connection attempts per window without a revision, with revision 0, or with one that is too old."""
    initial_window_seconds: Seconds = 1800
    """Length of that window."""
    proper_connections: Count = 5
    """Connection attempts per window with any other revision; those of the kind above count here as well."""
    proper_window_seconds: Seconds = 300
    """Length of that window."""
    large_connections: Count = 5
    """Large recoveries per window. Revision 0, or one that is too old, counts here as well."""
    large_window_seconds: Seconds = 1800
    """Length of that window."""
    large_age_seconds: Seconds = 3600
    """A recovery from an older revision is large. At most `bucket_seconds` and `max_age_seconds`."""
    bucket_seconds: Seconds = 3600
    """Capacity of the leaky bucket for small recoveries, in seconds of recovery."""
    bucket_drain: Annotated[float, Field(ge=0.01, le=LONGEST_SECONDS, allow_inf_nan=False)] = 4
    """Seconds of recovery that leak from the bucket each second."""
    bucket_may_overflow: bool = False
    """Whether a recovery may begin while the bucket is not full, however long it is: the interface word by
    word. Otherwise it must fit in.
    """
    max_age_seconds: Seconds = 259_200
    """How far back the provider can replay: three days."""
    max_retry_after_seconds: Seconds = 3600
    """The longest pause given when a refused handshake asks for one (`Retry-After`); 0 ignores it."""
    count_unreached: bool = False
    """Whether an attempt counts that ended before a connection to the provider's host, or a proxy's tunnel to
    it, was open: an unknown host, no route, a refused connection. TLS and what follows always count.
    """
    scale: Annotated[float, Field(ge=1, le=LONGEST_SECONDS, allow_inf_nan=False)] = 1
    """Factor by which time runs faster in every limit. Only for tests, with `bridge simulate --limits-scale`.
    """

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.bucket_seconds < self.large_age_seconds:
            raise ValueError(
                f"bucket_seconds = {self.bucket_seconds:g} must not be below "
                f"large_age_seconds = {self.large_age_seconds:g}, or some recoveries would never be allowed"
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


class RegistrySettings(TlsSection):
    """A schema registry that speaks Confluent's API."""

    url: Annotated[Address, is_address("https://registry.example", "https?")] | None = Field(
        default=None, examples=["https://registry.example"]
    )
    """The registry's address. Every command that reads or writes Avro records needs it; `topics …` and
    `deadletters list`, `show` and `export` do without.
    """
    user: str | None = Field(default=None, examples=["settlement-bridge"])
    """User for basic authentication."""
    password: SecretStr | None = Field(default=None, examples=["…"])
    """The user's password. Prefer `password_file`."""
    password_file: FilePath | None = Field(default=None, examples=["/run/secrets/registry"])
    """A file that holds the password."""

    @model_validator(mode="after")
    def _password_is_given_once(self) -> Self:
        only_one(self, "password")
        return self

    def secret(self) -> str:
        """Return the current password. Raises SettingsError like `read_secret`."""
        return secret_of("BRIDGE_REGISTRY__PASSWORD", self.password, self.password_file, self.user)


class TopicsSettings(Section):
    """Names and shape of the topics."""

    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$"), AfterValidator(_ends_without_a_dot)] = (
        "settlement"
    )
    """First part of the name of every topic, group and transactional id, without the dot behind it."""
    partitions: Annotated[int, Field(gt=0, le=10_000)] = 6
    """Partitions of a topic of bets, dead letters or names when the bridge creates it. The bridge never adds
    partitions to a topic.
    """
    replication_factor: Annotated[int, Field(gt=0, le=32767)] | None = Field(default=None, examples=[3])
    """Replicas of a topic that the bridge creates. Unset, as many as the cluster offers, up to 3."""
    min_compaction_lag_days: Annotated[float, Field(ge=4, le=LONGEST_AGE_DAYS, allow_inf_nan=False)] = 7
    """How long every version of a bet stays readable. The deduplicator needs at least four days."""


class BatchSettings(Section):
    """The size of a transaction. A batch is committed when it reaches one of the bounds."""

    max_records: Count = 5000
    """Records in a batch."""
    max_bytes: Bytes = 8 * 1024 * 1024
    """Bytes of records in a batch."""
    max_age_ms: Annotated[int, Field(gt=0, le=10_000)] = 20
    """Age of a transaction, in milliseconds. While messages wait, it may become older."""


class WebSettings(Section):
    """Status page, health and metrics over HTTP; see [observability.md](observability.md)."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; `::` in a container: all addresses of IPv6 and IPv4."""
    port: Annotated[int, Field(ge=0, le=65535)] = 9464
    """Port to listen on. 0 takes any free port, which the log reports. While it is taken, as by the owner
    beside a standby, the bridge works without it and tries again.
    """
    hosts: tuple[str, ...] = Field(default=(), examples=[["bridge.example"]])
    """Further names by which the server may be called; addresses, `localhost`, `web.host` and the machine's
    name need not be listed. A request for another name is refused."""
    show_bets: bool = False
    """Whether the status page shows the last ten bets. Everybody who can open it sees them: personal data."""


_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def age_seconds(text: str) -> int:
    """Return an age (`90s`, `2h`, `1d 4h` as `format_duration` does) in seconds. Raises SettingsError."""
    if not is_age(text):
        raise SettingsError(f"{shortened(text)!r} is not an age such as 90s, 30m, 2h, 3d or 1h30m")
    longest = LONGEST_AGE_DAYS * 86_400
    seconds = 0
    for digits, unit in re.findall(r"(\d+)([smhd])", text):
        # Python refuses to parse thousands of digits.
        seconds += longest + 1 if len(digits) > 12 else int(digits) * _UNITS[unit]
    if seconds > longest:
        raise SettingsError(f"{shortened(text)!r} is too long: an age is at most {LONGEST_AGE_DAYS}d")
    return seconds


def is_age(text: str) -> bool:
    """Return whether this is an age, though perhaps one that is too long."""
    return re.fullmatch(r"\d+[smhd]( ?\d+[smhd])*", text, re.ASCII) is not None


def parse_time(text: str, now: float) -> float:
    """Return the Unix time of an age before `now`, or of a time with its zone. Raises SettingsError."""
    if is_age(text):
        return now - age_seconds(text)
    if (found := parse_instant(text)) is None:
        raise SettingsError(
            f"{shortened(text)!r} is not a time: give one with its zone such as 2026-01-31T12:00:00Z, "
            "or an age such as 2h"
        )
    return found


def parse_start(text: str, now: float) -> int | None:
    """Return where a first start begins, in Unix seconds; None for `0`, an initial connection.

    `text` is `0`, or a time as for `parse_time`. Raises ValueError.
    """
    try:
        return None if text == "0" else int(parse_time(text, now))
    except SettingsError as error:
        raise ValueError(f"must be 0, an age or a time: {error}") from None

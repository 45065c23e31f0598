"""The section feed: meaning, default, bounds of each setting."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, field_validator, model_validator

from bridge.config.fields import (
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
)
from bridge.config.secrets import Form, Secret
from bridge.config.times import parse_start
from bridge.formatting import shortened


def _is_free(name: str) -> str:
    if name in ("translations", "currencies"):
        raise ValueError("is reserved: the command of this name uses it for a transactional id")
    return name


class FeedCredential(TlsSection):
    """How the bridge shows the provider who it is."""

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

    @property
    def secret(self) -> Secret:
        """The credential."""
        form = {"bearer": Form.BEARER, "header": Form.HEADER}.get(self.auth, Form.ANY)
        return Secret("feed.auth_value", self.auth_value, self.auth_value_file, form)

    def secrets(self) -> Iterable[Secret]:
        """Return the credential, if the feed wants one."""
        return [] if self.auth == "none" else [self.secret]


class FeedMargins(Section):
    """Time-outs, and margins of the position."""

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
    connect_timeout_seconds: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 10
    """How long a connection attempt may take."""

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


class FeedSettings(FeedCredential, FeedMargins):
    """The provider's feed: its address, authentication, time-outs and margins."""

    base_url: Annotated[Address, is_address("https://provider.example", "https?", "wss?")] | None = Field(
        default=None, examples=["https://provider.example"]
    )
    """The provider's base address, http(s) or ws(s). The bridge adds the path of the feed. `bridge run` needs
    it.
    """
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$"), AfterValidator(_is_free)] = (
        "settlement-v4"
    )
    """Key of the checkpoint; part of the transactional id and of the owner group's id. Not `translations` or
    `currencies`.
    """
    ping_reply: str = "none"
    """The answer to a ping: `none`, `echo` (the message as it came), or a template that contains `{pingId}`.
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

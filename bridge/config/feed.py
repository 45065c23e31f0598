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
    """`header` and `query` need `auth_name`; all but `none` need `auth_value` or `auth_value_file`."""
    auth_name: str | None = Field(default=None, examples=["X-Api-Key"])
    """Name of the header or query parameter."""
    auth_value: SecretStr | None = Field(default=None, examples=["…"])
    """The credential; better `auth_value_file`."""
    auth_value_file: FilePath | None = Field(default=None, examples=["/run/secrets/feed"])
    """A file with the credential, read before each connection attempt. While it cannot be read, the last
    value counts.
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
    """A connection without anything for this long, not even a ping, is closed."""
    live_after_pings_seconds: Seconds = 120
    """A connection with pings alone for this long has caught up."""
    safety_margin_seconds: Seconds = 30
    """How far the position stays behind the time of receipt, besides `max_out_of_orderness_seconds`."""
    max_out_of_orderness_seconds: Seconds = 60
    """How far out of order `settlementTime` may be."""
    max_clock_skew_seconds: Annotated[float, Field(ge=1, le=LONGEST_SECONDS, allow_inf_nan=False)] = 15
    """Exit 9 when the provider's clock differs by more. At most `safety_margin_seconds`."""
    connect_timeout_seconds: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 10
    """How long an attempt may take."""

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
    """The provider's feed."""

    base_url: Annotated[Address, is_address("https://provider.example", "https?", "wss?")] | None = Field(
        default=None, examples=["https://provider.example"]
    )
    """Its address, http(s) or ws(s), without the path of the feed. `bridge run` needs it."""
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,100}$"), AfterValidator(_is_free)] = (
        "settlement-v4"
    )
    """Key of the checkpoint; part of the transactional id and the owner group. Not `translations` or
    `currencies`.
    """
    ping_reply: str = "none"
    """The answer to a ping: `none`, `echo` (as it came), or a template with `{pingId}`."""
    start: str = "0"
    """Where a first start begins: `0` (`revision=0`: the provider decides), an age (`90s`, `2h`, `1d 4h`), or
    an ISO 8601 time with its zone. With a checkpoint it is ignored, but anything except `0` ends attempts
    with `revision=0` whose replay has not all come.
    """
    on_gap: Literal["stop", "continue"] = "stop"
    """After a gap: `stop` is exit 5, `continue` goes on behind it."""
    unconverted_messages: Count = 100
    """Nothing can be converted after so many dead letters in a row, over `unconverted_seconds` or more."""
    unconverted_seconds: Seconds = 60
    """From the first of these to the last."""
    on_unconverted: Literal["continue", "stop"] = "continue"
    """Then `continue` goes on, not ready until a bet can be converted; `stop` is exit 11."""
    refusal_statuses: frozenset[Annotated[int, Field(ge=300, le=599)]] = frozenset({403, 429})
    """HTTP statuses that refuse an attempt for now. 401 is always a wrong credential."""
    refusal_close_codes: frozenset[Annotated[int, Field(ge=1000, le=4999)]] = frozenset({1008, 1013})
    """WebSocket close codes that refuse an accepted connection."""
    optional_fields: frozenset[str] = Field(default=frozenset(), examples=[["data.partialRefund"]])
    """Non-nullable fields that the provider omits where they are zero, such as `data.partialRefund` or
    `data.selections[].limitsFactor`. Without any other, a message is a dead letter.
    """
    max_message_bytes: Bytes = 8 * 1024 * 1024
    """A larger message is a dead letter with its size, hash and first 64 KiB. Memory grows with it
    ([reliability.md](reliability.md)); topics must take 1 MiB more.
    """
    compression: Literal["deflate", "none"] = "deflate"
    """Whether to offer permessage-deflate."""
    proxy: Annotated[Address, AfterValidator(check_proxy)] = Address("env")
    """`env` (`HTTPS_PROXY` and the like), `none`, or an address."""

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

"""The sections limits, registry, topics, batch and web: meaning, default, bounds of each setting."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, SecretStr, model_validator

from bridge.config.fields import (
    LONGEST_AGE_DAYS,
    LONGEST_SECONDS,
    Address,
    Bytes,
    Count,
    FilePath,
    Seconds,
    Section,
    Text,
    TlsSection,
    is_address,
    only_one,
)
from bridge.config.secrets import Form, Secret


class LimitsSettings(Section):
    """The provider's limits; change them when it does."""

    initial_connections: Count = 5
    """Attempts per window without a revision, with 0 or one too old."""
    initial_window_seconds: Seconds = 1800
    """Length of that window."""
    proper_connections: Count = 5
    """Attempts of any kind per window."""
    proper_window_seconds: Seconds = 300
    """Length of that window."""
    large_connections: Count = 5
    """Large recoveries per window, and those with 0 or one too old."""
    large_window_seconds: Seconds = 1800
    """Length of that window."""
    large_age_seconds: Seconds = 3600
    """Older than this, a recovery is large. At most `bucket_seconds` and `max_age_seconds`."""
    bucket_seconds: Seconds = 3600
    """The bucket for small recoveries, in seconds of recovery."""
    bucket_drain: Annotated[float, Field(ge=0.01, le=LONGEST_SECONDS, allow_inf_nan=False)] = 4
    """What leaks from it each second."""
    bucket_may_overflow: bool = False
    """Whether a recovery may begin while the bucket is not full, however long. Otherwise it must fit."""
    max_age_seconds: Seconds = 259_200
    """How far back the provider can replay."""
    max_retry_after_seconds: Seconds = 3600
    """The longest pause for a `Retry-After` of the feed; 0 ignores it."""
    count_unreached: bool = False
    """Whether an attempt counts that opened no connection (or proxy's tunnel) to the provider's host."""
    scale: Annotated[float, Field(ge=1, le=LONGEST_SECONDS, allow_inf_nan=False)] = 1
    """Every limit's time is divided by this: for tests, with `bridge simulate --limits-scale`."""

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
    """Its address. All commands with Avro records need it, not `topics …` and `deadletters list`, `show` and
    `export`.
    """
    user: str | None = Field(default=None, examples=["settlement-bridge"])
    """User for basic authentication; with `token_endpoint_url` a client's id."""
    password: SecretStr | None = Field(default=None, examples=["…"])
    """The user's password or client's secret; without a user, a bearer token. Prefer `password_file`."""
    password_file: FilePath | None = Field(default=None, examples=["/run/secrets/registry"])
    """A file with it, read at each use."""
    token_endpoint_url: Annotated[Address, is_address("https://issuer.example/token", "https?")] | None = (
        Field(default=None, examples=["https://issuer.example/oauth2/token"])
    )
    """Where an issuer gives the client tokens for the registry (OAuth client credentials). Its certificate is
    of a public authority or of `ca_file`.
    """
    scope: Text | None = Field(default=None, examples=["schema-registry"])
    """Their scope, where the issuer wants one."""
    logical_cluster: Text | None = Field(default=None, examples=["lsrc-12345"])
    """The registry's id, which Confluent Cloud wants with a token."""
    identity_pool: Text | None = Field(default=None, examples=["pool-12345"])
    """The identity pool's id, which it may want."""

    @model_validator(mode="after")
    def _password_is_given_once(self) -> Self:
        only_one(self, "password")
        if self.token_endpoint_url and (self.user is None or not self.secret.is_given):
            raise ValueError("token_endpoint_url needs user and either password or password_file")
        return self

    @property
    def secret(self) -> Secret:
        """The password, the client's secret, or the token."""
        form = Form.BEARER if self.user is None else Form.ANY
        return Secret("registry.password", self.password, self.password_file, form, self.user)

    def secrets(self) -> list[Secret]:
        """Return the secret, if there is one or should be."""
        return [self.secret] if self.user is not None or self.secret.is_given else []


class TopicsSettings(Section):
    """Names and shape of the topics."""

    prefix: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,200}$")] = "settlement"
    """First part of the names of topics, groups and transactional ids, without the dot."""
    partitions: Annotated[int, Field(gt=0, le=10_000)] = 6
    """Partitions of bets, dead letters and names when the bridge creates them. It never adds any."""
    replication_factor: Annotated[int, Field(gt=0, le=32767)] | None = Field(default=None, examples=[3])
    """Replicas of what the bridge creates. Unset: up to 3, as the cluster has brokers."""
    min_compaction_lag_days: Annotated[float, Field(ge=4, le=LONGEST_AGE_DAYS, allow_inf_nan=False)] = 7
    """How long every version of a bet stays. The deduplicator needs four days."""


class BatchSettings(Section):
    """A transaction is committed at one of these bounds."""

    max_records: Count = 5000
    """Records."""
    max_bytes: Bytes = 8 * 1024 * 1024
    """Bytes of records."""
    max_age_ms: Annotated[int, Field(gt=0, le=10_000)] = 20
    """Age; older while messages wait."""


class WebSettings(Section):
    """Status page, health and metrics over HTTP ([observability.md](observability.md))."""

    host: Annotated[str, Field(min_length=1)] = "127.0.0.1"
    """Address to listen on; `::` is all of IPv6 and IPv4."""
    port: Annotated[int, Field(ge=0, le=65535)] = 9464
    """0 is any free port (see the log). While it is taken, the bridge works without it and tries again."""
    hosts: tuple[str, ...] = Field(default=(), examples=[["bridge.example"]])
    """Further names by which it may be called, besides addresses, `localhost`, `web.host` and the machine's
    name. Others are refused."""
    show_bets: bool = False
    """Whether the status page shows the last ten bets: personal data, for all who can open it."""

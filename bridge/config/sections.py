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
    """User for basic authentication; with `token_endpoint_url` the id of a client."""
    password: SecretStr | None = Field(default=None, examples=["…"])
    """The password of the user, or the secret of the client; without a user, a bearer token. Prefer
    `password_file`.
    """
    password_file: FilePath | None = Field(default=None, examples=["/run/secrets/registry"])
    """A file that holds the password, secret or token. It is read at each use, so that can be renewed."""
    token_endpoint_url: Annotated[Address, is_address("https://issuer.example/token", "https?")] | None = (
        Field(default=None, examples=["https://issuer.example/oauth2/token"])
    )
    """Where an issuer gives the client tokens (OAuth client credentials), which are sent to the registry.
    They are renewed in time. The issuer's certificate is of a public authority or of `ca_file`.
    """
    scope: Text | None = Field(default=None, examples=["schema-registry"])
    """The scope of these tokens, where the issuer wants one."""
    logical_cluster: Text | None = Field(default=None, examples=["lsrc-12345"])
    """Id of the registry, which Confluent Cloud wants with a token."""
    identity_pool: Text | None = Field(default=None, examples=["pool-12345"])
    """Id of the identity pool, which Confluent Cloud may want with a token."""

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

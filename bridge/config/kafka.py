"""The settings of the Kafka cluster: librdkafka's properties, but for those that are the bridge's own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError

from bridge.config.librdkafka import property_error
from bridge.config.secrets import Secret

LONGEST_SESSION_MS: Final = 3_600_000
SESSION_MS: Final = 10_000
HEARTBEAT_MS: Final = 500
"""A standby learns with its next heartbeat that the owner has left."""
SECRETS: Final = (
    "sasl_oauthbearer_assertion_private_key_passphrase",
    "sasl_oauthbearer_assertion_private_key_pem",
    "sasl_oauthbearer_client_credentials_client_secret",
    "sasl_oauthbearer_client_secret",
    "sasl_oauthbearer_config",
    "sasl_password",
    "ssl_key_password",
    "ssl_key_pem",
    "ssl_keystore_password",
)
"""librdkafka's properties that hold a secret. Each can also be given by the path of a file, with `_file`."""
OURS: Final = frozenset(
    {
        "acks",
        "allow_auto_create_topics",
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
        "message_max_bytes",
        "partition_assignment_strategy",
        "partitioner",
        "statistics_interval_ms",
        "topic_blacklist",
        "transactional_id",
    }
)
"""Properties that the bridge sets or relies on."""
ALIASES: Final = {
    "auto_commit_enable": "enable_auto_commit",
    "max_in_flight": "max_in_flight_requests_per_connection",
    "request_required_acks": "acks",
}
"""librdkafka's other names of these properties."""

_OF_USERS: Final = ("PLAIN", "SCRAM-SHA-")
"""Beginnings of the SASL mechanisms that take a user and a password."""


class KafkaSettings(BaseModel):
    """The Kafka cluster. Any other librdkafka property can be set, `_` for `.` ([kafka.md](kafka.md))."""

    model_config = ConfigDict(
        frozen=True,
        extra="allow",
        hide_input_in_errors=True,
        json_schema_extra={
            "examples": [
                {
                    "security_protocol": "SASL_SSL",
                    "sasl_mechanism": "SCRAM-SHA-512",
                    "sasl_username": "settlement-bridge",
                    "sasl_password_file": "/run/secrets/kafka",
                    "ssl_ca_location": "/etc/ssl/kafka.pem",
                }
            ]
        },
    )

    bootstrap_servers: str | None = Field(default=None, examples=["broker-1:9093,broker-2:9093"])
    """Brokers. All commands need it but `dev`, `simulate`, `demo` and `schemas`."""
    sasl_oauthbearer_msk_region: str | None = Field(
        default=None, pattern=r"^[a-z]+(-[a-z]+)+-[0-9]+$", examples=["eu-central-1"]
    )
    """AWS region of an Amazon MSK with IAM ([managed.md](managed.md#amazon-msk)). Needs `sasl_mechanism =
    "OAUTHBEARER"` and the extra `msk`.
    """

    @model_validator(mode="before")
    @classmethod
    def _hide_secrets(cls, given: Any) -> Any:
        if not isinstance(given, dict):  # the validation that follows reports it
            return given
        return {name: _typed(_key(name), value) for name, value in given.items()}

    @model_validator(mode="after")
    def _are_properties(self) -> Self:
        refused = {name: _refusal(_key(name), value) for name, value in self._given().items()}
        counts = Counter(it.setting.removeprefix("kafka.") for it in self.secrets())
        refused |= {
            f"{name}_file": f"give either {name} or {name}_file, not both"
            for name in counts
            if counts[name] > 1
        }
        given = self.public_properties()
        session = given.get("session.timeout.ms", SESSION_MS)
        beat = given.get("heartbeat.interval.ms", HEARTBEAT_MS)
        if not any(refused.values()) and int(beat) >= int(session):
            refused["heartbeat_interval_ms"] = f"must be below kafka.session_timeout_ms = {session}"
        mechanism = str(given.get("sasl.mechanism", given.get("sasl.mechanisms", ""))).upper()
        if str(given.get("security.protocol")).lower().startswith("sasl") and mechanism.startswith(_OF_USERS):
            lacking = {"sasl_username": "", "sasl_password": ", or sasl_password_file"}
            known = {*map(_key, self._given()), *counts}
            refused |= {
                name: f"is not set: sasl_mechanism = {mechanism} needs it{other}"
                for name, other in lacking.items()
                if name not in known
            }
        if self.sasl_oauthbearer_msk_region and (
            mechanism != "OAUTHBEARER" or "sasl.oauthbearer.method" in given
        ):
            refused["sasl_oauthbearer_msk_region"] = (
                "needs sasl_mechanism = OAUTHBEARER, and no sasl_oauthbearer_method"
            )
        errors: list[InitErrorDetails] = [
            {"type": PydanticCustomError("property", "{why}", {"why": why}), "loc": (name,), "input": None}
            for name, why in refused.items()
            if why
        ]
        if errors:
            raise ValidationError.from_exception_data("kafka", errors)
        return self

    def secrets(self) -> Iterator[Secret]:
        """Yield the secrets that are given."""
        values = {_key(given): value for given, value in self._given().items()}
        for key, value in values.items():
            name = key.removesuffix("_file")
            # An issuer gets a client's secret as a password of Basic authentication.
            client = f"{name.removesuffix('secret')}id" if name.endswith("client_secret") else ""
            user = str(values[client]) if client in values else None
            match value:
                case SecretStr():
                    yield Secret(f"kafka.{name}", value, None, user=user)
                case Path():
                    yield Secret(f"kafka.{name}", None, value, user=user)

    def public_properties(self) -> dict[str, str | int | float | bool]:
        """Return librdkafka's names and values, without the secrets."""
        found = {"bootstrap_servers": self.bootstrap_servers or ""} | {
            name: value for name, value in self._given().items() if not isinstance(value, SecretStr | Path)
        }
        return {name.replace("_", "."): value for name, value in found.items()}

    def properties(self) -> dict[str, str | int | float | bool]:
        """Return librdkafka's names and values, with the secrets. Raises SettingsError like `Secret.read`."""
        secrets = {it.setting.removeprefix("kafka.").replace("_", "."): it.read() for it in self.secrets()}
        return self.public_properties() | secrets

    def _given(self) -> dict[str, Any]:
        return self.model_extra or {}


def _key(name: str) -> str:
    """Return the name of a setting for a property whose name has dots."""
    return name.replace(".", "_")


def _typed(key: str, value: object) -> object:
    """Return a secret so that it is not shown, its file as a path, and other values as they are."""
    if key in SECRETS and isinstance(value, str | int | float):
        return SecretStr(str(value))
    if key.removesuffix("_file") in SECRETS and isinstance(value, str):
        return Path(value)
    return value


def _refusal(key: str, value: object) -> str:
    """Return why a property of librdkafka cannot be set, "" if it can."""
    if key in ("bootstrap_servers", "metadata_broker_list", "bootstrap"):
        return "is not a setting; did you mean kafka.bootstrap_servers?"
    if key in OURS:
        return "is set by the bridge itself and cannot be changed; remove it"
    if key in ALIASES:
        return f"is another name of {ALIASES[key]}, which is set by the bridge itself; remove it"
    if isinstance(value, SecretStr | Path):
        return property_error(key.removesuffix("_file").replace("_", "."), "")  # an error may repeat a value
    if not isinstance(value, str | int | float | bool):
        return "must be a string, a number or true/false; write _ for the dots of a property"
    if isinstance(value, float):
        return "must be a whole number"
    # librdkafka is laxer: it reads 1e300 as 1.
    digits = re.fullmatch(r"[0-9]{1,7}", str(value))
    if key == "session_timeout_ms" and not (digits and 0 < int(value) <= LONGEST_SESSION_MS):
        return f"must be a whole number from 1 to {LONGEST_SESSION_MS}"
    return property_error(key.replace("_", "."), value)

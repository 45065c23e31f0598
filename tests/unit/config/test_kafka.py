"""The settings of Kafka beside what the installed librdkafka says of its properties."""

from __future__ import annotations

import logging
import re
from contextlib import suppress

import pytest
from confluent_kafka import KafkaException, Producer

from bridge.config import load
from bridge.config.kafka import ALIASES, OURS, SECRETS
from bridge.config.librdkafka import table_of_properties
from tests.unit.config.given import complaint, variables

NO_SECRETS = {
    "sasl_oauthbearer_assertion_private_key_file",  # a path
    "sasl_username",
    "ssl_ca_pem",  # a certificate
    "ssl_key_location",  # a path
}
"""What librdkafka redacts in its log as well."""


def aliases() -> dict[str, str]:
    """Alias → name of all properties, with `_` for `.`."""
    found = re.findall(r"^([a-z][\w.]+) +\|.*Alias for `([\w.]+)`", table_of_properties(), re.MULTILINE)
    return {alias.replace(".", "_"): name.replace(".", "_") for alias, name in found}


def redacted() -> set[str]:
    """Properties that librdkafka does not show when it logs the configuration of a client."""
    lines: list[str] = []
    log = logging.Logger("of this test")
    log.addHandler(handler := logging.Handler())
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    for name in re.findall(r"^([a-z][\w.]+) +\|.*\*Type: string\*$", table_of_properties(), re.MULTILINE):
        with suppress(KafkaException):  # it wants another value, or another property as well
            Producer({"debug": "conf", name: "x"}, logger=log).poll(0)
    return {match[1] for line in lines if (match := re.search(r"([\w.]+) = \[redacted\]", line))}


def test_secrets_are_what_librdkafka_redacts() -> None:
    names = {name.replace(".", "_") for name in redacted()} - NO_SECRETS
    assert sorted(names | {alias for alias, name in aliases().items() if name in names}) == list(SECRETS)


def test_all_other_names_of_the_bridges_own_properties_are_known() -> None:
    known = {frozenset(pair) for pair in ALIASES.items()}
    assert known == {frozenset(pair) for pair in aliases().items() if OURS.intersection(pair)}


@pytest.mark.parametrize("name", [*sorted(OURS), *ALIASES])
def test_a_property_of_the_bridge_is_refused_by_each_name(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    variables(monkeypatch, **{f"KAFKA__{name.upper()}": "1"})
    alias = f"is another name of {ALIASES[name]}, which " if name in ALIASES else ""
    why = "is set by the bridge itself" + ("" if alias else " and cannot be changed") + "; remove it"
    assert complaint() == f"kafka.{name} (BRIDGE_KAFKA__{name.upper()}): {alias}{why}"


def test_a_member_says_that_it_lives_before_its_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable := "BRIDGE_KAFKA__HEARTBEAT_INTERVAL_MS", "10000")
    said = f"kafka.heartbeat_interval_ms ({variable}): must be below kafka.session_timeout_ms = 10000"
    assert complaint() == said
    monkeypatch.setenv("BRIDGE_KAFKA__SESSION_TIMEOUT_MS", "30000")
    assert load().kafka.public_properties()["heartbeat.interval.ms"] == "10000"


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_a_mechanism_with_a_user_needs_name_and_password(
    mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRIDGE_KAFKA__SASL_MECHANISM", mechanism)
    load()
    monkeypatch.setenv("BRIDGE_KAFKA__SECURITY_PROTOCOL", "sasl_ssl")
    needs = f"is not set: sasl_mechanism = {mechanism} needs it"
    assert complaint().splitlines() == [
        f"kafka.sasl_username (BRIDGE_KAFKA__SASL_USERNAME): {needs}",
        f"kafka.sasl_password (BRIDGE_KAFKA__SASL_PASSWORD): {needs}, or sasl_password_file",
    ]
    monkeypatch.setenv("BRIDGE_KAFKA__SASL_USERNAME", "me")
    monkeypatch.setenv("BRIDGE_KAFKA__SASL_PASSWORD_FILE", "file")
    load()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"SASL_MECHANISM": "PLAIN", "SASL_USERNAME": "u", "SASL_PASSWORD": "p"},
            "needs sasl_mechanism = OAUTHB",
        ),
        (
            {"SASL_MECHANISM": "OAUTHBEARER", "SASL_OAUTHBEARER_METHOD": "oidc"},
            "and no sasl_oauthbearer_method",
        ),
        (
            {
                "SASL_MECHANISM": "OAUTHBEARER",
                "SASL_OAUTHBEARER_MSK_REGION": "kafka.eu-central-1.amazonaws.com",
            },
            "BRIDGE_KAFKA__SASL_OAUTHBEARER_MSK_REGION",
        ),
        ({"SASL_MECHANISM": "OAUTHBEARER"}, ""),
    ],
)
def test_the_region_of_amazon_msk_is_a_way_to_a_token(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], said: str
) -> None:
    given = {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_OAUTHBEARER_MSK_REGION": "eu-central-1"} | given
    variables(monkeypatch, **{f"KAFKA__{name}": value for name, value in given.items()})
    if said:
        assert said in complaint()
    else:
        assert load().kafka.sasl_oauthbearer_msk_region == "eu-central-1"
        assert "sasl.oauthbearer.msk.region" not in load().kafka.properties()

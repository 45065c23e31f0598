"""Credentials that others could read on their way are worth a warning."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.config import Settings
from bridge.doctor.encryption import check_encryption
from bridge.doctor.finding import Verdict

HUSH = "s3cret"
BEARER = {"auth": "bearer", "auth_value": HUSH}
SASL = {"sasl_mechanism": "plain", "sasl_username": "me", "sasl_password": HUSH}
CLIENT = {"url": "https://registry", "user": "me", "password": HUSH}
AT = {"base_url": "https://provider.example"}
UNVERIFIED = "kafka.enable_ssl_certificate_verification is false"


@pytest.mark.parametrize(
    ("section", "given", "warning"),
    [
        (
            "feed",
            {"base_url": "ws://provider.example", **BEARER},
            "feed.base_url begins with ws://: the cred",
        ),
        ("feed", {"base_url": "http://provider.example", **BEARER}, "feed.base_url begins with http://"),
        ("feed", {"base_url": f"ws://me:{HUSH}@provider.example"}, "is sent to provider.example unencrypted"),
        ("feed", {"base_url": "http://provider.example"}, ""),
        ("feed", {"base_url": "wss://provider.example", **BEARER}, ""),
        ("feed", {"base_url": "http://127.1.2.3:8900", **BEARER}, ""),
        ("feed", BEARER, ""),
        ("registry", {"url": "http://registry", "user": "me", "password": HUSH}, "registry.url begins with"),
        ("registry", {"url": "http://registry", "password": HUSH}, "is sent to registry unencrypted"),
        ("registry", {"url": f"http://me:{HUSH}@registry"}, "registry.url begins with http://"),
        ("registry", {"url": "http://registry"}, ""),
        ("registry", {"url": "https://registry", "user": "me", "password": HUSH}, ""),
        ("registry", {"url": "http://localhost:8081", "user": "me", "password": HUSH}, ""),
        ("registry", {**CLIENT, "token_endpoint_url": "http://issuer"}, "is sent to issuer unencrypted"),
        ("registry", {**CLIENT, "token_endpoint_url": "https://issuer"}, ""),
        ("api", {"base_url": "http://10.0.0.1", "token": HUSH}, "api.base_url begins with http://"),
        ("api", {"base_url": "http://10.0.0.1", "token_file": "token"}, "is sent to 10.0.0.1 unencrypted"),
        ("api", {"base_url": "http://10.0.0.1"}, ""),
        ("api", {"base_url": "http://[::1]:8900", "token": HUSH}, ""),
        (
            "feed",
            {**AT, "proxy": f"http://me:{HUSH}@proxy.example"},
            "of the proxy is sent to proxy.example",
        ),
        (
            "api",
            {**AT, "proxy": f"http://me:{HUSH}@proxy.example"},
            "api.proxy is not https://: the password",
        ),
        ("feed", {**AT, "proxy": f"https://me:{HUSH}@proxy.example"}, ""),
        ("feed", {**AT, "proxy": "http://proxy.example"}, ""),
        ("feed", {**AT, "proxy": f"http://me:{HUSH}@localhost:3128"}, ""),
        ("kafka", {"enable_ssl_certificate_verification": False}, UNVERIFIED),
        ("kafka", {"enable_ssl_certificate_verification": "F"}, UNVERIFIED),
        ("kafka", {"enable.ssl.certificate.verification": "0"}, UNVERIFIED),
        ("kafka", {"enable_ssl_certificate_verification": "true"}, ""),
        (
            "kafka",
            {"ssl_endpoint_identification_algorithm": "none"},
            "certificate of the authority can impersonate",
        ),
        ("kafka", {"ssl_endpoint_identification_algorithm": "https"}, ""),
        (
            "kafka",
            {"sasl_oauthbearer_token_endpoint_url": "http://issuer.example/token"},
            "to issuer.example",
        ),
        ("kafka", {"sasl_oauthbearer_token_endpoint_url": "http://127.0.0.1:1/token"}, ""),
        ("kafka", {"sasl_oauthbearer_token_endpoint_url": "https://issuer.test/token"}, ""),
        ("kafka", {"security_protocol": "SASL_PLAINTEXT", **SASL}, "PLAIN sends the credential to the brok"),
        ("kafka", {"security_protocol": "SASL_SSL", **SASL}, ""),
        ("kafka", {"security_protocol": "sasl_plaintext", **SASL, "sasl_mechanism": "SCRAM-SHA-256"}, ""),
    ],
)
def test_a_credential_that_is_not_protected_is_worth_a_warning(
    section: str, given: dict[str, Any], warning: str
) -> None:
    kafka = {"bootstrap_servers": "localhost:9092, broker:9092"}
    sections = {"kafka": kafka, section: (kafka if section == "kafka" else {}) | given}
    found = check_encryption(Settings.model_validate(sections))
    assert found.outcome is (Verdict.WARN if warning else Verdict.OK)
    assert warning in found.message
    assert HUSH not in found.message


@pytest.mark.parametrize(
    ("servers", "outcome"),
    [
        ("127.0.0.1:9092, SASL_PLAINTEXT://[::1]:9092", Verdict.OK),
        ("127.0.0.1:9092, broker:9092", Verdict.WARN),
        ("[::", Verdict.WARN),
    ],
)
def test_brokers_on_this_machine_may_be_sent_a_password(servers: str, outcome: Verdict) -> None:
    given = {"security_protocol": "sasl_plaintext", "bootstrap_servers": servers, **SASL}
    assert check_encryption(Settings.model_validate({"kafka": given})).outcome is outcome


@pytest.mark.usefixtures("no_proxies")
def test_the_password_of_the_environment_s_proxy_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", f"http://me:{HUSH}@proxy.example:3128")
    sections = {
        "feed": {"base_url": "wss://feed.example"},
        "api": {"base_url": "https://api.example"},
        "registry": {"url": "https://registry.example"},
    }
    found = check_encryption(Settings.model_validate(sections))
    told = "HTTPS_PROXY (or a similar variable) is not https://: the password of the proxy is sent to"
    assert (found.outcome, found.message) == (Verdict.WARN, f"{told} proxy.example unencrypted")
    monkeypatch.setenv("no_proxy", "registry.example")
    alone = {name: {**given, "proxy": "none"} for name, given in sections.items() if name != "registry"}
    found = check_encryption(Settings.model_validate({**sections, **alone}))
    assert found.outcome is Verdict.OK, found.message

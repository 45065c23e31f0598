"""What `bridge doctor` says of names, certificates, tokens, disk and the REST side."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
from pydantic import SecretStr

from bridge.config import ApiSettings, FeedSettings, KafkaSettings, RegistrySettings, Settings
from bridge.doctor import certificates, local_checks, network_checks
from bridge.doctor.addresses import HostAddress, addresses
from bridge.doctor.certificates import Validity, assess_certificates, check_certificates
from bridge.doctor.finding import Finding, Verdict
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.tls import Authority
from tests.unit.snapshots.provider import minted

NOW = 1_790_000_000.0
DAY = 86_400.0
HOST = "127.0.0.1"
pytestmark = pytest.mark.usefixtures("no_proxies")


def settings(kafka: dict[str, Any] | None = None, **sections: Any) -> Settings:
    return Settings(kafka=KafkaSettings(**(kafka or {})), **sections)


# Names.


def test_addresses_are_those_of_the_settings() -> None:
    found = addresses(
        settings(
            {"bootstrap_servers": "one, SASL_SSL://two:1,[::1]:2", "security_protocol": "SASL_SSL"},
            registry=RegistrySettings(
                url="http://user:pass@registry.example/apis",
                token_endpoint_url="https://issuer.example/token",
                user="me",
                password=SecretStr("hush"),
            ),
            feed=FeedSettings(base_url="wss://feed.example/v1"),
            api=ApiSettings(base_url="https://api.example:8443"),
        )
    )
    assert found == [
        HostAddress("kafka.bootstrap_servers", "one", 9092, True),
        HostAddress("kafka.bootstrap_servers", "two", 1, True),
        HostAddress("kafka.bootstrap_servers", "::1", 2, True),
        HostAddress("registry.url", "registry.example", 80, False),
        HostAddress("registry.token_endpoint_url", "issuer.example", 443, True),
        HostAddress("feed.base_url", "feed.example", 443, True),
        HostAddress("api.base_url", "api.example", 8443, True),
    ]
    assert addresses(settings()) == []


@pytest.mark.parametrize("servers", ["[::", "b:port", "", ",", "//"])
def test_an_address_that_is_none_is_left_to_librdkafka(servers: str) -> None:
    assert addresses(settings({"bootstrap_servers": f"{servers},broker"}))[0].host == "broker"


def test_what_a_proxy_connects_to_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    given = settings(
        {"bootstrap_servers": "broker:9092"},
        registry=RegistrySettings(url="https://registry.inside"),
        feed=FeedSettings(base_url="wss://feed.example", proxy="http://proxy.example:3128"),
        api=ApiSettings(base_url="https://api.example", proxy="none"),
    )
    assert [a.host for a in addresses(given)] == ["broker", "registry.inside", "api.example"]
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    assert [a.host for a in addresses(given)] == ["broker", "api.example"]
    monkeypatch.setenv("no_proxy", ".inside")
    assert [a.host for a in addresses(given)] == ["broker", "registry.inside", "api.example"]


# Certificates.


@pytest.mark.parametrize(
    ("validity", "outcome", "words"),
    [
        (Validity(NOW - DAY, NOW), Verdict.TROUBLE, "feed: expired at 2026-09-21T"),
        (Validity(NOW + 1, NOW + 90 * DAY), Verdict.TROUBLE, "feed: not valid before 2026-09-21T"),
        (Validity(NOW, NOW + 1), Verdict.WARN, "feed: ends in 1s, at 2026-09-21T"),
        (Validity(NOW, NOW + 14 * DAY), Verdict.WARN, "feed: ends in 14d, at 2026-10-05T"),
        (
            Validity(NOW, NOW + 14 * DAY + 1),
            Verdict.OK,
            "2 certificates; the first to end: feed, at 2026-10-05T",
        ),
    ],
)
def test_a_certificate_is_judged_two_weeks_before_its_end(
    validity: Validity, outcome: Verdict, words: str
) -> None:
    found = assess_certificates({"feed": validity, "other": Validity(NOW, NOW + 999 * DAY)}, {}, NOW)
    assert (found.outcome, found.message.startswith(words)) == (outcome, True)
    assert ("Renew" in found.advice) == (outcome is not Verdict.OK)
    assert len(found.message.splitlines()) == 1


def test_a_certificate_that_cannot_be_read_is_worth_a_warning() -> None:
    assert assess_certificates({}, {}, NOW).outcome is Verdict.OK
    found = assess_certificates({}, {"broker:9093": "Connection refused"}, NOW)
    assert found == Finding(Verdict.WARN, "broker:9093: could not be read: Connection refused")
    expired = assess_certificates({"feed": Validity(0, 1)}, {"broker:9093": "no"}, NOW)
    assert (expired.outcome, len(expired.message.splitlines())) == (Verdict.TROUBLE, 2)


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        (timedelta(minutes=-1), Verdict.TROUBLE),
        (timedelta(days=13), Verdict.WARN),
        (timedelta(days=15), Verdict.OK),
    ],
)
async def test_dates_are_those_that_servers_show(tmp_path: Path, ends: timedelta, outcome: Verdict) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(Authority(tmp_path).server_file(HOST, ends))
    heard, silence = list[bytes](), asyncio.Event()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            heard.append(await reader.read())
        except ConnectionError:  # a client that closes before it has read its session tickets resets
            heard.append(b"")
        finally:
            silence.set()
            writer.close()

    server = await asyncio.start_server(listen, HOST, 0, ssl=context)
    port = server.sockets[0].getsockname()[1]
    given = settings(
        {"bootstrap_servers": f"{HOST}:{port}", "security_protocol": "ssl"},
        registry=RegistrySettings(url=f"https://{HOST}:{port}"),
        feed=FeedSettings(base_url="http://127.0.0.1:1"),
    )
    now = datetime.now(UTC).timestamp()
    async with server:
        found = await asyncio.to_thread(check_certificates, given, now)
        async with asyncio.timeout(30):
            await silence.wait()
    assert found.outcome is outcome, found
    assert f"{HOST}:{port} (kafka.bootstrap_servers)" in found.message
    assert set(heard) == {b""}


def test_the_files_of_the_settings_are_read(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    ends = (timedelta(days=9), timedelta(days=99))
    short, long = (authority.server_file(HOST, end) for end in ends)
    both, chain = tmp_path / "both.pem", tmp_path / "chain.pem"
    both.write_bytes(short.read_bytes() + long.read_bytes())
    chain.write_bytes(short.read_bytes() + long.read_bytes())
    now = datetime.now(UTC).timestamp()
    assert round((certificates.of_authorities(both.read_bytes()).ends - now) / DAY) == 99
    assert round((certificates.of_client(chain.read_bytes()).ends - now) / DAY) == 9

    locations = {"ssl_certificate_location": str(chain), "ssl_ca_location": str(tmp_path)}
    found = check_certificates(settings(locations, feed=FeedSettings(ca_file=both)), now)
    assert found.outcome is Verdict.WARN
    assert [line.partition(":")[0] for line in found.message.splitlines()] == [
        "kafka.ssl_certificate_location"
    ]
    missing = check_certificates(settings(feed=FeedSettings(ca_file=tmp_path / "nothing.pem")), now)
    assert missing.message.startswith("feed.ca_file: could not be read: ")
    empty = tmp_path / "empty.pem"
    empty.touch()
    assert "could not be read" in check_certificates(settings(api=ApiSettings(ca_file=empty)), now).message


@pytest.mark.parametrize("way", ["keystore", "pem", "ca_pem", "https_ca"])
def test_a_client_s_certificate_is_found_wherever_it_is_given(tmp_path: Path, way: str) -> None:
    file = Authority(tmp_path).server_file(HOST, timedelta(minutes=-1))
    text, store = file.read_text(), tmp_path / "store.p12"
    loaded = x509.load_pem_x509_certificate(text.encode())
    key = load_pem_private_key(text.encode(), None)
    assert isinstance(key, EllipticCurvePrivateKey)
    store.write_bytes(
        serialize_key_and_certificates(None, key, loaded, None, BestAvailableEncryption(b"hush"))
    )
    given = {
        "keystore": {"ssl_keystore_location": str(store), "ssl_keystore_password": "hush"},
        "pem": {"ssl_certificate_pem": text},
        "ca_pem": {"ssl_ca_pem": text},
        "https_ca": {"https_ca_location": str(file)},
    }[way]
    found = check_certificates(settings(given), datetime.now(UTC).timestamp())
    assert found.outcome is Verdict.TROUBLE, found
    assert found.message.startswith(f"kafka.{next(iter(given))}: expired at ")


def test_a_file_that_cannot_be_looked_for_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    named = {"ssl_certificate_location": str(tmp_path), "ssl_ca_location": str(tmp_path)}
    found = check_certificates(settings(named), NOW).message
    assert found.startswith("kafka.ssl_certificate_location: could not be read: Is a directory")
    assert "ssl_ca" not in found
    monkeypatch.setattr("bridge.doctor.certificates.read_bytes", denied)
    assert (
        "kafka.ssl_ca_location: could not be read: Perm" in check_certificates(settings(named), NOW).message
    )


def test_a_key_store_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (store := tmp_path / "store.p12").write_bytes(b"no store")
    given = {"ssl_keystore_location": str(store), "ssl_keystore_password": "psst-hush"}
    found = check_certificates(settings(given), NOW)
    assert found.message.startswith("kafka.ssl_keystore_location: could not be read: ")
    assert "psst" not in found.message
    del given["ssl_keystore_password"]
    missing = {**given, "ssl_keystore_password_file": str(tmp_path / "nothing")}
    assert (
        "BRIDGE_KAFKA__SSL_KEYSTORE_PASSWORD_FILE: cannot read"
        in check_certificates(settings(missing), NOW).message
    )


# Tokens.


@pytest.mark.parametrize(
    ("of_feed", "of_api", "outcome"),
    [
        (None, None, Verdict.OK),
        ("opaque", "opaque", Verdict.OK),
        (NOW + 901, NOW + 901, Verdict.OK),
        (NOW + 900, NOW + 901, Verdict.WARN),
        (NOW + 901, NOW + 1, Verdict.WARN),
        (NOW + 901, NOW, Verdict.TROUBLE),
        (NOW, NOW + 901, Verdict.FAIL),
        (NOW, NOW, Verdict.FAIL),
    ],
)
def test_a_token_is_judged_by_its_end(
    of_feed: float | str | None, of_api: float | str | None, outcome: Verdict
) -> None:
    def token(end: float | str) -> SecretStr:
        return SecretStr(end if isinstance(end, str) else minted(end))

    given = settings(
        feed=FeedSettings() if of_feed is None else FeedSettings(auth="bearer", auth_value=token(of_feed)),
        api=ApiSettings() if of_api is None else ApiSettings(token=token(of_api)),
    )
    found = local_checks.check_tokens(given, NOW)
    assert found.outcome is outcome
    assert ("new token" in found.advice) == (outcome is not Verdict.OK)
    named = [line.partition(" ")[0] for line in found.message.splitlines()]
    assert of_feed is None or named == ["feed.auth_value", "api.token"]
    for secret in (given.feed.auth_value, given.api.token):
        assert secret is None or secret.get_secret_value() not in found.message


def test_a_token_that_cannot_be_read_does_not_hide_that_another_has_ended(tmp_path: Path) -> None:
    ended = FeedSettings(auth="bearer", auth_value=SecretStr(minted(NOW)))
    given = settings(feed=ended, api=ApiSettings(token_file=tmp_path / "away"))
    found = local_checks.check_tokens(given, NOW)
    assert found.outcome is Verdict.FAIL
    assert "feed.auth_value" in found.message
    assert "api.token needs settings" in found.message
    found = local_checks.check_tokens(given.model_copy(update={"feed": FeedSettings()}), NOW)
    assert found == Finding(Verdict.SKIPPED, "api.token needs settings")


def test_only_without_a_user_is_what_the_registry_gets_a_token() -> None:
    token = RegistrySettings(password=SecretStr(minted(NOW)))
    found = local_checks.check_tokens(settings(registry=token), NOW)
    assert (found.outcome, found.message.partition(" ")[0]) == (Verdict.TROUBLE, "registry.password")
    found = local_checks.check_tokens(settings(registry=token.model_copy(update={"user": "me"})), NOW)
    assert found == Finding(Verdict.OK, "no token is configured")


# REST.


async def test_the_rest_side_is_reached_without_asking_an_endpoint() -> None:
    async with Simulator(SimulatorSettings(port=0)) as provider:
        api = ApiSettings(base_url=provider.url, token=SecretStr("s3cret"), proxy="none")
        found = await asyncio.to_thread(network_checks.check_rest, settings(api=api))
        assert not provider.rest.requests
    assert found.outcome is Verdict.OK, found
    assert "answers (HTTP " in found.message
    gone = await asyncio.to_thread(network_checks.check_rest, settings(api=api))
    assert gone.outcome is Verdict.TROUBLE
    assert "cannot be reached" in gone.message


def test_a_certificate_file_of_the_snapshot_jobs_does_not_end_a_bridge(tmp_path: Path) -> None:
    api = ApiSettings(base_url="https://provider.example", ca_file=tmp_path / "away.pem")
    found = network_checks.check_rest(settings(api=api))
    assert found.outcome is Verdict.TROUBLE
    assert "api.ca_file" in found.message

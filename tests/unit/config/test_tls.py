"""Certificates, while their files are there and while they are not."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from pydantic import ValidationError
from structlog.testing import capture_logs

from bridge.config import ApiSettings, FeedSettings, RegistrySettings, Settings, tls
from bridge.config.fields import Address
from bridge.errors import SettingsError
from bridge.registry import Registry
from tests.tls import Authority, demand_strict


@pytest.mark.parametrize("content", [None, "", "-----BEGIN CERTIFICATE-----\nMIIB"])
def test_what_was_read_before_stands_while_the_file_is_none(content: str | None, tmp_path: Path) -> None:
    file = Authority(tmp_path).certificate
    settings = FeedSettings(ca_file=file)
    before = tls.context("feed", settings).get_ca_certs()
    file.unlink() if content is None else file.write_text(content)
    with capture_logs() as logged:
        found = [tls.context("feed", settings).get_ca_certs() for _ in range(3)]
    assert found == [before] * 3
    assert [line["log_level"] for line in logged] == ["warning"]
    assert Authority(tmp_path).certificate == file
    assert tls.context("feed", settings).get_ca_certs() != before


def test_a_file_that_never_was_one_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"BRIDGE_API__CA_FILE\): cannot use .*/nothing"):
        tls.context("api", ApiSettings(ca_file=tmp_path / "nothing"))


def context_of_feed(file: Path) -> ssl.SSLContext:
    return tls.context("feed", FeedSettings(ca_file=file))


def context_of_registry(file: Path) -> ssl.SSLContext:
    registry = Registry(RegistrySettings(url=Address("https://127.0.0.1:1"), ca_file=file))
    found: ssl.SSLContext = registry._client._rest_client.verify
    return found


@pytest.mark.parametrize("context", [context_of_feed, context_of_registry])
def test_an_authority_that_identifies_no_keys_is_trusted_by_each_python(
    context: Callable[[Path], ssl.SSLContext], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand_strict(monkeypatch)
    authority = Authority(tmp_path, identifies_keys=False)
    ours, theirs = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context(authority.certificate).wrap_bio(theirs, ours, server_hostname="127.0.0.1")
    server = authority.server_context("127.0.0.1").wrap_bio(ours, theirs, server_side=True)
    for side in (client, server, client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    assert client.getpeercert()


# The bridge's own certificate.


def unusable(certificate: Path, key: Path | None = None) -> str:
    """Return why a pair cannot be used, as the start of a command says it."""
    files = {"client_certificate_file": certificate, "client_key_file": key}
    [problem] = Settings(registry=RegistrySettings.model_validate(files)).unusable("registry")
    place = "registry.client_certificate_file (BRIDGE_REGISTRY__CLIENT_CERTIFICATE_FILE): cannot use "
    pair = f"{place}{certificate} with the private key in {key or certificate}: "
    assert problem.startswith(pair)
    return problem.removeprefix(pair)


def test_certificate_and_key_that_do_not_fit_are_reported(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.client_files("one")
    _, others = authority.client_files("other")
    locked = tmp_path / "locked"
    private = serialization.load_pem_private_key(key.read_bytes(), None)
    locked.write_bytes(
        private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(b"hush"),
        )
    )
    (blank := tmp_path / "blank").write_text("")
    away = tmp_path / "away"
    assert unusable(certificate, others) == "the key belongs to another certificate"
    assert unusable(certificate, locked) == "the key must not have a password"
    assert unusable(certificate, away) == f"No such file or directory: '{away}'"
    assert unusable(away, key) == f"No such file or directory: '{away}'"
    for pair in ((certificate,), (certificate, blank), (blank, key)):
        assert unusable(*pair) == "a certificate and its key are needed, both PEM"


def test_the_file_of_a_certificate_may_have_its_key(tmp_path: Path) -> None:
    both = Authority(tmp_path).server_file("127.0.0.1")
    assert Settings(feed=FeedSettings(client_certificate_file=both)).unusable("feed") == []


@pytest.mark.parametrize("section", [FeedSettings, ApiSettings, RegistrySettings])
def test_a_key_needs_a_certificate(section: type[FeedSettings | ApiSettings | RegistrySettings]) -> None:
    with pytest.raises(ValidationError, match="client_key_file needs client_certificate_file"):
        section.model_validate({"client_key_file": "tls.key"})


def test_the_last_pair_stands_while_the_next_one_is_half_written(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    certificate, key = authority.client_files()
    settings = FeedSettings(client_certificate_file=certificate, client_key_file=key)
    before = tls.context("feed", settings)
    next_certificate, next_key = authority.client_files("next")
    next_certificate.rename(certificate)
    with capture_logs() as logged:
        assert [tls.context("feed", settings) for _ in range(3)] == [before] * 3
    [line] = logged
    assert "the key belongs to another certificate" in line["reason"]
    next_key.rename(key)
    assert tls.context("feed", settings) is not before

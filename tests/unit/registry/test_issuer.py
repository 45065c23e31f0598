"""A registry that wants tokens of an issuer, by OAuth's client credentials."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import SecretStr

from bridge.avro.schemas import TOPICS
from bridge.config import RegistrySettings
from bridge.errors import BridgeError, TopologyError
from bridge.masking import MASK, concealed
from bridge.registry import Registry, RegistryUnavailable
from bridge.registry import issuer as module
from tests.fake_registry import FakeRegistry, served
from tests.issuer import Issuer, serving
from tests.tls import Authority

SECRET = "hush-of-the-client"
pytestmark = pytest.mark.usefixtures("no_proxies")


@pytest.fixture
def issuer(fake: FakeRegistry) -> Iterator[Issuer]:
    """One whose token is what the fake wants at the moment, and is valid for 100 s."""
    with serving(SECRET) as issuer:
        fake.password = "token-1"
        issuer.answer = lambda user: (200, {"access_token": fake.password, "expires_in": 100})
        yield issuer


def settings(url: str, issuer: Issuer, **more: Any) -> RegistrySettings:
    secret = {} if "password_file" in more else {"password": SecretStr(SECRET)}
    given = {"url": url, "user": "bridge", "token_endpoint_url": issuer.address, **secret, **more}
    return RegistrySettings.model_validate(given)


def test_tokens_are_renewed_before_they_end_and_for_a_new_secret(
    fake: FakeRegistry, url: str, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    (secret := tmp_path / "secret").write_text(SECRET)
    more = {"scope": "read write", "logical_cluster": "lsrc-1", "identity_pool": "pool-1"}
    with Registry(settings(url, issuer, password_file=secret, **more)) as registry:
        registry.register("p")
        now += 79
        registry.register("p")
        assert (issuer.asked, fake.users) == ([f"bridge:{SECRET}"], {"token-1"})
        fake.password = "token-2"
        now += 2
        registry.register("p")
        assert (len(issuer.asked), fake.users) == (2, {"token-1", "token-2"})
        fake.password = issuer.password = "another-secret"
        secret.write_text("another-secret")
        registry.register("p")
    assert issuer.asked[2:] == ["bridge:another-secret"]
    assert issuer.forms == [{"grant_type": "client_credentials", "scope": "read write"}] * 3
    assert fake.clusters == {("lsrc-1", "pool-1")}
    assert concealed("Bearer token-2") == f"Bearer {MASK}"


@pytest.mark.parametrize(("said", "seconds"), [({}, 60), ({"expires_in": "30"}, 30), ({"expires_in": 0}, 0)])
def test_how_long_a_token_lasts_may_be_said_otherwise_or_not_at_all(
    url: str, issuer: Issuer, monkeypatch: pytest.MonkeyPatch, said: dict[str, Any], seconds: float
) -> None:
    now = 1000.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    issuer.answer = lambda user: (200, {"access_token": "token-1", **said})
    one = module.Issuer(settings(url, issuer))
    for later, asked in ((0.0, 1), (0.79 * seconds, 1 + (not seconds)), (0.02 * seconds, 2 + (not seconds))):
        now += later
        assert one.token() == "token-1"
        assert len(issuer.asked) == asked


def test_a_token_that_was_revoked_is_renewed_by_the_next_call(
    fake: FakeRegistry, url: str, issuer: Issuer
) -> None:
    with Registry(settings(url, issuer)) as registry:
        registry.register("p")
        fake.password = "token-2"
        with pytest.raises(TopologyError, match=r"registry\.password, registry\.scope and their rights"):
            registry.register("p")
        assert set(registry.register("p")) == set(TOPICS)


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        ((401, {"error": "invalid_client"}), TopologyError, "HTTP 401: .*invalid_client.*registry.password"),
        ((400, {"error": "invalid_scope"}), TopologyError, "HTTP 400: .*invalid_scope.*registry.scope"),
        ((403, b"<html>who are you</html>"), TopologyError, "HTTP 403: .*registry.user"),
        (
            (404, b"<html>none</html>"),
            RegistryUnavailable,
            "HTTP 404 and no token.*REGISTRY__TOKEN_END",
        ),
        ((302, b""), RegistryUnavailable, "HTTP 302 and no token"),
        ((503, {"error": "temporarily_unavailable"}), RegistryUnavailable, "HTTP 503 and no token"),
        ((200, {"error": "slow_down"}), RegistryUnavailable, "HTTP 200 and no token"),
        ((200, []), RegistryUnavailable, "HTTP 200 and no token"),
        ((200, {"access_token": "two words"}), RegistryUnavailable, "HTTP 200 and no token"),
        ((200, {"access_token": ""}), RegistryUnavailable, "HTTP 200 and no token"),
        ((200, {"access_token": None}), RegistryUnavailable, "HTTP 200 and no token"),
        ((200, {"access_token": "t", "expires_in": "soon"}), RegistryUnavailable, "HTTP 200 and no token"),
    ],
)
def test_a_refusal_is_told_from_no_answer_and_asked_for_once(
    fake: FakeRegistry, url: str, issuer: Issuer, answer: tuple[int, Any], kind: type[BridgeError], said: str
) -> None:
    issuer.answer = lambda user: answer
    with Registry(settings(url, issuer)) as registry, pytest.raises(kind, match=said) as caught:
        registry.register("p")
    assert type(caught.value) is kind
    assert (len(issuer.asked), fake.requests) == (1, 0)


def test_of_a_refusal_that_quotes_the_secret_nothing_is_shown(url: str, issuer: Issuer) -> None:
    basic = base64.b64encode(f"bridge:{SECRET}".encode()).decode()
    issuer.answer = lambda user: (401, {"error": f"{SECRET} in Basic {basic}"})
    with Registry(settings(url, issuer)) as registry, pytest.raises(TopologyError) as caught:
        registry.register("p")
    assert SECRET not in str(caught.value)
    assert basic not in str(caught.value)
    assert str(caught.value).count(MASK) == 2


def test_an_issuer_that_is_away_is_waited_for(fake: FakeRegistry, url: str) -> None:
    with serving(SECRET) as issuer:
        away = settings(url, issuer)
    with Registry(away) as registry:
        said = r"issuer .* 127\.0\.0\.1, did not answer: .*registry\.token_endpoint_url .*registry\.ca_file"
        with pytest.raises(RegistryUnavailable, match=said):
            registry.register("p")
        with serving(SECRET, port=int(re.findall(r":(\d+)/", issuer.address)[0])):
            assert set(registry.register("p")) == set(TOPICS)


def test_the_issuer_may_have_a_certificate_of_the_same_authority_or_of_a_public_one(
    fake: FakeRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (elsewhere := tmp_path / "public").mkdir()
    own, public = Authority(tmp_path), Authority(elsewhere)

    def registered(context: ssl.SSLContext) -> int:
        with serving(SECRET, context) as issuer, served(fake, own.server_context("127.0.0.1")) as url:
            return len(Registry(settings(url, issuer, ca_file=own.certificate)).register("p"))

    assert registered(own.server_context("127.0.0.1")) == len(TOPICS)
    with pytest.raises(RegistryUnavailable, match="certificate"):
        registered(public.server_context("127.0.0.1"))
    monkeypatch.setenv("SSL_CERT_FILE", str(public.certificate))
    assert registered(public.server_context("127.0.0.1")) == len(TOPICS)

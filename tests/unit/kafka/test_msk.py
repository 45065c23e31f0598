"""Tokens for Amazon MSK, by a signer in place of AWS's, which findings/msk-signer-no-credentials.sh runs."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError

from bridge.config import KafkaSettings
from bridge.errors import SettingsError
from bridge.kafka import clients, msk
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import Outage, outage_of
from bridge.masking import MASK, concealed
from tests.signing import token_of

REGION = "eu-central-1"
SETTINGS = KafkaSettings.model_validate(
    {
        "bootstrap_servers": "127.0.0.1:1",
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauthbearer_msk_region": REGION,
    }
)
NO_CREDENTIALS = "'NoneType' object has no attribute 'access_key'"


class Signer:
    """Signs tokens that last so many seconds, or raises."""

    def __init__(self) -> None:
        self.seconds = 900.0
        self.error: Exception | None = None
        self.signed: list[str] = []
        self.threads: Counter[int] = Counter()

    def generate_auth_token(self, region: str) -> tuple[str, int]:
        assert region == REGION
        if self.error is not None:
            raise self.error
        self.threads[threading.get_ident()] += 1
        end = time.time() + self.seconds
        self.signed.append(token_of("somebody", end))
        return self.signed[-1], int(end * 1000)


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> Signer:
    """In place of AWS's, with no token made so far."""
    signer = Signer()
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", SimpleNamespace(MSKAuthTokenProvider=signer))
    monkeypatch.setattr(msk, "_made", {})
    return signer


def test_clients_share_a_token_that_ends_before_the_credentials_behind_it(signer: Signer) -> None:
    first, end = msk.token(REGION)
    assert end == pytest.approx(time.time() + msk.LIFE_SECONDS, abs=10)
    assert (msk.token(REGION), signer.signed) == ((first, end), [first])
    assert concealed(f"sent {first}") == f"sent {MASK}"


def test_a_token_that_ends_soon_is_not_shared(signer: Signer) -> None:
    signer.seconds = 60.0
    (first, end), (second, _) = msk.token(REGION), msk.token(REGION)
    assert end == pytest.approx(time.time() + 60, abs=10)
    assert [first, second] == signer.signed
    assert first != second


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        (AttributeError(NO_CREDENTIALS), "no AWS credentials are found; give this process a role"),
        (OSError("no way to sts.example\n"), "OSError: no way to sts.example$"),
    ],
)
def test_a_signer_without_a_token_is_an_outage_with_its_reason(
    signer: Signer, raised: Exception, why: str
) -> None:
    signer.error = raised
    with pytest.raises(KafkaUnavailable, match=f"^no token for Amazon MSK in {REGION}: AWS's signer: {why}"):
        clients.admin(SETTINGS)
    assert "AWS's signer" in outage_of(SETTINGS).no_token
    signer.error = None
    clients.admin(SETTINGS)
    assert not outage_of(SETTINGS).no_token


def test_the_reason_replaces_what_the_client_says_of_its_callback() -> None:
    """A client says only "OAuth callback raised exception"."""
    known = Outage()
    known.no_token = "AWS's signer: away"
    text = "Failed to acquire SASL OAUTHBEARER token: OAuth callback raised exception"
    known.on_error(KafkaError(KafkaError._AUTHENTICATION, text))
    assert known.cause == ("the issuer gives no token; check kafka.sasl_oauthbearer_… (AWS's signer: away)")


def test_without_the_signer_a_client_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
    with pytest.raises(SettingsError, match=r"pip install 'settlement-bridge\[msk\]'$"):
        clients.admin(SETTINGS)


def test_each_kind_of_client_has_its_token_renewed_without_being_polled(signer: Signer) -> None:
    signer.seconds = 1.0
    makers: list[Callable[[], object]] = [
        lambda: clients.admin(SETTINGS),
        lambda: clients.reader(SETTINGS, name="reader"),
        lambda: clients.member(SETTINGS, group="owner", committed=lambda *_: None),
        lambda: clients.producer(SETTINGS, transactional_id="id", max_record_bytes=1024),
    ]
    made = [make() for make in makers]
    del signer.threads[threading.get_ident()]
    deadline = time.monotonic() + 30
    while [count >= 2 for count in signer.threads.values()] != [True] * len(made):
        assert time.monotonic() < deadline, signer.threads
        time.sleep(0.1)


def test_a_token_made_while_the_clock_was_ahead_is_not_used(
    signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time()
    monkeypatch.setattr("bridge.kafka.msk.time.time", lambda: now + 3600)
    ahead, _ = msk.token(REGION)
    monkeypatch.setattr("bridge.kafka.msk.time.time", lambda: now)
    signer.seconds = 901.0
    assert msk.token(REGION)[0] != ahead

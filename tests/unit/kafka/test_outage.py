"""Why Kafka cannot be used: who looks for the cause, what is logged, and which errors it explains."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, ThrottleEvent
from structlog.testing import capture_logs

from bridge.config import KafkaSettings
from bridge.kafka import clients
from bridge.kafka.outage import Outage, outage_of
from tests.tls import Authority, demand_strict

REFUSED = KafkaError(KafkaError._AUTHENTICATION, "sasl_ssl://127.0.0.1:1/1: Authentication failed")


def unverified(port: int) -> KafkaError:
    """An error as librdkafka reports it for a broker whose certificate it rejects."""
    failed = "SSL handshake failed: certificate verify failed: broker certificate could not be verified"
    return KafkaError(KafkaError._SSL, f"ssl://127.0.0.1:{port}/1: {failed} (after 5ms in state UP)")


def probes() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "kafka-probe"]


def test_a_broker_that_does_not_answer_blocks_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, capture_logs() as lines:
        outage, began = Outage(), time.monotonic()
        for _ in range(2):
            outage.on_error(unverified(server.getsockname()[1]))
            assert outage.cause.startswith("the broker's certificate is refused; check kafka.ssl_ca_location")
            outage.on_error(KafkaError(KafkaError._TRANSPORT))
        outage.on_error(unverified(server.getsockname()[1]))
        outage.over()
        assert time.monotonic() - began < 0.5
        logged = len(lines)
        for probe in probes():
            probe.join(10)
        server.setblocking(False)
        server.accept()[0].close()
        with pytest.raises(BlockingIOError):
            server.accept()
    assert (outage.cause, len(lines)) == ("", logged)


@pytest.mark.parametrize(
    ("is_trusted", "reason"),
    [
        (False, "unable to get local issuer certificate"),
        (True, "IP address mismatch, certificate is not valid for '127.0.0.1'"),
    ],
)
async def test_the_reason_that_a_certificate_is_rejected_is_found(
    is_trusted: bool, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    demand_strict(monkeypatch)  # Kafka's client does not mind an authority that identifies no keys
    authority = Authority(tmp_path, identifies_keys=False)
    served = authority.server_context("127.0.0.2" if is_trusted else "127.0.0.1")
    outage = Outage()
    outage.properties = {"ssl.ca.location": authority.certificate} if is_trusted else {}
    async with await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, ssl=served) as server:
        with capture_logs() as lines:
            for _ in range(2):
                outage.on_error(unverified(server.sockets[0].getsockname()[1]))
                for probe in probes():
                    await asyncio.to_thread(probe.join, 3)
                outage.on_error(KafkaError(KafkaError._TRANSPORT))
            outage.on_error(unverified(server.sockets[0].getsockname()[1]))
    [line] = lines
    assert f"({reason})" in line["reason"]
    assert outage.cause in line["reason"]


def test_each_outage_is_logged_once() -> None:
    outage = Outage()
    with capture_logs() as lines:
        for _ in range(2):
            outage.on_error(REFUSED)
            outage.on_error(REFUSED)
            outage.report()
            outage.over()
    assert len(lines) == 2


def test_an_error_repeats_what_the_log_has() -> None:
    outage, slow = Outage(), KafkaError(KafkaError._TIMED_OUT)
    outage.on_error(KafkaError(KafkaError._TRANSPORT))
    outage.report()
    assert "no connection" in outage.explain(slow)
    outage.over()
    assert outage.explain(slow) == slow.str()


@pytest.mark.parametrize(
    ("code", "explained"),
    [
        (KafkaError._TRANSPORT, True),
        (KafkaError._TIMED_OUT, True),
        (KafkaError._ALL_BROKERS_DOWN, True),
        (KafkaError.ILLEGAL_GENERATION, False),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, False),
        (KafkaError._STATE, False),
    ],
)
def test_the_cause_explains_only_errors_of_a_connection(code: int, explained: bool) -> None:
    outage, error = Outage(), KafkaError(code)
    outage.on_error(REFUSED)
    reason = outage.explain(error)
    assert reason.startswith(error.str())
    assert (outage.cause in reason) is explained


def test_a_quota_is_told_once_in_a_while_and_is_why_nothing_comes() -> None:
    outage = Outage()
    with capture_logs() as lines:
        for _ in range(2):
            outage.on_throttle(ThrottleEvent("broker", 2, 10.0))
    assert outage.throttled
    assert [line["reason"] for line in lines] == ["throttled by a quota of broker 2"]
    assert outage.explain("no answer came").endswith(": throttled by a quota of broker 2")


@pytest.mark.parametrize("name", ["sasl.mechanism", "sasl.mechanisms"])
def test_who_has_a_token_is_not_told_to_check_a_password(name: str) -> None:
    outage = Outage()
    outage.properties = {name: "oauthbearer"}
    outage.on_error(REFUSED)
    assert outage.cause.startswith("the token is refused; check kafka.sasl_oauthbearer_… (sasl_ssl://")


def test_each_cluster_has_its_own() -> None:
    one, other = (KafkaSettings(bootstrap_servers=f"127.0.0.1:{port}") for port in (1, 2))
    outage_of(one).on_error(REFUSED)
    assert outage_of(clients.admin(one)).cause
    assert not outage_of(clients.admin(other)).cause

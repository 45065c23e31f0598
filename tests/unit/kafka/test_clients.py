"""What administrative calls answer, and which properties the clients of librdkafka get."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from bridge.config import KafkaSettings
from bridge.errors import SettingsError, TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable, explained
from bridge.kafka.outage import outage_of
from tests.tls import Authority
from tests.unit.kafka.lost_brokers import TOPIC
from tests.unit.kafka.lost_leaders import END, LostLeaders

PATIENCE = 30.0
NOWHERE = KafkaSettings(bootstrap_servers="127.0.0.1:1")


def error(code: int) -> KafkaError:
    return KafkaError(code, "what went wrong")


# Errors of administrative calls.


@pytest.mark.parametrize(
    ("raised", "kind", "said"),
    [
        *(
            (KafkaException(error(getattr(KafkaError, name))), KafkaUnavailable, "no broker answered")
            for name in ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_DESTROY_BROKER", "_TIMED_OUT", "_NOENT")
        ),
        (
            KafkaException(error(KafkaError.TOPIC_AUTHORIZATION_FAILED)),
            TopologyError,
            r"what went wrong\. .* no right to Create the topic t; grant",
        ),
        (KafkaException(error(KafkaError.INVALID_CONFIG)), TopologyError, "what went wrong$"),
        (ValueError("what went wrong"), TopologyError, "what went wrong$"),
        (TypeError("what went wrong"), TopologyError, "what went wrong$"),
    ],
)
def test_an_error_of_a_call_says_what_to_do(raised: Exception, kind: type[Exception], said: str) -> None:
    with (
        pytest.raises(kind, match=f"^creating t: {said}"),
        explained("creating t", Mock(), "Create the topic t"),
    ):
        raise raised


class Broker:
    """Answers each question for end offsets with these, one for each partition."""

    def __init__(self, *ends: int, since: Sequence[int] = ()) -> None:
        self._ends, self._since = ends, since
        self.asked: list[int] = []
        """The times, in milliseconds."""

    def poll(self, timeout: float) -> int:
        return 0

    def list_offsets(self, asked: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        answers = {place: Future[Any]() for place in reversed(asked)}
        for place, future in answers.items():
            is_time = (which := asked[place]._value) >= 0
            if is_time:
                self.asked.append(which)
            offsets = self._since if is_time else self._ends
            future.set_result(SimpleNamespace(offset=offsets[place.partition]))
        return answers


def test_the_ends_of_a_topic_come_in_the_order_of_its_partitions() -> None:
    assert admin.end_offsets(Broker(0, 7, 5), "t", 3) == [0, 7, 5]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("since", "ends", "found"),
    [
        ((3, 0, 5), (5, 5, 5), [3, 0, 5]),
        ((-1, 2, -1), (9, 9, 4), [7, 2, 4]),  # none as young, up to an open transaction in the first
        ((6, 6, 6), (5, 6, 0), [5, 6, 0]),
    ],
)
def test_a_time_is_found_in_each_partition(
    since: tuple[int, ...], ends: tuple[int, ...], found: list[int]
) -> None:
    broker = Broker(7, 7, 7, since=since)
    assert admin.offsets_since(broker, "t", 2.5, ends) == found  # type: ignore[arg-type]
    assert broker.asked == [2500] * 3


def test_a_time_before_1970_is_no_end_of_the_partition() -> None:
    broker = Broker(7, since=[0])
    assert admin.offsets_since(broker, "t", -2.5, [7]) == [0]  # type: ignore[arg-type]
    assert broker.asked == [0]


def ends_by_a_new_client(monkeypatch: pytest.MonkeyPatch, *, knows: bool) -> list[int]:
    """What it answers, in a second or, once it knows the brokers, with all patience."""
    monkeypatch.setattr(admin, "ASK_SECONDS", 1.0)
    with LostLeaders() as broker:
        client = clients.admin(KafkaSettings(bootstrap_servers=f"127.0.0.1:{broker.port}"))
        assert broker.asked.wait(PATIENCE)
        if knows:
            assert admin.topic_id(client, TOPIC, PATIENCE) is not None
            monkeypatch.setattr(admin, "ASK_SECONDS", PATIENCE)
        return admin.end_offsets(client, TOPIC, 1)


def test_a_client_that_has_found_the_brokers_finds_their_leaders(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ends_by_a_new_client(monkeypatch, knows=True) == [END]


def test_the_first_question_of_another_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decision 0034: nearly always, as it is a race."""
    for _ in range(5):
        try:
            ends_by_a_new_client(monkeypatch, knows=False)
        except KafkaUnavailable:
            return
    pytest.fail("it is not lost any more")


@pytest.mark.parametrize("ends", [(-1001, -1001), (5, -1001), (5, -1)])
def test_an_unknown_end_is_not_taken_for_an_empty_topic(ends: tuple[int, ...]) -> None:
    with pytest.raises(KafkaUnavailable, match=r"^reading the end offsets of t: no broker .*: no answer$"):
        admin.end_offsets(Broker(*ends), "t", 2)  # type: ignore[arg-type]


def test_a_client_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin, "ANSWER_SECONDS", 0.01)
    with (
        pytest.raises(KafkaUnavailable, match=r"^reading: no broker .*: the client does not answer either$"),
        explained("reading", Mock()),
    ):
        admin.result_of(Future())


# Properties.


def test_a_client_that_was_made_before_can_be_made_again_later(tmp_path: Path) -> None:
    authority = Authority(tmp_path).certificate
    settings = KafkaSettings.model_validate(
        {"bootstrap_servers": "127.0.0.1:1", "security_protocol": "SSL", "ssl_ca_location": str(authority)}
    )
    away = authority.rename(tmp_path / "away")
    with pytest.raises(SettingsError, match=r"ssl\.ca\.location"):
        clients.admin(settings)
    away.rename(authority)
    clients.admin(settings)
    authority.rename(away)
    with pytest.raises(KafkaUnavailable, match=r"ssl\.ca\.location"):
        clients.admin(settings)
    with pytest.raises(SettingsError, match=r"ssl\.ca\.location"):  # its own properties were never tried
        clients.producer(settings, transactional_id="t", max_record_bytes=1_000_000)
    away.rename(authority)
    clients.admin(settings)


SHARED: Any = {
    "bootstrap_servers": "127.0.0.1:1",
    "client_id": "mine",
    "security_protocol": "PLAINTEXT",
    "session_timeout_ms": 2000,
    "heartbeat_interval_ms": 500,
    "fetch_wait_max_ms": 50,
    "linger_ms": 7,
    "compression_type": "lz4",
    "transaction_timeout_ms": 20_000,
    "message_timeout_ms": 15_000,
    "message_max_bytes": 1_000,
    "isolation_level": "read_uncommitted",
    "acks": "1",
}


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module, with dictionaries of their properties for clients."""
    for kind in ("Producer", "WatchedConsumer", "AdminClient"):
        monkeypatch.setattr(clients, kind, lambda properties, **_: properties)
    return clients


def test_a_default_may_be_changed_but_not_what_exactly_once_needs(plain: Any) -> None:
    shared = KafkaSettings.model_construct(**SHARED)
    producer = plain.producer(shared, transactional_id="t", max_record_bytes=5)
    reader = plain.reader(shared, name="r")
    assert (producer["linger.ms"], producer["message.max.bytes"], producer["acks"]) == (7, 5, "all")
    assert (reader["client.id"], reader["isolation.level"]) == ("mine", "read_committed")
    found = [plain.member(shared, group="g", committed=print, name=name) for name in ("vm:1:a", None)]
    assert [properties["client.id"] for properties in found] == ["vm:1:a", "mine"]
    assert [clients.session_seconds(it) for it in (NOWHERE, shared)] == [10.0, 2.0]
    found = [plain.reader(NOWHERE, name="r", prompt=prompt) for prompt in (False, True)]
    assert [properties.get("fetch.wait.max.ms") for properties in found] == [None, 20]


def test_librdkafka_takes_what_its_clients_are_given() -> None:
    """The names of all properties are right, and nothing that it would need is missing.

    Each kind of client is given the settings of the others as well.
    """
    ours = ("isolation_level", "acks", "message_max_bytes")
    shared = KafkaSettings.model_validate({k: v for k, v in SHARED.items() if k not in ours})
    clients.producer(shared, transactional_id="t", max_record_bytes=65 * 1024 * 1024)
    clients.reader(shared, name="r").close()
    clients.member(shared, group="g", committed=lambda *_: None).close()
    clients.admin(shared)


def test_what_one_consumer_was_made_of_says_nothing_of_another() -> None:
    settings = KafkaSettings.model_validate(
        {"bootstrap_servers": "127.0.0.1:1", "max_poll_interval_ms": "30000"}
    )
    clients.member(settings, group="g", committed=lambda *_: None).close()
    with pytest.raises(SettingsError, match=r"max\.poll\.interval\.ms"):
        clients.reader(settings, name="r")


@pytest.mark.parametrize("given", [{}, {"sasl_mechanism": "SCRAM"}])
def test_a_mechanism_that_librdkafka_lacks_is_a_setting(given: dict[str, str]) -> None:
    settings = {"bootstrap_servers": "127.0.0.1:1", "security_protocol": "SASL_SSL", **given}
    with pytest.raises(
        SettingsError, match=r"kafka\.sasl_mechanism \(BRIDGE_\w+\): .* give PLAIN, SCRAM-SHA-256"
    ):
        clients.admin(KafkaSettings.model_validate(settings))


def test_a_consumer_without_brokers_is_lost_unless_it_has_them_back_soon() -> None:
    signs, stranded = clients.Signs(NOWHERE), list[str]()
    for sources in (["learned"], ["logical"], ["configured"], ["logical"], [], ["learned", "logical"]):
        known = {f"broker-{number}": {"source": source} for number, source in enumerate(sources)}
        signs.on_statistics(json.dumps({"brokers": known}))
        stranded.append(signs.stranded)
    assert stranded == ["", "", "", "", "it has lost all its brokers", ""]


@pytest.mark.parametrize("what", ["sasl_password_file", "ssl_certificate_location", "ssl_ca_location"])
@pytest.mark.parametrize(
    "refusal",
    [
        KafkaError(KafkaError._AUTHENTICATION),
        KafkaError(KafkaError._SSL),
        KafkaError(KafkaError.SASL_AUTHENTICATION_FAILED),
        # TLS 1.3 has ended its handshake by then.
        KafkaError(KafkaError._TRANSPORT, "Receive failed: ssl/tls alert certificate unknown"),
        KafkaError(KafkaError._SSL, "alert unsupported certificate: in state SSL_HANDSHAKE"),
        KafkaError(KafkaError._SSL, "alert decrypt error: in state SSL_HANDSHAKE"),
    ],
)
def test_a_client_that_is_refused_is_outdated_once_its_files_have_changed(
    tmp_path: Path, what: str, refusal: KafkaError
) -> None:
    (file := tmp_path / "file").write_text("old")
    given = KafkaSettings.model_validate({"bootstrap_servers": "b:1", what: str(file)})
    used, outage = clients.Signs(given), outage_of(given)
    outage.over()
    used.on_error(refusal)
    assert outage.cause
    assert not used.stranded
    file.write_text("new")
    assert used.stranded
    file.unlink()
    # The last password is used on; a certificate that is away makes no client.
    assert bool(used.stranded) == (what == "sasl_password_file")
    file.write_text("old")
    assert not used.stranded


def test_a_client_that_is_not_refused_is_not_outdated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file := tmp_path / "file").write_text("old")
    settings = KafkaSettings.model_validate(
        {"ssl_keystore_location": str(file), "ssl_ca_location": str(tmp_path), "https_ca_location": "probe"}
    )
    used = clients.Signs(settings)
    file.write_text("new")
    used.on_error(error(KafkaError._TRANSPORT))
    assert not used.stranded
    used.on_error(error(KafkaError._SSL))
    assert used.stranded
    monkeypatch.setattr(clients, "REFUSED_SECONDS", 0.0)
    assert not used.stranded


def test_every_client_hears_of_quotas() -> None:
    made = clients._create(lambda properties, **_: properties, NOWHERE)
    assert made["throttle_cb"] == outage_of(NOWHERE).on_throttle

"""What an error of librdkafka asks for, and which properties its clients get."""

from __future__ import annotations

import re
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from bridge import kafka
from bridge.config import KafkaSettings
from bridge.errors import SettingsError, TopologyError
from bridge.kafka import Answer, KafkaUnavailable, explained, triage
from tests.tls import Authority

RETRY, ABORT, REOPEN, REFUSED = Answer.RETRY, Answer.ABORT, Answer.REOPEN, Answer.REFUSED
NOWHERE = KafkaSettings(bootstrap_servers="127.0.0.1:1")


def error(code: int, flag: str = "") -> KafkaError:
    """An error as librdkafka raises it, with at most one of its three flags."""
    return KafkaError(
        code,
        "what went wrong",
        fatal=flag == "fatal",
        retriable=flag == "retriable",
        txn_requires_abort=flag == "abort",
    )


# Every error that librdkafka documents for its transactional calls (init, begin, send offsets, commit,
# abort) and for the delivery of a record, with the flag that it comes with.
TRANSACTIONAL: list[tuple[str, str, Answer]] = [
    # Kafka is away, or busy: the same call goes on where it was.
    ("_TIMED_OUT", "retriable", RETRY),
    ("_TIMED_OUT", "", RETRY),
    ("_TRANSPORT", "", RETRY),
    ("_QUEUE_FULL", "", RETRY),
    ("_CONFLICT", "retriable", RETRY),
    ("COORDINATOR_LOAD_IN_PROGRESS", "retriable", RETRY),
    ("COORDINATOR_NOT_AVAILABLE", "retriable", RETRY),
    ("NOT_COORDINATOR", "retriable", RETRY),
    ("NOT_ENOUGH_REPLICAS", "retriable", RETRY),
    ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "retriable", RETRY),
    ("REQUEST_TIMED_OUT", "retriable", RETRY),
    ("CONCURRENT_TRANSACTIONS", "retriable", RETRY),
    # The transaction is lost, the producer is not.
    ("_STATE", "", ABORT),
    ("_MSG_TIMED_OUT", "abort", ABORT),
    ("_PURGE_QUEUE", "abort", ABORT),
    ("UNKNOWN_MEMBER_ID", "abort", ABORT),
    ("ILLEGAL_GENERATION", "abort", ABORT),
    ("FENCED_INSTANCE_ID", "abort", ABORT),
    ("UNKNOWN_TOPIC_OR_PART", "abort", ABORT),
    ("INVALID_PRODUCER_ID_MAPPING", "abort", ABORT),
    ("OUT_OF_ORDER_SEQUENCE_NUMBER", "abort", ABORT),
    ("UNKNOWN_PRODUCER_ID", "abort", ABORT),
    # A rival, a transaction that outlived its time-out, or nobody knows: look at what was committed.
    ("_FENCED", "fatal", REOPEN),
    ("_FENCED", "abort", REOPEN),
    ("_FENCED", "", REOPEN),
    ("_FATAL", "fatal", REOPEN),
    ("_FATAL", "", REOPEN),
    ("PRODUCER_FENCED", "fatal", REOPEN),
    ("INVALID_PRODUCER_EPOCH", "fatal", REOPEN),
    ("INVALID_TXN_STATE", "fatal", REOPEN),
    ("OUT_OF_ORDER_SEQUENCE_NUMBER", "fatal", REOPEN),
    ("_INCONSISTENT", "", REOPEN),
    ("_FAIL", "", REOPEN),
    ("UNKNOWN", "", REOPEN),
    ("_AUTHENTICATION", "", REOPEN),
    # A person has to act, whatever librdkafka would do itself.
    *((name, flag, REFUSED)
      for flag in ("", "abort", "fatal", "retriable")
      for name in (
          "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
          "CLUSTER_AUTHORIZATION_FAILED",
          "TOPIC_AUTHORIZATION_FAILED",
          "GROUP_AUTHORIZATION_FAILED",
          "MSG_SIZE_TOO_LARGE",
          "RECORD_LIST_TOO_LARGE",
          "INVALID_RECORD",
          "INVALID_MSG",
          "POLICY_VIOLATION",
          "INVALID_TRANSACTION_TIMEOUT",
          "UNSUPPORTED_VERSION",
          "UNSUPPORTED_FOR_MESSAGE_FORMAT",
          "UNSUPPORTED_SASL_MECHANISM",
          "SECURITY_DISABLED",
      )),
]  # fmt: skip


@pytest.mark.parametrize(("name", "flag", "answer"), TRANSACTIONAL)
def test_every_error_of_a_transaction_has_its_answer(name: str, flag: str, answer: Answer) -> None:
    """By its code where that says more than the flag, by the flag otherwise."""
    assert triage(error(getattr(KafkaError, name), flag)) is answer


@pytest.mark.parametrize(
    ("flag", "answer"), [("retriable", RETRY), ("abort", ABORT), ("fatal", REOPEN), ("", REOPEN)]
)
def test_an_error_that_nobody_listed_goes_by_its_flag(flag: str, answer: Answer) -> None:
    """Without a flag it is taken for the worst that can be mended."""
    assert triage(error(KafkaError.INVALID_REQUIRED_ACKS, flag)) is answer


def test_nothing_is_retried_that_will_never_be_accepted() -> None:
    """A right that is missing and a record that is too large stop the bridge, and nothing else does."""
    codes = {
        name: code for name, code in vars(KafkaError).items() if name.isupper() and isinstance(code, int)
    }
    refused = {name for name, code in codes.items() if triage(error(code, "retriable")) is REFUSED}
    listed = {name for name, flag, answer in TRANSACTIONAL if answer is REFUSED}
    assert {codes[name] for name in refused} == {codes[name] for name in listed}


# Errors of administrative calls.


@pytest.mark.parametrize("name", ["_TRANSPORT", "_ALL_BROKERS_DOWN", "_TIMED_OUT", "_NOENT"])
def test_a_call_that_no_broker_answers_can_be_tried_again(name: str) -> None:
    """It says what was attempted."""
    with (
        pytest.raises(KafkaUnavailable, match=r"^listing the topics: no broker answered"),
        explained("listing the topics"),
    ):
        raise KafkaException(error(getattr(KafkaError, name)))


def test_a_missing_right_says_so() -> None:
    """With what to do about it."""
    with (
        pytest.raises(
            TopologyError, match=r"^creating t: what went wrong\. The principal lacks a right; grant"
        ),
        explained("creating t"),
    ):
        raise KafkaException(error(KafkaError.TOPIC_AUTHORIZATION_FAILED))


@pytest.mark.parametrize(
    "raised",
    [
        KafkaException(error(KafkaError.INVALID_CONFIG)),
        ValueError("what went wrong"),
        TypeError("what went wrong"),
    ],
)
def test_any_other_error_of_a_call_is_a_wrong_topology(raised: Exception) -> None:
    """Whether the broker or the client refuses it."""
    with pytest.raises(TopologyError, match=r"^altering t: what went wrong$"), explained("altering t"):
        raise raised


class Broker:
    """Answers each question for end offsets with these, one for each partition."""

    def __init__(self, *ends: int) -> None:
        self._ends = ends

    def list_offsets(self, asked: dict[TopicPartition, Any], **_: Any) -> dict[TopicPartition, Future[Any]]:
        answers = {place: Future[Any]() for place in reversed(asked)}
        for place, future in answers.items():
            future.set_result(SimpleNamespace(offset=self._ends[place.partition]))
        return answers


def test_the_ends_of_a_topic_come_in_the_order_of_its_partitions() -> None:
    """Whatever order the client has them in."""
    assert kafka.end_offsets(Broker(0, 7, 5), "t", 3) == [0, 7, 5]  # type: ignore[arg-type]


@pytest.mark.parametrize("ends", [(-1001, -1001), (5, -1001)])
def test_an_end_that_nobody_told_is_not_taken_for_an_empty_topic(ends: tuple[int, ...]) -> None:
    """A broker that falls silent is no error to the client: it makes up an offset."""
    with pytest.raises(KafkaUnavailable, match=r"^reading the end offsets of t: no broker answered$"):
        kafka.end_offsets(Broker(*ends), "t", 2)  # type: ignore[arg-type]


def test_a_client_that_never_answers_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does it look like a broker's refusal: the call can be tried again."""
    monkeypatch.setattr(kafka, "ANSWER_SECONDS", 0.01)
    with (
        pytest.raises(KafkaUnavailable, match=r"^reading: the client does not answer$"),
        kafka.explained("reading"),
    ):
        kafka.answer(Future())


# Properties.


def test_a_property_that_librdkafka_does_not_know_is_a_wrong_setting() -> None:
    """It is named."""
    wrong = KafkaSettings.model_validate({"bootstrap_servers": "127.0.0.1:1", "lingers_ms": "1"})
    with pytest.raises(SettingsError, match=r"lingers\.ms"):
        kafka.producer(wrong, transactional_id="t", max_record_bytes=1_000_000)


def test_a_client_that_was_made_before_can_be_made_again_later(tmp_path: Path) -> None:
    """What librdkafka refuses from the start is a wrong setting; afterwards it is a file that is away."""
    authority = Authority(tmp_path).certificate
    settings = KafkaSettings.model_validate(
        {"bootstrap_servers": "127.0.0.1:1", "security_protocol": "SSL", "ssl_ca_location": str(authority)}
    )
    away = authority.rename(tmp_path / "away")
    with pytest.raises(SettingsError, match=r"ssl\.ca\.location"):
        kafka.admin(settings)
    away.rename(authority)
    kafka.admin(settings)
    authority.rename(away)
    with pytest.raises(KafkaUnavailable, match=r"ssl\.ca\.location"):
        kafka.admin(settings)
    with pytest.raises(SettingsError, match=r"ssl\.ca\.location"):  # its own properties were never tried
        kafka.producer(settings, transactional_id="t", max_record_bytes=1_000_000)
    away.rename(authority)
    kafka.admin(settings)


SHARED = {
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
}


def properties(settings: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    return kafka._properties(KafkaSettings.model_validate(settings), **arguments)


def test_each_kind_of_client_gets_what_is_meant_for_it() -> None:
    """Settings are shared by all, and a client warns about each that is meant for another kind."""
    common = {"bootstrap.servers", "client.id", "security.protocol", "reconnect.backoff.max.ms"}
    consumer = {"session.timeout.ms", "heartbeat.interval.ms", "fetch.wait.max.ms"}
    producer = {"linger.ms", "compression.type", "transaction.timeout.ms", "message.timeout.ms"}
    assert set(properties(SHARED, drop=kafka._CONSUMER_ONLY)) == common | producer
    assert set(properties(SHARED, drop=kafka._PRODUCER_ONLY)) == common | consumer


def test_the_users_settings_win_over_defaults_and_ours_over_the_users() -> None:
    """A default may be changed, what exactly-once stands on may not."""
    found = properties(
        SHARED,
        drop=re.compile("nothing"),
        defaults={"linger.ms": 2, "message.max.bytes": 5},
        ours={"client.id": "fixed"},
    )
    assert (found["linger.ms"], found["message.max.bytes"], found["client.id"]) == (7, 5, "fixed")


def test_only_who_needs_the_end_of_a_partition_at_once_asks_for_it_so_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever waits for what is to come leaves the broker in peace."""
    monkeypatch.setattr(kafka, "_create", lambda _kind, _settings, properties: properties)
    found: list[Any] = [kafka.reader(NOWHERE, name="r"), kafka.reader(NOWHERE, name="r", prompt=True)]
    assert [properties.get("fetch.wait.max.ms") for properties in found] == [None, 20]


def test_a_member_may_have_a_name_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """By which others find it in the group; without one it has that of all clients."""
    monkeypatch.setattr(kafka, "_create", lambda _kind, _settings, properties: properties)
    shared = KafkaSettings.model_validate(SHARED)
    found: list[Any] = [
        kafka.member(shared, group="g", committed=lambda *_: None, name=name) for name in ("vm:1:a", None)
    ]
    assert [properties["client.id"] for properties in found] == ["vm:1:a", "mine"]


@pytest.mark.parametrize(("given", "seconds"), [({}, 10.0), ({"session_timeout_ms": "6000"}, 6.0)])
def test_a_session_lasts_as_long_as_is_set(given: dict[str, str], seconds: float) -> None:
    """As the member is told, whose default is not the client's."""
    assert kafka.session_seconds(KafkaSettings.model_validate(given)) == seconds


def test_librdkafka_takes_what_its_clients_are_given() -> None:
    """The names of all properties are right, and nothing that it would need is missing."""
    kafka.producer(NOWHERE, transactional_id="t", max_record_bytes=65 * 1024 * 1024)
    kafka.reader(NOWHERE, name="r").close()
    kafka.member(NOWHERE, group="g", committed=lambda *_: None).close()
    kafka.admin(NOWHERE)


def test_what_one_consumer_was_made_of_says_nothing_of_another() -> None:
    """A member has a session of 10 s, a reader 45: a wrong setting shows at the second one alone."""
    settings = KafkaSettings.model_validate(
        {"bootstrap_servers": "127.0.0.1:1", "max_poll_interval_ms": "30000"}
    )
    kafka.member(settings, group="g", committed=lambda *_: None).close()
    with pytest.raises(SettingsError, match=r"max\.poll\.interval\.ms"):
        kafka.reader(settings, name="r")

"""What an error of a transaction asks for, whatever librdkafka says of it."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from bridge.kafka.errors import ErrorAction, cause, triage

RETRY, ABORT, REOPEN, REFUSED = ErrorAction.RETRY, ErrorAction.ABORT, ErrorAction.REOPEN, ErrorAction.REFUSED


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
# abort) and for the delivery of a record, with the flags that it comes with.
BY_ANSWER: list[tuple[ErrorAction, tuple[str, ...], str]] = [
    # Kafka is away, or busy: the same call goes on where it was.
    (RETRY, ("",), "_TIMED_OUT _TRANSPORT _QUEUE_FULL"),
    (
        RETRY,
        ("retriable",),
        "_TIMED_OUT _CONFLICT COORDINATOR_LOAD_IN_PROGRESS COORDINATOR_NOT_AVAILABLE NOT_COORDINATOR "
        "NOT_ENOUGH_REPLICAS NOT_ENOUGH_REPLICAS_AFTER_APPEND REQUEST_TIMED_OUT CONCURRENT_TRANSACTIONS",
    ),
    # The transaction is lost, the producer is not.
    (ABORT, ("",), "_STATE"),
    (
        ABORT,
        ("abort",),
        "_MSG_TIMED_OUT _PURGE_QUEUE UNKNOWN_MEMBER_ID ILLEGAL_GENERATION FENCED_INSTANCE_ID "
        "UNKNOWN_TOPIC_OR_PART INVALID_PRODUCER_ID_MAPPING OUT_OF_ORDER_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID",
    ),
    # A rival, a transaction that outlived its time-out, or nobody knows: look at what was committed.
    (REOPEN, ("fatal", "abort", ""), "_FENCED"),
    (REOPEN, ("",), "_FATAL _INCONSISTENT _FAIL UNKNOWN _AUTHENTICATION"),
    (
        REOPEN,
        ("fatal",),
        "_FATAL PRODUCER_FENCED INVALID_PRODUCER_EPOCH INVALID_TXN_STATE OUT_OF_ORDER_SEQUENCE_NUMBER",
    ),
    # A person has to act, whatever librdkafka would do itself.
    (
        REFUSED,
        ("", "abort", "fatal", "retriable"),
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED TOPIC_AUTHORIZATION_FAILED "
        "GROUP_AUTHORIZATION_FAILED MSG_SIZE_TOO_LARGE RECORD_LIST_TOO_LARGE INVALID_RECORD INVALID_MSG "
        "POLICY_VIOLATION INVALID_TRANSACTION_TIMEOUT UNSUPPORTED_VERSION UNSUPPORTED_FOR_MESSAGE_FORMAT "
        "UNSUPPORTED_SASL_MECHANISM SECURITY_DISABLED INVALID_TIMESTAMP TOPIC_EXCEPTION "
        "UNSUPPORTED_COMPRESSION_TYPE _UNSUPPORTED_FEATURE",
    ),
]
TRANSACTIONAL = [
    (name, flag, answer) for answer, flags, names in BY_ANSWER for flag in flags for name in names.split()
]


@pytest.mark.parametrize(("name", "flag", "answer"), TRANSACTIONAL)
def test_every_error_of_a_transaction_has_its_answer(name: str, flag: str, answer: ErrorAction) -> None:
    assert triage(error(getattr(KafkaError, name), flag)) is answer


@pytest.mark.parametrize(
    ("flag", "answer"), [("retriable", RETRY), ("abort", ABORT), ("fatal", REOPEN), ("", REOPEN)]
)
def test_an_error_that_nobody_listed_goes_by_its_flag(flag: str, answer: ErrorAction) -> None:
    assert triage(error(KafkaError.INVALID_REQUIRED_ACKS, flag)) is answer


def test_nothing_is_retried_that_will_never_be_accepted() -> None:
    codes = {
        name: code for name, code in vars(KafkaError).items() if name.isupper() and isinstance(code, int)
    }
    refused = {name for name, code in codes.items() if triage(error(code, "retriable")) is REFUSED}
    listed = {name for name, flag, answer in TRANSACTIONAL if answer is REFUSED}
    assert {codes[name] for name in refused} == {codes[name] for name in listed}


class Failed:
    """A producer whose transaction has failed for that reason, or goes on, as librdkafka 2.16 reports it."""

    def __init__(self, reason: KafkaError | None) -> None:
        self._reason = reason

    def begin_transaction(self) -> None:
        if self._reason is not None:
            raise KafkaException(self._reason)


@pytest.mark.parametrize(
    ("given", "reason", "found"),
    [
        ("_PURGE_QUEUE", "TOPIC_AUTHORIZATION_FAILED", "TOPIC_AUTHORIZATION_FAILED"),
        ("_PURGE_INFLIGHT", "INVALID_TIMESTAMP", "INVALID_TIMESTAMP"),
        ("_STATE", "INVALID_TIMESTAMP", "INVALID_TIMESTAMP"),
        ("_INVALID_DIFFERENT_RECORD", "INVALID_RECORD", "INVALID_RECORD"),
        ("INVALID_RECORD", "INVALID_TIMESTAMP", "INVALID_TIMESTAMP"),
        ("INVALID_RECORD", "_STATE", "INVALID_RECORD"),
        ("_PURGE_QUEUE", "_STATE", "_PURGE_QUEUE"),
        ("_TIMED_OUT", "INVALID_TIMESTAMP", "_TIMED_OUT"),
    ],
)
def test_an_error_that_only_follows_is_asked_for_its_reason(given: str, reason: str, found: str) -> None:
    producer: Any = Failed(error(getattr(KafkaError, reason)))
    assert cause(producer, error(getattr(KafkaError, given))).name() == found


def test_a_transaction_that_is_not_open_may_have_been_committed() -> None:
    producer: Any = Failed(None)
    found = cause(producer, error(KafkaError._STATE))
    assert "no transaction is open" in found.str()
    assert triage(found) is REOPEN

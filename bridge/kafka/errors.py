"""Classifies Kafka's errors: which are transient, which need an operator, and how a transaction recovers."""

from __future__ import annotations

import enum
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from tenacity import retry, retry_if_exception, stop_after_delay, wait_fixed

from bridge.errors import BridgeError, TopologyError
from bridge.kafka.outage import NO_ANSWER, Outage, outage_of
from bridge.kafka.patience import patience


class KafkaUnavailable(BridgeError):
    """No broker answers, or no client can be created. Callers wait and retry."""


class SettingRefused(TopologyError):
    """The cluster allows no topic with these settings."""


class TooMuch(BridgeError):
    """A transaction was not delivered in time: nothing of it is committed, and less may be written.

    `delivered` is the share that was, `seconds` how long that took.
    """

    def __init__(self, reason: str, delivered: float, seconds: float) -> None:
        super().__init__(reason)
        self.delivered, self.seconds = delivered, seconds


_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "the group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "the transactional id",
    KafkaError.SECURITY_DISABLED: "",
    KafkaError.UNSUPPORTED_SASL_MECHANISM: "",
}
"""Errors of a missing right → the kind of resource."""
_SETTING_REFUSED = {KafkaError.POLICY_VIOLATION, KafkaError.INVALID_CONFIG, KafkaError.INVALID_REQUEST}
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._DESTROY_BROKER,  # the client has learnt the brokers anew, and forgot the one it had asked
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._WAIT_COORD,
    KafkaError.BROKER_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.KAFKA_STORAGE_ERROR,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NETWORK_EXCEPTION,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._NOENT,  # no leader is found
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
}
"""Transient errors while brokers start, stop or elect leaders."""


def is_transient(error: KafkaError) -> bool:
    """Return whether the error of a request may be gone when it is repeated."""
    return error.retriable() or error.code() in _PASSING


COORDINATOR_SECONDS = 15.0
"""Within so long a cluster has its coordinators' topic, which it makes at the first request for one."""
coordinated = retry(
    retry=retry_if_exception(
        lambda it: (
            isinstance(it, KafkaUnavailable) or (isinstance(it, KafkaException) and is_transient(it.args[0]))
        )
    ),
    stop=stop_after_delay(COORDINATOR_SECONDS),
    wait=wait_fixed(0.25),
    reraise=True,
)
"""Repeats a request to a coordinator."""


def lacks_right(error: KafkaError) -> bool:
    """Return whether the principal lacks a right."""
    return error.code() in _RIGHTS


def denied(error: KafkaError, *rights: str) -> str:
    """Format an error with those of `rights`, such as `Read the topic t`, that may be missing.

    Kafka's error has the kind of resource, but neither the resource nor the operation.
    """
    fitting = [right for right in rights if _RIGHTS.get(error.code(), "") in right] or rights
    return (
        f"{error.str().rstrip('.')}. The principal has no right to {' or to '.join(fitting)}; grant it: "
        '"Rights" in docs/kafka.md has the commands'
    )


@contextmanager
def explained(what: str, client: AdminClient, right: str = "do this") -> Iterator[None]:
    """Translate librdkafka's errors of a call into the bridge's.

    `what` names the attempt in the message, `right` the required right. Polls the client during the call, so
    that it reports why no broker can be used. Raises KafkaUnavailable if neither a broker nor the client
    answered, TopologyError otherwise.
    """
    began, outage = time.monotonic(), outage_of(client)
    try:
        with outage.watched(client):
            yield
        outage.over()
        patience.answered(time.monotonic() - began)
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        if is_transient(error):
            patience.unanswered(time.monotonic() - began)
            raise unanswered(what, outage, error.str()) from None
        if lacks_right(error):
            raise TopologyError(f"{what}: {denied(error, right)}") from None
        kind = SettingRefused if error.code() in _SETTING_REFUSED else TopologyError
        raise kind(f"{what}: {error.str()}") from None
    except (ValueError, TypeError) as error:
        raise TopologyError(f"{what}: {error}") from None
    except TimeoutError:  # raised by `admin.result_of`; librdkafka's time-outs are KafkaExceptions
        patience.ran_out()
        raise unanswered(what, outage, "the client does not answer either") from None


def unanswered(what: str, outage: Outage, unknown: str = NO_ANSWER) -> KafkaUnavailable:
    """Return the error of an attempt that no broker has answered, with the addresses tried and the cause.

    Without a known cause, the error has the client's error `unknown`.
    """
    return KafkaUnavailable(outage.explain(f"{what}: no broker answered", unknown))


class ErrorAction(enum.Enum):
    """How to recover from an error of the transactional producer."""

    RETRY = "repeat the call"
    ABORT = "abort the transaction and write the batch again"
    REOPEN = "create a new producer and read back what was committed"
    REFUSED = "stop: an operator has to change rights or limits"


_NEVER_ACCEPTED = {
    KafkaError.MSG_SIZE_TOO_LARGE,
    KafkaError.INVALID_MSG,
    KafkaError.RECORD_LIST_TOO_LARGE,
    KafkaError.INVALID_RECORD,
    KafkaError.POLICY_VIOLATION,
    KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    KafkaError.INVALID_TIMESTAMP,
    KafkaError.INVALID_TRANSACTION_TIMEOUT,
    KafkaError.TOPIC_EXCEPTION,  # its name
    KafkaError.UNSUPPORTED_COMPRESSION_TYPE,
    KafkaError.UNSUPPORTED_VERSION,
    KafkaError._UNSUPPORTED_FEATURE,  # no transactions
}
_FOLLOWING = {
    KafkaError._PURGE_QUEUE,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._STATE,
    KafkaError._INVALID_DIFFERENT_RECORD,
}
"""Errors that are only consequences of another one."""


def triage(error: KafkaError) -> ErrorAction:
    """Decide how to recover from an error of the transactional producer.

    An unknown error leads to the strongest recovery, a new producer.
    """
    code = error.code()
    if lacks_right(error) or code in _NEVER_ACCEPTED:
        return ErrorAction.REFUSED
    if error.fatal() or code in (KafkaError._FATAL, KafkaError._FENCED):
        return ErrorAction.REOPEN
    if error.txn_requires_abort() or code == KafkaError._STATE:
        return ErrorAction.ABORT
    if error.retriable() or code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._QUEUE_FULL):
        return ErrorAction.RETRY
    return ErrorAction.REOPEN


def is_consequence(error: KafkaError) -> bool:
    """Return whether the error is only a consequence of another one."""
    return error.code() in _FOLLOWING


def cause(producer: Producer, error: KafkaError) -> KafkaError:
    """Return the error that caused this consequence, if the producer knows it; otherwise `error`."""
    # Seen: of many records with a wrong time, the broker reports one as invalid, the others as a consequence.
    if not is_consequence(error) and error.code() != KafkaError.INVALID_RECORD:
        return error
    try:
        # Asks no broker. Within a failed transaction it raises the error that failed it.
        producer.begin_transaction()
    except KafkaException as exception:
        found: KafkaError = exception.args[0]
        return error if is_consequence(found) else found
    if not is_consequence(error):
        return error
    # No transaction was open, so the outcome of the last one is unknown.
    return KafkaError(KafkaError._INCONSISTENT, f"{error.str()}, and no transaction is open")


def refusal(who: str, error: KafkaError, topics: Iterable[str] = ()) -> str:
    """Format an error that an operator has to fix; `who` is the transactional id, `topics` were written."""
    text = f"Kafka refuses what {who} writes: "
    if lacks_right(error):
        written = f"Write the topic {' or '.join(sorted(topics))}"
        return text + denied(
            error, written, f"Write the transactional id {who}", f"Read the group {who}.owner"
        )
    text += error.str()
    if error.code() != KafkaError.INVALID_TIMESTAMP:
        return text
    return (
        f"{text}. The clock of this machine is probably wrong: a broker refuses records more than an hour "
        "ahead of its clock (message.timestamp.after.max.ms). Correct the clock and restart."
    )

"""What an error of the transactional producer asks for, and the error behind one that says nothing."""

from __future__ import annotations

import enum

from confluent_kafka import KafkaError, KafkaException, Producer

from bridge.kafka import clients


class ErrorAction(enum.Enum):
    """What an error asks for."""

    RETRY = "the same call again"
    ABORT = "abort the transaction and write the batch again"
    REOPEN = "a new producer, and a look at what was committed"
    REFUSED = "a person: rights or limits stand in the way"


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
"""What the client says of all that fails because something else has failed."""


def triage(error: KafkaError) -> ErrorAction:
    """What an error of the transactional producer asks for.

    An error that says nothing of itself is taken for the worst that can be mended: a new producer.
    """
    code = error.code()
    if clients.lacks_right(error) or code in _NEVER_ACCEPTED:
        return ErrorAction.REFUSED
    if error.fatal() or code in (KafkaError._FATAL, KafkaError._FENCED):
        return ErrorAction.REOPEN
    if error.txn_requires_abort() or code == KafkaError._STATE:
        return ErrorAction.ABORT
    if error.retriable() or code in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._QUEUE_FULL):
        return ErrorAction.RETRY
    return ErrorAction.REOPEN


def follows(error: KafkaError) -> bool:
    """Whether it says only that something else has failed."""
    return error.code() in _FOLLOWING


def cause(producer: Producer, error: KafkaError) -> KafkaError:
    """The error behind one that says little, as far as the producer knows it."""
    # Seen: of many records with a wrong time, one is told to be invalid, and the others to be beside it.
    if not follows(error) and error.code() != KafkaError.INVALID_RECORD:
        return error
    try:
        # It asks no broker. Within a transaction that has failed it raises what that failed of.
        producer.begin_transaction()
    except KafkaException as exception:
        found: KafkaError = exception.args[0]
        return error if follows(found) else found
    if not follows(error):
        return error
    # There was none, so nobody knows what became of it.
    return KafkaError(KafkaError._INCONSISTENT, f"{error.str()}, and no transaction is open")


def refusal(who: str, error: KafkaError) -> str:
    """What to say of an error that asks for a person; `who` is the transactional id."""
    said = f"Kafka refuses to take what {who} writes: {error.str()}"
    if error.code() != KafkaError.INVALID_TIMESTAMP:
        return said
    return (
        f"{said}. The clock of this machine is probably wrong: a broker takes nothing that is more than an "
        "hour ahead of its own (message.timestamp.after.max.ms). Set the clock, and start again."
    )

"""What the bridge knows of librdkafka: properties of each kind of client, and what its administrators answer.

This is the only module that names librdkafka's properties. What an error of a transaction asks for is in
`bridge.kafka.triage`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from confluent_kafka import (
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from bridge.config import KafkaSettings
from bridge.errors import BridgeError, SettingsError, TopologyError
from bridge.log import get

Properties = dict[str, Any]
T = TypeVar("T")

LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # untyped in the client
LOG = logging.getLogger("librdkafka")
SESSION_MS = 10_000
LOOK_SECONDS = 5.0
"""Within which a broker has to answer somebody who waits in front of a screen."""
ANSWER_SECONDS = 20.0
"""Longer than any request is given. What the client has not answered by then it never will."""

# A client warns about each property that is meant for the other kind; the settings are shared by all.
_CONSUMER_ONLY = re.compile(
    r"session\.timeout|heartbeat\.interval|max\.poll\.|fetch\.|queued\.(min|max)\.|auto\.offset\.reset|check\.crcs"
    r"|partition\.assignment\.strategy|allow\.auto\.create|enable\.partition\.eof|group\."
)
_PRODUCER_ONLY = re.compile(
    r"transaction|queue\.buffering|linger\.ms|batch\.(size|num)|compression|message\.(timeout|send)|delivery\."
    r"|request\.(timeout|required)|retries|sticky\."
)


class KafkaUnavailable(BridgeError):
    """No broker answers, or no client can be made. Whoever catches it waits and tries again."""


class Stalled(KafkaUnavailable):
    """A reader has not reached its end, and nothing comes to it any more. The text says what may keep it."""


_RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    KafkaError.SECURITY_DISABLED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
}
_PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
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
"""What a cluster says while brokers come, go and elect leaders."""


def lacks_right(error: KafkaError) -> bool:
    """Whether the principal is not allowed to do what failed."""
    return error.code() in _RIGHTS


def producer(
    settings: KafkaSettings,
    *,
    transactional_id: str,
    max_record_bytes: int,
    transaction_ms: int = 30_000,
    queue_kbytes: int = 131_072,
) -> Producer:
    """A transactional producer that is as safe as Kafka can make it, and partitions as Java does.

    A transaction may stay open for `transaction_ms`; `queue_kbytes` of it wait in memory at most.
    """
    return _create(
        Producer,
        settings,
        _properties(
            settings,
            drop=_CONSUMER_ONLY,
            defaults={
                # As short as can be: a transaction that a dead owner left open hides later records.
                "transaction.timeout.ms": transaction_ms,
                # A burst is sent together all the same: it waits while five requests are under way.
                "linger.ms": 0,
                # For a transaction that is begun too soon after the last; 100 ms by librdkafka's default.
                "retry.backoff.ms": 5,
                "queue.buffering.max.kbytes": max(queue_kbytes, 2 * max_record_bytes // 1024),
                "message.max.bytes": max_record_bytes,
            },
            ours={
                "transactional.id": transactional_id,
                "enable.idempotence": True,
                "acks": "all",
                "partitioner": "murmur2_random",
            },
        ),
    )


def reader(settings: KafkaSettings, *, name: str, prompt: bool = False) -> Consumer:
    """A `read_committed` consumer for partitions assigned by hand.

    librdkafka demands the name of a group, and Kafka the right to describe it; nobody ever joins it.

    It reports the end of a partition, which counts the transaction markers that it skips: at once where it
    is `prompt`, at the price of 50 requests a second for as long as there is nothing to read.
    """
    return _create(
        Consumer,
        settings,
        _properties(
            settings,
            drop=_PRODUCER_ONLY,
            defaults={
                **({"fetch.wait.max.ms": 20} if prompt else {}),
                # What is read ahead is memory: a snapshot of 200,000 records is to fit beside it.
                "fetch.message.max.bytes": 1024 * 1024,
                "queued.max.messages.kbytes": 4 * 1024,
                # Where that is full: how long until it is looked at again. A second by librdkafka's default.
                "fetch.queue.backoff.ms": 10,
            },
            ours={
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
                "group.id": name,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
            },
        ),
    )


def member(
    settings: KafkaSettings,
    *,
    group: str,
    committed: Callable[[KafkaError | None, list[TopicPartition]], None],
    name: str | None = None,
) -> Consumer:
    """A member of a leadership group: dynamic, and sticky, so that a newcomer takes nothing away.

    `committed` is called by `poll` with the outcome of each asynchronous commit. A `name` is its client.id.
    """
    return _create(
        Consumer,
        settings,
        _properties(
            settings,
            drop=_PRODUCER_ONLY,
            defaults={
                "session.timeout.ms": SESSION_MS,
                "heartbeat.interval.ms": 1_000,
                "auto.offset.reset": "latest",
            },
            ours={
                **({"client.id": name} if name else {}),
                "group.id": group,
                "on_commit": committed,
                "partition.assignment.strategy": "cooperative-sticky",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
            },
        ),
    )


def session_seconds(settings: KafkaSettings) -> float:
    """How long a member of a leadership group that is dead keeps its place."""
    return float(settings.properties().get("session.timeout.ms", SESSION_MS)) / 1000


def admin(settings: KafkaSettings) -> AdminClient:
    """An administration client."""
    both = re.compile(f"{_CONSUMER_ONLY.pattern}|{_PRODUCER_ONLY.pattern}")
    return _create(AdminClient, settings, _properties(settings, drop=both))


def _create(kind: Callable[..., T], settings: KafkaSettings, properties: Properties) -> T:
    """Raises SettingsError for what librdkafka refuses, KafkaUnavailable where it took it before."""
    made_of = (kind, frozenset(properties), settings)
    try:
        client = kind({**properties, "error_cb": _report}, logger=LOG)
    except (KafkaException, TypeError, ValueError) as error:
        detail = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        if made_of in _accepted:  # a file that they name is away, or descriptors are lacking
            raise KafkaUnavailable(f"no client can be made: {detail}") from None
        raise SettingsError(f"kafka: librdkafka does not accept the settings: {detail}") from None
    _accepted.add(made_of)
    return client


def _report(error: KafkaError) -> None:
    """Tell once what keeps every broker away and will not mend itself."""
    if error.code() in _OPERATORS and error.code() not in _reported:
        _reported.add(error.code())
        get().warning("Kafka cannot be used", reason=error.str())


_accepted: set[tuple[Callable[..., object], frozenset[str], KafkaSettings]] = set()
"""What clients were made of: their kind, the names of their properties, and the settings."""
_reported: set[int] = set()
_OPERATORS = {KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._RESOLVE}


def _properties(
    settings: KafkaSettings,
    *,
    drop: re.Pattern[str],
    defaults: Mapping[str, Any] | None = None,
    ours: Mapping[str, Any] | None = None,
) -> Properties:
    given = {name: value for name, value in settings.properties().items() if not drop.match(name)}
    common = {"client.id": "settlement-bridge", "reconnect.backoff.max.ms": 2_000}
    return {**common, **(defaults or {}), **given, **(ours or {})}


@contextmanager
def explained(what: str) -> Iterator[None]:
    """Turn librdkafka's errors of an administrative call into ours, which say what was attempted.

    Raises KafkaUnavailable when no broker answered, or not even the client; TopologyError for all else.
    """
    try:
        yield
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        if error.retriable() or error.code() in _PASSING:
            raise KafkaUnavailable(f"{what}: no broker answered ({error.str()})") from None
        if lacks_right(error):
            reason = error.str().rstrip(".")
            raise TopologyError(f"{what}: {reason}. The principal lacks a right; grant it.") from None
        raise TopologyError(f"{what}: {error.str()}") from None
    except (ValueError, TypeError) as error:
        raise TopologyError(f"{what}: {error}") from None
    except TimeoutError:  # not the broker's, which librdkafka tells: of `answer`
        raise KafkaUnavailable(f"{what}: the client does not answer") from None


def answer(future: Future[T]) -> T:
    """What became of an administrative call. Raises KafkaException, and TimeoutError where nothing did."""
    return future.result(ANSWER_SECONDS)


def look_for_broker(client: AdminClient) -> None:
    """Raises KafkaUnavailable when no broker answers, and as `explained`."""
    with explained("looking for a broker"):
        client.list_topics(timeout=3)


def listed(client: AdminClient, timeout: float = 3) -> set[str]:
    """The topics that there are. Raises as `explained`.

    Nobody asks for one by its name: a broker may make it for that (auto.create.topics.enable).
    """
    with explained("listing the topics"):
        return set(client.list_topics(timeout=timeout).topics)


def look_for(settings: KafkaSettings, topic: str) -> AdminClient:
    """A client of the cluster that has this topic, for whoever is about to read it.

    Raises TopologyError, with the fix, when there is no such topic, KafkaUnavailable, with the addresses,
    when no broker answers, and as `explained`.
    """
    client = admin(settings)
    try:
        found = topic_id(client, topic, LOOK_SECONDS)
    except KafkaUnavailable as error:
        raise KafkaUnavailable(f"no broker of {settings.bootstrap_servers} answers: {error}") from None
    if found is None:
        raise TopologyError(f"there is no topic {topic}. Run `bridge topics apply`, or check topics.prefix.")
    return client


def topic_id(client: AdminClient, topic: str, timeout: float = 3.0) -> str | None:
    """The id of a topic, another when it is made anew; None where there is none. Raises as `explained`."""
    with explained(f"looking for {topic}"):
        try:
            [future] = client.describe_topics(TopicCollection([topic]), request_timeout=timeout).values()
            return str(answer(future).topic_id)
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return None


def partition_count(client: AdminClient, topic: str) -> int:
    """How many partitions a topic has. Raises as `explained`, and KafkaUnavailable while it has no leader."""
    with explained(f"looking for {topic}"):
        found = client.list_topics(timeout=3).topics.get(topic)  # as in `listed`
    if found is None:
        topic_id(client, topic)  # it may be there, and not be seen
    if found is None or found.error is not None or not found.partitions:
        raise KafkaUnavailable(f"{topic} is not there, or not yet: {found and found.error}")
    return len(found.partitions)


def end_offsets(client: AdminClient, topic: str, partitions: int, *, visible: bool = False) -> list[int]:
    """The high watermark of each partition, open transactions included. Raises as `explained`.

    `visible` leaves out what such a transaction hides: it asks for the last stable offsets.
    """
    with explained(f"reading the end offsets of {topic}"):
        futures = client.list_offsets(
            {TopicPartition(topic, p): LATEST for p in range(partitions)},
            isolation_level=IsolationLevel.READ_COMMITTED if visible else IsolationLevel.READ_UNCOMMITTED,
            request_timeout=3,
        )
        found = [
            answer(future).offset for _, future in sorted(futures.items(), key=lambda item: item[0].partition)
        ]
    # Seen: a broker that falls silent after it was found is no error to the client, which answers -1001.
    if min(found) < 0:
        raise KafkaUnavailable(f"reading the end offsets of {topic}: no broker answered")
    return found

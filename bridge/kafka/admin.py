"""Asks Kafka about topics and offsets, with the client of an administrator."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, ClusterMetadata
from confluent_kafka.admin._listoffsets import OffsetSpec

from bridge.config import KafkaSettings
from bridge.errors import TopologyError
from bridge.kafka import clients
from bridge.kafka.errors import KafkaUnavailable, explained, unanswered
from bridge.kafka.outage import outage_of
from bridge.kafka.patience import ASK_SECONDS, patience

T = TypeVar("T")

EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # untyped in the client
LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
NONE = -1
"""The offset of a time after which a partition has no record."""
USER_SECONDS = 5.0
"""Time-out of a request of a command, whose user waits for the answer."""
SEARCH_SECONDS = 10.0
"""Time-out of a look-up by time, for which a broker may read indexes from its disk."""
ANSWER_SECONDS = 20.0
"""Longer than any time-out of a request: a client that has not answered by then never will."""
_NO_ID = "A" * 22
"""How a cluster without ids of topics answers."""


class TopicSeen(NamedTuple):
    """A topic at one moment."""

    id: str
    """It changes when the topic is made anew; empty where the cluster has none."""
    ends: tuple[int, ...]
    """The high watermarks of its partitions."""
    starts: tuple[int, ...] = ()
    """The offsets before which records were deleted; empty where that was not asked."""


def result_of(future: Future[T]) -> T:
    """Return the result of an admin call. Raises KafkaException, and TimeoutError after ANSWER_SECONDS."""
    return future.result(ANSWER_SECONDS * patience.factor)


def metadata(client: AdminClient, timeout: float = ASK_SECONDS) -> ClusterMetadata:
    """Return the brokers and all topics that the principal may describe. Raises as `explained`.

    Asking for a single topic could create it (auto.create.topics.enable).
    """
    with explained("listing the topics", client):
        return client.list_topics(timeout=timeout * patience.factor)


def learn_brokers(client: AdminClient) -> None:
    """Have a client learn which brokers there are now; a call to all brokers asks those that it knows.

    By itself it forgets a broker that is away, and learns of its return minutes later (decision 0009). Raises
    as `explained`.
    """
    with explained("looking for the brokers", client):
        client.list_topics(clients.TRANSACTIONS, timeout=ASK_SECONDS * patience.factor)


def require_topic(settings: KafkaSettings, topic: str) -> AdminClient:
    """Return a client for a cluster, after checking that it has the topic.

    Raises TopologyError, with the fix, when the topic is missing; otherwise as `explained`.
    """
    client = clients.admin(settings)
    if topic_id(client, topic, USER_SECONDS) is None:
        raise TopologyError(f"there is no topic {topic}. Run `bridge topics apply`, or check topics.prefix.")
    return client


def allowed_on(client: AdminClient, topics: Sequence[str]) -> dict[str, frozenset[str] | None]:
    """Return the operations that the principal is allowed on these topics, which exist, as `WRITE`.

    None for those that the cluster does not report. Raises as `explained`.
    """
    if not topics:
        return {}
    with explained("asking for the rights on the topics", client):
        futures = client.describe_topics(
            TopicCollection(list(topics)),
            include_authorized_operations=True,
            request_timeout=USER_SECONDS * patience.factor,
        )
    found = {}
    for topic, future in futures.items():
        with explained(f"asking for the rights on {topic}", client, f"Describe the topic {topic}"):
            found[topic] = operations(result_of(future))
    return found


def operations(description: Any) -> frozenset[str] | None:
    """Return the operations that are allowed on what is described, None if the cluster reports none."""
    found = description.authorized_operations
    return None if found is None else frozenset(operation.name for operation in found)


def topic_id(client: AdminClient, topic: str, timeout: float = ASK_SECONDS) -> str | None:
    """Return the id of a topic, None if it does not exist. A recreated topic has a new id.

    Raises as `explained`.
    """
    found = _description(client, topic, timeout)
    return None if found is None else str(found.topic_id)


def _description(client: AdminClient, topic: str, timeout: float = ASK_SECONDS) -> Any:
    with explained(f"looking for {topic}", client, f"Describe the topic {topic}"):
        try:
            [future] = client.describe_topics(
                TopicCollection([topic]), request_timeout=timeout * patience.factor
            ).values()
            return result_of(future)
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
            return None


def topics_seen(client: AdminClient, topics: Sequence[str]) -> dict[str, TopicSeen | None]:
    """Return ids, ends and starts of topics, None of those that do not exist. Raises as `explained`."""
    found: dict[str, TopicSeen | None] = dict.fromkeys(topics)
    for topic in topics:
        if (described := _description(client, topic)) is not None:
            identity, count = str(described.topic_id), len(described.partitions)
            starts, ends = start_offsets(client, topic, count), end_offsets(client, topic, count)
            found[topic] = TopicSeen("" if identity == _NO_ID else identity, tuple(ends), tuple(starts))
    return found


def partition_count(client: AdminClient, topic: str) -> int:
    """Count a topic's partitions. Raises as `explained`, and KafkaUnavailable while it has no leader."""
    found = metadata(client).topics.get(topic)
    if found is None:
        topic_id(client, topic)  # raises if the right to describe it is missing
    if found is None or found.error is not None or not found.partitions:
        raise KafkaUnavailable(f"{topic} does not exist, or not yet: {found and found.error}")
    return len(found.partitions)


def start_offsets(client: AdminClient, topic: str, partitions: int) -> list[int]:
    """Return the offset of each partition before which records were deleted. Raises as `explained`."""
    return _offsets(client, topic, partitions, EARLIEST, "start offsets")


def high_watermarks(client: AdminClient, topic: str) -> dict[int, int]:
    """Return the high watermark of each partition. Raises as `partition_count` and `end_offsets`."""
    return dict(enumerate(end_offsets(client, topic, partition_count(client, topic))))


def end_offsets(client: AdminClient, topic: str, partitions: int, *, visible: bool = False) -> list[int]:
    """Return the high watermark of each partition. Raises as `explained`.

    With `visible`, return the last stable offsets, which open transactions hold back.
    """
    return _offsets(client, topic, partitions, LATEST, "end offsets", visible=visible)


def offsets_since(client: AdminClient, topic: str, moment: float, ends: Sequence[int]) -> list[int]:
    """Return the offset of the first record at or after `moment` (Unix seconds), at most the partition's end.

    A look-up by time stops at an open transaction, which may hide records as young: then it is that offset.
    It also finds the markers of commits. Raises as `explained`.
    """
    stable = end_offsets(client, topic, len(ends), visible=True)
    # A negative number is not a time, but stands for an end of the partition.
    since = OffsetSpec.for_timestamp(max(0, round(moment * 1000)))
    name = f"first offsets since {moment:.3f}"
    found = _offsets(client, topic, len(ends), since, name, visible=True)
    young = [last if offset == NONE else offset for offset, last in zip(found, stable, strict=True)]
    return [min(offset, end) for offset, end in zip(young, ends, strict=True)]


def _offsets(
    client: AdminClient,
    topic: str,
    partitions: int,
    which: OffsetSpec,
    name: str,
    *,
    visible: bool = False,
) -> list[int]:
    """Ask the leaders of the partitions. A new client may lose its first question (decision 0009)."""
    what, by_time = f"reading the {name} of {topic}", which not in (EARLIEST, LATEST)
    with explained(what, client, f"Describe the topic {topic}"):
        futures = client.list_offsets(
            {TopicPartition(topic, p): which for p in range(partitions)},
            isolation_level=IsolationLevel.READ_COMMITTED if visible else IsolationLevel.READ_UNCOMMITTED,
            request_timeout=(SEARCH_SECONDS if by_time else ASK_SECONDS) * patience.factor,
        )
        found = [result_of(futures[partition]).offset for partition in sorted(futures)]
    # Seen: a broker that falls silent after it was found is no error to the client, which answers -1001.
    if min(found) < (NONE if by_time else 0):
        patience.ran_out()
        raise unanswered(what, outage_of(client))
    return found

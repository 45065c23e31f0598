"""The gaps that were declared, as they stand in their topic."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message, TopicPartition

from bridge import instant, kafka, topics
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.registry import Registry
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.readers import ANSWER_SECONDS
from bridge.sink.gap import Gap
from bridge.text import duration, utc


def read_gaps(settings: Settings, feed: str | None = None) -> list[Gap]:
    """All gaps that were ever declared under the prefix, or those of one feed, by when they were found.

    Raises KafkaUnavailable when no broker answers within `ANSWER_SECONDS`, TopologyError when the topic
    is not there or holds something else.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    topic = topics.declare(settings).gaps.name
    codec = Codec(load("feed-gap"), READ_ONLY, Registry(settings.registry).schema_by_id)
    gaps = [Gap.from_avro(codec.decode(value)) for value in _read(settings, topic)]
    return sorted((gap for gap in gaps if feed in (None, gap.feed)), key=lambda gap: gap.detected_at)


def _read(settings: Settings, topic: str) -> list[bytes]:
    """The values of a topic, `read_committed`."""
    admin = kafka.admin(settings.kafka)
    kafka.must_exist(admin, topic, ANSWER_SECONDS)
    count = kafka.partition_count(admin, topic)
    ends = kafka.end_offsets(admin, topic, count)
    values: list[bytes] = []

    def take(message: Message) -> None:
        if (value := message.value()) is not None:
            values.append(value)

    deadline = instant.now().steady + ANSWER_SECONDS
    consumer = kafka.reader(settings.kafka, name=f"{settings.topics.prefix}.reader")
    try:
        starts = [TopicPartition(topic, partition, 0) for partition in range(count)]
        if not kafka.read_to(consumer, starts, ends, take, lambda: instant.now().steady > deadline):
            raise kafka.KafkaUnavailable(f"{topic} could not be read to its end in {ANSWER_SECONDS:g} s")
    finally:
        consumer.close()
    return values


def gap_as_json(gap: Gap) -> dict[str, Any]:
    """A gap with its times in words, and its length in seconds."""
    return {
        "feed": gap.feed,
        "from": utc(gap.start),
        "to": utc(gap.end),
        "seconds": gap.seconds,
        "cause": gap.cause.value,
        "detectedAt": utc(gap.detected_at),
    }


def gap_as_line(gap: Gap) -> str:
    """A gap for a person."""
    return (
        f"{gap.feed}  {utc(gap.start)} to {utc(gap.end)}  {duration(gap.seconds)}  "
        f"{gap.cause.value}, found {utc(gap.detected_at)}"
    )

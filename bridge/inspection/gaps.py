"""The gaps that were declared, as they stand in their topic."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message

from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.registry import Registry
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import SchemaError
from bridge.formatting import format_duration, format_utc
from bridge.inspection.readers import ANSWER_SECONDS
from bridge.kafka import admin, topics
from bridge.kafka.reader import Foreign, decode, read_topic
from bridge.state.gap import Gap


def read_gaps(settings: Settings, feed: str | None = None) -> list[Gap]:
    """All gaps that were ever declared under the prefix, or those of one feed, by when they were found.

    Records that are none of ours are passed over, and counted in the log. Raises KafkaUnavailable when no
    broker answers, TopologyError when the topic is not there.
    """
    settings.need("kafka.bootstrap_servers", "registry.url")
    topic = topics.declare(settings).gaps.name
    admin.look_for(settings.kafka, topic)
    gaps: list[Gap] = []
    foreign = Foreign()
    with Registry(settings.registry) as registry:
        codec = Codec(load("feed-gap"), READ_ONLY, registry.schema_by_id)

        def take(message: Message) -> None:
            if (value := message.value()) is not None:
                try:
                    gaps.append(Gap.from_avro(decode(codec, message, value)))
                except SchemaError as error:
                    foreign.add(error)

        read_topic(settings, topic, take, stall_seconds=ANSWER_SECONDS)
    foreign.log()
    return sorted((gap for gap in gaps if feed in (None, gap.feed)), key=lambda gap: gap.detected_at)


def gap_as_json(gap: Gap) -> dict[str, Any]:
    """A gap with its times in words, and its length in seconds."""
    return {
        "feed": gap.feed,
        "from": format_utc(gap.start),
        "to": format_utc(gap.end),
        "seconds": gap.seconds,
        "cause": gap.cause.value,
        "detectedAt": format_utc(gap.detected_at),
    }


def gap_as_line(gap: Gap) -> str:
    """A gap for a person."""
    return (
        f"{gap.feed}  {format_utc(gap.start)} to {format_utc(gap.end)}  {format_duration(gap.seconds)}  "
        f"{gap.cause.value}, found {format_utc(gap.detected_at)}"
    )

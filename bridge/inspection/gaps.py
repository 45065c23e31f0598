"""Reads the declared gaps from their topic, and prints them."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Message

from bridge.config import Settings
from bridge.errors import SchemaError, SchemaNotFound, SettingsError
from bridge.formatting import format_duration, format_utc
from bridge.kafka import admin
from bridge.kafka.reader import IN_VAIN_SECONDS, TopicScan
from bridge.records import topics
from bridge.records.gap import FeedGap
from bridge.records.message import SkippedRecords, record_of
from bridge.registry import Registry


def read_gaps(settings: Settings, feed: str | None) -> list[FeedGap]:
    """Return all gaps declared under the prefix, or those of one feed, in the order of detection.

    Skips records that no bridge can have written, and logs their number. Raises KafkaUnavailable if no broker
    answers, TopologyError if the topic is missing, SchemaNotFound if the registry lacks the schema of a gap,
    SettingsError if the feed has no checkpoint and no gap.
    """
    settings.require("kafka.bootstrap_servers", "registry.url")
    declared = topics.declare(settings)
    admin.require_topic(settings.kafka, declared.gaps.name)
    gaps: list[FeedGap] = []
    foreign = SkippedRecords()
    with Registry(settings.registry) as registry:
        codec = registry.codec("feed-gap")

        def take(message: Message) -> None:
            if message.value() is not None:
                try:
                    gaps.append(record_of(message, codec, FeedGap.from_avro))
                except SchemaError as error:
                    if isinstance(error, SchemaNotFound) and codec.writers.is_shipped(message.value() or b""):
                        raise  # a gap that is declared
                    foreign.add(error)

        TopicScan(declared.gaps.name, take, stall_seconds=IN_VAIN_SECONDS).read(settings)
    foreign.log()
    known = {gap.feed for gap in gaps}
    if feed is not None and feed not in known:
        TopicScan(
            declared.checkpoints.name,
            lambda message: known.add((message.key() or b"").decode("utf-8", "replace")),
            visible=True,
            stall_seconds=IN_VAIN_SECONDS,
        ).read(settings)
        if feed not in known:
            found = f"known: {', '.join(sorted(known))}" if known else "no feed has a checkpoint yet"
            raise SettingsError(
                f"--feed {feed}: no feed of that name has a checkpoint or a gap under "
                f"{settings.topics.prefix}; {found}"
            )
    return sorted((gap for gap in gaps if feed in (None, gap.feed)), key=lambda gap: gap.detected_at)


def gap_as_json(gap: FeedGap) -> dict[str, Any]:
    """Return a gap for scripts: its times in ISO 8601, its length in seconds."""
    return {
        "feed": gap.feed,
        "from": format_utc(gap.start),
        "to": format_utc(gap.end),
        "seconds": gap.seconds,
        "cause": gap.cause.value,
        "detectedAt": format_utc(gap.detected_at),
    }


def gap_as_line(gap: FeedGap) -> str:
    """Return a gap for people, on one line."""
    span = f"the beginning to {format_utc(gap.end)}"
    if gap.start:
        span = f"{format_utc(gap.start)} to {format_utc(gap.end)}  {format_duration(gap.seconds)}"
    return f"{gap.feed}  {span}  {gap.cause.value}, found {format_utc(gap.detected_at)}"

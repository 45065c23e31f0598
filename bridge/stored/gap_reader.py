"""Reads the gaps of a feed from their topic."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.config import Settings
from bridge.errors import SchemaError
from bridge.kafka.reader import TopicScan, with_fresh_clients
from bridge.records.gap import FeedGap
from bridge.records.message import record_of
from bridge.records.topics import declare


def gaps_since(settings: Settings, codec: Codec, since: float, give_up: Callable[[], bool]) -> list[FeedGap]:
    """Return the gaps of the feed detected since then, Unix seconds; waits for open transactions.

    Skips records that cannot be read. Retries while Kafka is unavailable, and returns early only if `give_up`
    returns true. Raises TopologyError when a right or the topic is missing.
    """
    found: list[FeedGap] = []

    def take(message: Message) -> None:
        try:
            gap = record_of(message, codec, FeedGap.from_avro)
        except SchemaError:  # `bridge gaps` tells it
            return
        if gap.feed == settings.feed.name:
            found.append(gap)

    scan = TopicScan(declare(settings).gaps.name, take, start=since)
    with_fresh_clients(settings, partial(scan.resume, give_up=give_up), give_up)
    return found

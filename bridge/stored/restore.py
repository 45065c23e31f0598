"""Restores from Kafka what is published: the entries of the deduplicator."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from functools import partial
from typing import NamedTuple

from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient

from bridge import clock as instant
from bridge.avro.codec import Codec, reading
from bridge.avro.decoder import Decoder
from bridge.clock import Clock
from bridge.config import FeedSettings, Settings
from bridge.dedup.deduplicator import KEPT, Deduplicator, fingerprint
from bridge.dedup.restored import Restored
from bridge.errors import ForeignRecord, SchemaError
from bridge.kafka.reader import TopicScan, reports_progress, with_fresh_clients
from bridge.records.checkpoint import UnprovenReplay
from bridge.records.dead_letter import DeadLetterKind
from bridge.records.message import SkippedRecords, at, first_received_at, key_of, received_at
from bridge.records.topics import Topics

LETTERS = 10_000
"""Dead letters that are restored at least: each is read whole."""
SAMPLE, REDRIVE = DeadLetterKind.SAMPLE.encode(), DeadLetterKind.REDRIVE.encode()


class PublishedBets(NamedTuple):
    """What is published of some bets."""

    deduplicator: Deduplicator
    received: dict[bytes, float]
    """The time of receipt of the last record of each bet, Unix seconds; of a redriven one the original's."""


def _is_from(unproven: UnprovenReplay, message: Message) -> bool:
    """Return whether a record was received in that replay, not only redriven since."""
    return first_received_at(message) >= unproven.since


def _is_not(_: Message) -> bool:
    return False


class PublishedReader:
    """Reads the topics of bets and dead letters, `read_committed` and to their very end.

    The caller has fenced its predecessors, so none of their records can follow.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        bets: Codec,
        clock: Clock = instant.now,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._bets = bets
        self._versions = reading("settled-bet", bets.schema_by_id, {"settlementVersion": {}})
        self._clock = clock

    def deduplicator(
        self,
        since: float,
        give_up: Callable[[], bool],
        on_status: Callable[[str], None],
        unproven: UnprovenReplay | None = None,
    ) -> Deduplicator:
        """Return a deduplicator with all bets and dead letters received since this time, Unix seconds.

        The last ones are among these, however old: a replay may begin earlier than requested. What came from
        an `unproven` replay does not show that the next one is whole. Skips records that no bridge can have
        written. Retries while Kafka is unavailable, and returns early only if `give_up` returns true;
        `on_status` receives the reason of each delay, and how far it has come. Raises SchemaError, with the
        record's place, for other records that cannot be read.
        """
        deduplicator, foreign = Deduplicator(), SkippedRecords()
        brought = partial(_is_from, unproven) if unproven else _is_not
        take_other = partial(self._take_bet, deduplicator=deduplicator, foreign=foreign, brought=brought)
        versions = Decoder(self._bets.schema, self._versions.schema)
        take_bet = Restored(deduplicator, self._bets.header, versions, brought, take_other).take

        def take_dead(message: Message) -> None:
            key = message.key()
            # A mark must not make a letter look younger: only what was received since can be repeated.
            if isinstance(key, bytes) and dict(message.headers() or []).get("kind") not in (SAMPLE, REDRIVE):
                deduplicator.record_dead_letter(key, received_at(message), brought=brought(message))

        # Retries resume where they stopped: the deduplicator needs the records in order.
        scans = [
            TopicScan(
                topic.name,
                take,
                start=since,
                least=least,
                progress=reports_progress(on_status, topic.name),
                clock=self._clock,
            )
            for topic, take, least in (
                (self._topics.bets, take_bet, KEPT),
                (self._topics.deadletters, take_dead, LETTERS),
            )
        ]

        def read(client: AdminClient, consumer: Consumer) -> None:
            for scan in scans:
                scan.resume(client, consumer, give_up)

        with_fresh_clients(self._settings, read, give_up, on_status)
        foreign.log()
        return deduplicator

    def check_last(self, count: int) -> tuple[int, SkippedRecords]:
        """Read the last bets, at least so many, before open transactions; return their number.

        Foreign records as in `deduplicator`. Raises as it does and as `TopicScan.read`.
        """
        found, foreign = Deduplicator(), SkippedRecords()
        take = partial(self._take_bet, deduplicator=found, foreign=foreign)
        name, now = self._topics.bets.name, self._clock().wall
        TopicScan(name, take, start=now, least=count, visible=True, clock=self._clock).read(self._settings)
        return len(found), foreign

    def of_bets(self, keys: AbstractSet[bytes], *, visible: bool) -> PublishedBets:
        """Return what the whole topic has of these bets; with `visible`, before open transactions only.

        Foreign records as in `deduplicator`. Raises as it does and as `TopicScan.read`.
        """
        found, foreign = PublishedBets(Deduplicator(), {}), SkippedRecords()

        def take(message: Message) -> None:
            key = message.key()
            if isinstance(key, bytes) and key in keys:
                self._take_bet(message, found.deduplicator, foreign)
                found.received[key] = first_received_at(message)

        if keys:
            TopicScan(self._topics.bets.name, take, visible=visible, clock=self._clock).read(self._settings)
        foreign.log()
        found.deduplicator.connected()  # all that is known may be repeated
        return found

    def _take_bet(
        self,
        message: Message,
        deduplicator: Deduplicator,
        foreign: SkippedRecords,
        brought: Callable[[Message], bool] = _is_not,
    ) -> None:
        value = message.value()
        try:
            key = key_of(message)
            if value is not None:
                version = self._versions.decode(value)["settlementVersion"]
                content = fingerprint(self._bets.as_ours(value))
                deduplicator.publish(key, version, content, received_at(message), brought=brought(message))
        except ForeignRecord as error:
            foreign.add(at(message, error))
        except SchemaError as error:
            raise at(message, error) from None


def deduplicated_from(feed: FeedSettings, revision: float) -> float:
    """Return the oldest time of receipt, Unix seconds, that a replay from the revision may repeat."""
    margins = feed.safety_margin_seconds + feed.max_out_of_orderness_seconds + feed.max_clock_skew_seconds
    return revision - margins

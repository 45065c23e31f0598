"""What is already in Kafka: the committed checkpoint of a feed, and what the guard has to know."""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient

from bridge import clock as instant
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.projection import Projection
from bridge.avro.schemas import Schema, load
from bridge.clock import Clock
from bridge.config import Settings
from bridge.errors import NotOurs, SchemaError
from bridge.kafka import admin
from bridge.kafka.errors import Stalled
from bridge.kafka.reader import (
    PATIENCE_SECONDS,
    Foreign,
    Progress,
    TopicScan,
    at,
    decode,
    key_of,
    more_patient,
    with_fresh_clients,
)
from bridge.kafka.topics import Topics
from bridge.state.dead_letter import Kind
from bridge.state.deduplicator import Deduplicator, fingerprint

LOOKBACK = 1_000
"""Records from the end of the checkpoint topic at which the search for a feed's own begins."""
SAMPLE = Kind.SAMPLE.value.encode()


class Store:
    """Reads the bridge's own topics, `read_committed` and to their very end.

    The end is taken after the writer has fenced its predecessors, so nothing of theirs can come later.
    Each method waits while Kafka is away, and returns early only when `give_up` says so. `told` hears what
    keeps it, each time that something does, and nothing ("") when it has gone on.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        schema_by_id: Callable[[int], Schema],
        clock: Clock = instant.now,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._versions = Projection("settlement.SettledBet", "settlementVersion", schema_by_id)
        self._checkpoints = Codec(load("feed-checkpoint"), READ_ONLY, schema_by_id)
        self._topics = topics

    def checkpoint(
        self, give_up: Callable[[], bool], told: Callable[[str], None], *, visible: bool = False
    ) -> bytes | None:
        """The value of the feed's last committed checkpoint, in wire format; None before the first.

        With `visible` only of what can be seen now: an open transaction is not waited for. Raises
        SchemaError, with the place, where that is no checkpoint: the one before it is a position of long ago.
        """
        topic, key = self._topics.checkpoints, self._settings.feed.name.encode()
        found: Message | None = None
        patience = PATIENCE_SECONDS

        def take(message: Message) -> None:
            nonlocal found
            if message.key() == key:
                found = None if message.value() is None else message

        def search(client: AdminClient, consumer: Consumer) -> None:
            nonlocal found, patience
            found = None  # what a try that failed has seen may be outdated
            [end] = admin.end_offsets(client, topic.name, 1, visible=visible)
            lookback = LOOKBACK
            while True:
                start = max(0, end - lookback)
                passage = TopicScan(
                    topic.name,
                    take,
                    start={0: start},
                    ends={0: end},
                    patience=patience,
                    progress=_nothing_is_in_the_way(told),
                    clock=self._clock,
                )
                try:
                    passage.go_on(client, consumer, give_up)
                except Stalled:
                    # The next client begins anew, and may have as much to skip.
                    if passage.patience > patience:
                        patience = more_patient(patience, PATIENCE_SECONDS)
                    raise
                if found is not None or start == 0 or not passage.done:
                    break
                lookback *= 10
            if found is not None:
                decode(self._checkpoints, found, found.value() or b"")

        with_fresh_clients(self._settings, search, give_up, told)
        return None if found is None else found.value()

    def deduplicator(
        self, since: float, give_up: Callable[[], bool], told: Callable[[str], None]
    ) -> Deduplicator:
        """A guard that knows all bets and dead letters received since then, Unix seconds.

        What no bridge has written it need not know. Raises SchemaError, with the place, where one may have.
        """
        deduplicator, foreign = Deduplicator(), Foreign()

        def take_bet(message: Message) -> None:
            value = message.value()
            try:
                key = key_of(message)
                if value is not None:
                    version = self._versions.read(value)
                    deduplicator.publish(key, version, fingerprint(value), _received(message))
            except NotOurs as error:
                foreign.add(at(message, error))
            except SchemaError as error:
                raise at(message, error) from None

        def take_dead(message: Message) -> None:
            key = message.key()
            if isinstance(key, bytes) and dict(message.headers() or []).get("kind") != SAMPLE:
                deduplicator.bury(key, _received(message))

        # Another try goes on where the last was interrupted: the order of what the guard learns matters.
        passages = [
            TopicScan(topic.name, take, start=since, progress=_nothing_is_in_the_way(told), clock=self._clock)
            for topic, take in ((self._topics.bets, take_bet), (self._topics.deadletters, take_dead))
        ]

        def read(client: AdminClient, consumer: Consumer) -> None:
            for passage in passages:
                passage.go_on(client, consumer, give_up)

        with_fresh_clients(self._settings, read, give_up, told)
        foreign.tell()
        return deduplicator


def _nothing_is_in_the_way(told: Callable[[str], None]) -> Progress:
    return lambda done, of: told("")


def _received(message: Message) -> float:
    _, milliseconds = message.timestamp()
    return milliseconds / 1000

"""Restores the state of a feed from Kafka: its committed checkpoint, and the entries of the deduplicator."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from copy import copy
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient

from bridge import clock as instant
from bridge.avro.codec import READ_ONLY, Codec, schema_id_of
from bridge.avro.field_layout import FieldLayout
from bridge.avro.field_reader import FieldReader
from bridge.avro.schemas import Schema, load
from bridge.clock import Clock
from bridge.config import FeedSettings, Settings
from bridge.errors import NotOurs, SchemaError, TopologyError
from bridge.formatting import format_utc
from bridge.kafka import admin
from bridge.kafka.reader import (
    Foreign,
    OffsetProgress,
    TopicScan,
    at,
    headers_of,
    key_of,
    original_receipt,
    with_fresh_clients,
)
from bridge.kafka.topics import Topics
from bridge.state.checkpoint import Checkpoint
from bridge.state.dead_letter import DeadLetterKind
from bridge.state.deduplicator import Deduplicator, fingerprint

LOOKBACK = 1_000
"""The search for a feed's checkpoint starts this many records before the end of the topic."""
RETIRED: Final = "retired"
"""Header of the last checkpoint of a feed that is over: the feed that uses its topics now."""
SUCCEEDS: Final = "succeeds"
"""Header of the checkpoint with which another feed goes on then: the one that is over."""
SAMPLE = DeadLetterKind.SAMPLE.value.encode()
REDRIVE = DeadLetterKind.REDRIVE.value.encode()


class Published(NamedTuple):
    """What is published of some bets."""

    deduplicator: Deduplicator
    received: dict[bytes, float]
    """The time of receipt of the last record of each bet, Unix seconds; of a redriven one the original's."""


class _Found(NamedTuple):
    """A feed: the offset of its first checkpoint in the part that was read, and its last one."""

    first: int
    last: Message


class StateReader:
    """Reads the bridge's own topics, `read_committed` and to their very end.

    The caller has fenced its predecessors, so none of their records can follow. Each method retries while
    Kafka is unavailable, and returns early only if `give_up` returns true. `on_status` receives the reason of
    each delay, and "" once reading continues.
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
        self._versions = FieldReader(
            "settlement.SettledBet",
            lambda schema: FieldLayout(schema, "settlementVersion").read,
            schema_by_id,
        )
        self._checkpoints = Codec(load("feed-checkpoint"), READ_ONLY, schema_by_id)
        self._topics = topics

    def checkpoint(
        self, give_up: Callable[[], bool], on_status: Callable[[str], None], *, visible: bool = False
    ) -> bytes | None:
        """Return the feed's last committed checkpoint, in wire format; None before the first.

        With `visible`, do not wait for open transactions. Raises SchemaError, with the record's place, if it
        is not a checkpoint: an earlier one would be out of date.
        """
        own = self._search(give_up, on_status, visible=visible).get(self._key)
        return None if own is None else own.last.value()

    def refuse_other_feeds(
        self,
        give_up: Callable[[], bool],
        on_status: Callable[[str], None],
        *,
        visible: bool = False,
        beside: str = "",
    ) -> bytes | None:
        """Raise TopologyError, naming the feed and the fix, if another feed takes precedence.

        If this feed has no checkpoint or is retired, any other feed that is not retired takes precedence.
        Otherwise one that has received something does over one that has not; of two that have, the one that
        wrote last; of two that have not, the one that wrote first. The feed `beside` this one is ignored.
        Does not raise once `give_up` returns true. `visible` is as in `checkpoint`, and the same is returned:
        the checkpoint may have changed since it was read.
        """
        found = self._search(give_up, on_status, visible=visible, whole=True)
        own = found.pop(self._key, None)
        value = None if own is None else own.last.value()
        if give_up():
            return value
        if own is not None and retired(own.last):
            own = None
        rivals = [
            other.last
            for name, other in found.items()
            if name != beside.encode() and not retired(other.last) and self._goes_before(other, own)
        ]
        if rivals:
            raise TopologyError(self._of_another_feed(max(rivals, key=_received), beside))
        return value

    def _goes_before(self, other: _Found, own: _Found | None) -> bool:
        if own is None:
            return True
        theirs, ours = self._has_received(other.last), self._has_received(own.last)
        if theirs != ours:
            return theirs
        return (other.last.offset() or 0) > (own.last.offset() or 0) if ours else other.first < own.first

    def _has_received(self, checkpoint: Message) -> bool:
        try:
            return self._read(checkpoint).has_received
        except SchemaError:
            return True  # nobody knows

    def is_retired(self, give_up: Callable[[], bool], on_status: Callable[[str], None]) -> bool:
        """Return whether the feed is over (`bridge checkpoint retire`)."""
        own = self._search(give_up, on_status, visible=False).get(self._key)
        return own is not None and retired(own.last)

    def of_feed(self, settings: Settings) -> StateReader:
        """Return a reader of another feed on the same topics."""
        other = copy(self)
        other._settings = settings
        return other

    @property
    def _key(self) -> bytes:
        return self._settings.feed.name.encode()

    def _search(
        self,
        give_up: Callable[[], bool],
        on_status: Callable[[str], None],
        *,
        visible: bool,
        whole: bool = False,
    ) -> dict[bytes, _Found]:
        """Return the feeds by their keys, others at least from this one's last checkpoint on.

        With `whole`, all of them unless this one has received something and is not retired. Raises as
        `checkpoint`.
        """
        topic = self._topics.checkpoints.name
        found: dict[bytes, _Found] = {}
        scan: TopicScan | None = None
        lookback = LOOKBACK

        def take(message: Message) -> None:
            name = message.key()
            if message.value() is None:
                found.pop(name, None)  # type: ignore[arg-type]  # which may be None
            elif name == self._key or (isinstance(name, bytes) and not _is_foreign(message)):
                first = found[name].first if name in found else message.offset() or 0
                found[name] = _Found(first, message)

        def enough() -> bool:
            own = found.get(self._key)
            if own is None or not whole:
                return own is not None
            return self._has_received(own.last) and not retired(own.last)

        def search(client: AdminClient, consumer: Consumer) -> None:
            nonlocal scan, lookback
            admin.topic_id(client, topic)  # before the leaders are asked (decision 0034)
            while True:
                if scan is None:
                    [end] = admin.end_offsets(client, topic, 1, visible=visible)
                    start, progress = {0: max(0, end - lookback)}, _reports_progress(on_status)
                    scan = TopicScan(
                        topic, take, start=start, ends={0: end}, progress=progress, clock=self._clock
                    )
                scan.resume(client, consumer, give_up)
                if not scan.done or scan.start == {0: 0} or enough():
                    break
                scan, lookback = None, 10 * lookback
                found.clear()
            self._drop_foreign(found)

        with_fresh_clients(self._settings, search, give_up, on_status)
        return found

    def _drop_foreign(self, found: dict[bytes, _Found]) -> None:
        if (own := found.get(self._key)) is not None:
            self._read(own.last)
        for name in [name for name, feed in found.items() if not self._is_checkpoint(feed.last)]:
            del found[name]

    def _read(self, message: Message) -> Checkpoint:
        """Return a checkpoint. Raises SchemaError, with the record's place."""
        try:
            return Checkpoint.from_avro(self._checkpoints.decode(message.value() or b""))
        except SchemaError as error:
            raise at(message, error) from None

    def _is_checkpoint(self, message: Message) -> bool:
        try:
            key_of(message)
            self._checkpoints.decode(message.value() or b"")
        except NotOurs:
            return False
        except SchemaError:  # of a newer version, or the registry has lost its schema
            return True
        return True

    def _of_another_feed(self, rival: Message, beside: str) -> str:
        prefix, name = self._settings.topics.prefix, shlex.quote((rival.key() or b"").decode())
        try:
            self._read(rival)
        except SchemaError as error:
            return (
                f"{error}; its key is {name}, so another feed may use the topics {prefix}.…, and two on one "
                "prefix lose bets. If the registry does not know its schema, check registry.url "
                "(BRIDGE_REGISTRY__URL). If a newer version of the bridge wrote it, use that version. If no "
                "such feed is running, write a record of that key without a value: it removes the checkpoint"
            )
        found = f"the feed {name} uses the topics {prefix}.…, and last wrote at "
        found += f"{format_utc(round(_received(rival)))}. Two feeds on one prefix lose bets: each takes the "
        found += "other's for its own. "
        if beside:
            return (
                f"{found}Before {self._settings.feed.name} is retired for {beside}, it must be settled which "
                f"feed stays. If {name} is over too, run `bridge checkpoint retire {name}` first. If it is "
                f'{name} that stays, set feed.name (BRIDGE_FEED__NAME) to it. See "Several feeds" in '
                "docs/scale.md."
            )
        return (
            f"{found}Give {self._settings.feed.name} a prefix of its own: topics.prefix "
            f"(BRIDGE_TOPICS__PREFIX). If {name} is over, for example because feed.name was changed, run "
            f'`bridge checkpoint retire {name}` first. See "Several feeds" in docs/scale.md.'
        )

    def deduplicator(
        self, since: float, give_up: Callable[[], bool], on_status: Callable[[str], None]
    ) -> Deduplicator:
        """Return a deduplicator with all bets and dead letters received since this time, Unix seconds.

        Skips records that no bridge can have written. Raises SchemaError, with the record's place, for others
        that cannot be read.
        """
        deduplicator, foreign = Deduplicator(), Foreign()

        def take_bet(message: Message) -> None:
            self._take_bet(message, deduplicator, foreign)

        def take_dead(message: Message) -> None:
            key = message.key()
            # A mark must not make a letter look younger: only what was received since can be repeated.
            if isinstance(key, bytes) and dict(message.headers() or []).get("kind") not in (SAMPLE, REDRIVE):
                deduplicator.record_dead_letter(key, _received(message))

        # Retries resume where they stopped: the deduplicator needs the records in order.
        scans = [
            TopicScan(topic.name, take, start=since, progress=_reports_progress(on_status), clock=self._clock)
            for topic, take in ((self._topics.bets, take_bet), (self._topics.deadletters, take_dead))
        ]

        def read(client: AdminClient, consumer: Consumer) -> None:
            for scan in scans:
                scan.resume(client, consumer, give_up)

        with_fresh_clients(self._settings, read, give_up, on_status)
        foreign.log()
        return deduplicator

    def published(self, keys: AbstractSet[bytes], *, visible: bool) -> Published:
        """Return what the whole topic has of these bets; with `visible`, before open transactions only.

        Foreign records as in `deduplicator`. Raises as it does and as `TopicScan.read`.
        """
        found, foreign = Published(Deduplicator(), {}), Foreign()

        def take(message: Message) -> None:
            key = message.key()
            if isinstance(key, bytes) and key in keys:
                self._take_bet(message, found.deduplicator, foreign)
                found.received[key] = original_receipt(headers_of(message)) or _received(message)

        if keys:
            TopicScan(self._topics.bets.name, take, visible=visible, clock=self._clock).read(self._settings)
        foreign.log()
        found.deduplicator.connected()  # all that is known may be repeated
        return found

    def _take_bet(self, message: Message, deduplicator: Deduplicator, foreign: Foreign) -> None:
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


def _is_foreign(message: Message) -> bool:
    try:
        schema_id_of(message.value() or b"")
    except NotOurs:
        return True
    return False


def retired(checkpoint: Message) -> bool:
    """Return whether the feed of this checkpoint is over (`bridge checkpoint retire`)."""
    return RETIRED in dict(checkpoint.headers() or [])


def deduplicated_from(feed: FeedSettings, revision: float) -> float:
    """Return the oldest time of receipt, Unix seconds, that a replay from the revision may repeat."""
    margins = feed.safety_margin_seconds + feed.max_out_of_orderness_seconds + feed.max_clock_skew_seconds
    return revision - margins


def _reports_progress(on_status: Callable[[str], None]) -> OffsetProgress:
    return lambda done, of: on_status("")


def _received(message: Message) -> float:
    _, milliseconds = message.timestamp()
    return milliseconds / 1000

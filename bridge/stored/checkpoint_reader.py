"""Reads a feed's last committed checkpoint, and refuses a topic prefix that another feed uses."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Final, NamedTuple

from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient

from bridge import clock as instant
from bridge.avro.codec import reading, schema_id_of
from bridge.avro.schemas import Schema
from bridge.clock import Clock
from bridge.config import Settings
from bridge.errors import ForeignRecord, SchemaError, TopologyError
from bridge.formatting import format_utc
from bridge.kafka import admin
from bridge.kafka.reader import TopicScan, reports_progress, with_fresh_clients
from bridge.records.checkpoint import Checkpoint
from bridge.records.message import key_of, received_at, record_of
from bridge.records.topics import Topics

LOOKBACK = 1_000
"""The search for a feed's checkpoint starts this many records before the end of the topic."""
RETIRED: Final = "retired"
"""Header of the last checkpoint of a feed that is over: the feed that uses its topics now."""
SUCCEEDS: Final = "succeeds"
"""Header of the checkpoint with which another feed goes on then: the one that is over."""


class _Found(NamedTuple):
    """A feed: the offset of its first checkpoint in the part that was read, and its last one."""

    first: int
    last: Message


class CheckpointReader:
    """Reads the topic of checkpoints, `read_committed` and to its very end.

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
        self._topic = topics.checkpoints.name
        self._codec = reading("feed-checkpoint", schema_by_id)
        self._clock = clock

    def last(
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
        ignoring: str = "",
    ) -> bytes | None:
        """Raise TopologyError, naming the feed and the fix, if another feed takes precedence.

        If this feed has no checkpoint or is retired, any other feed that is not retired takes precedence.
        Otherwise one that has received something does over one that has not; of two that have, the one that
        wrote last; of two that have not, the one that wrote first. The feed `ignoring` does not count.
        Does not raise once `give_up` returns true. `visible` is as in `last`, and the same is returned:
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
            if name != ignoring.encode() and not retired(other.last) and self._goes_before(other, own)
        ]
        if rivals:
            raise TopologyError(self._of_another_feed(max(rivals, key=received_at), ignoring))
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
        `last`.
        """
        topic = self._topic
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
            admin.topic_id(client, topic)  # before the leaders are asked (decision 0009)
            while True:
                if scan is None:
                    [end] = admin.end_offsets(client, topic, 1, visible=visible)
                    start, progress = {0: max(0, end - lookback)}, reports_progress(on_status)
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
        return record_of(message, self._codec, Checkpoint.from_avro)

    def _is_checkpoint(self, message: Message) -> bool:
        try:
            key_of(message)
            self._codec.decode(message.value() or b"")
        except ForeignRecord:
            return False
        except SchemaError:  # of a newer version, or the registry has lost its schema
            return True
        return True

    def _of_another_feed(self, rival: Message, heir: str) -> str:
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
        found += f"{format_utc(round(received_at(rival)))}. Two feeds on one prefix lose bets: each takes "
        found += "the other's for its own. "
        if heir:
            return (
                f"{found}Before {self._settings.feed.name} is retired for {heir}, it must be settled which "
                f"feed stays. If {name} is over too, run `bridge checkpoint retire {name}` first. If it is "
                f'{name} that stays, set feed.name (BRIDGE_FEED__NAME) to it. See "Several feeds" in '
                "docs/scale.md."
            )
        return (
            f"{found}Give {self._settings.feed.name} a prefix of its own: topics.prefix "
            f"(BRIDGE_TOPICS__PREFIX). If {name} is over, for example because feed.name was changed, run "
            f'`bridge checkpoint retire {name}` first. See "Several feeds" in docs/scale.md.'
        )


def _is_foreign(message: Message) -> bool:
    try:
        schema_id_of(message.value() or b"")
    except ForeignRecord:
        return True
    return False


def retired(checkpoint: Message) -> bool:
    """Return whether the feed of this checkpoint is over (`bridge checkpoint retire`)."""
    return RETIRED in dict(checkpoint.headers() or [])

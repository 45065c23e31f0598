"""Reads the settled bets that were received between two times."""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, Final, NamedTuple, Self

from confluent_kafka import Message

from bridge.config import Settings, parse_time
from bridge.errors import SchemaError, SchemaNotFound, SettingsError, naming_option
from bridge.formatting import format_utc
from bridge.inspection.selection import Selection
from bridge.kafka import admin, clients
from bridge.kafka.errors import unanswered
from bridge.kafka.outage import outage
from bridge.kafka.partitioner import partition_of
from bridge.kafka.reader import IN_VAIN_SECONDS, Cursor
from bridge.reader import BETS, Bet
from bridge.reader.decoding import Decoder
from bridge.records import topics
from bridge.records.message import SkippedRecords
from bridge.registry import Registry

READ_AHEAD_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a partition that are held while its records wait for their turn."""
POLL_SECONDS: Final = 0.05
SAVE_SECONDS = 5.0
"""Time between two calls of `Replay.save`."""


class Window(NamedTuple):
    """An interval of receipt in Unix milliseconds, from `begin` to before `end`."""

    begin: int
    end: int | None
    """None for the end of the topic."""


def parse_window(begin: str | None, end: str | None, now: float) -> Window:
    """Return the window between two times, each an ISO 8601 time with its zone or an age such as `2h`.

    Without `begin` it starts with the topic, without `end` it ends with the topic; an age counts back from
    `now` (Unix seconds). Raises SettingsError for an invalid time, and unless the first is before the second.
    """
    first = 0.0 if begin is None else max(0.0, _seconds("--from", begin, now))
    last = now if end is None else _seconds("--to", end, now)
    if first >= last:
        raise SettingsError(
            f"--from {begin or format_utc(first)} is not before --to {end or 'now'}: "
            f"{format_utc(first)} and {format_utc(last)}. An age such as 2h counts back from now."
        )
    return Window(round(first * 1000), None if end is None else round(last * 1000))


def _seconds(option: str, text: str, now: float) -> float:
    with naming_option(option):
        return parse_time(text, now)


def identity(settings: Settings) -> dict[str, Any]:
    """Return what tells the topic of bets from another one of its name: id and partitions.

    Raises as `Replay`.
    """
    settings.require("kafka.bootstrap_servers")
    topic = topics.declare(settings).bets.name
    client = admin.require_topic(settings.kafka, topic)
    found = admin.topic_id(client, topic)
    return {"topic": topic, "id": found, "partitions": admin.partition_count(client, topic)}


class Replay:
    """The settled bets received in a window that match a selection, in order of receipt, `read_committed`.

    Ends at the last stable offsets of the start, before open transactions. Merges the partitions by time of
    receipt; the versions of a bet keep their order. Skips tombstones, and records not written by a bridge,
    whose number is logged. Of single bets, searches the partition of their keys, unless the selection says
    `everywhere`: a topic that got more partitions has older versions in others. To go on with an earlier
    replay of the same window and selection, give its `offsets` and `ends`. Close it after use.

    Raises TopologyError when the topic is not there, KafkaUnavailable when no broker answers.
    """

    def __init__(
        self,
        settings: Settings,
        window: Window,
        selection: Selection,
        *,
        offsets: Mapping[int, int] | None = None,
        ends: Sequence[int] | None = None,
        strict: bool = False,
    ) -> None:
        settings.require("kafka.bootstrap_servers", "registry.url")
        self._strict = strict
        self._window = window
        self._selection = selection
        self.topic = topics.declare(settings).bets.name
        client = admin.require_topic(settings.kafka, self.topic)
        count = admin.partition_count(client, self.topic)
        self.ends = list(ends or admin.end_offsets(client, self.topic, count, visible=True))
        """Where each partition ends."""
        self._consumer = clients.reader(settings.kafka, name=f"{settings.topics.prefix}.reader", prompt=True)
        try:
            clients.warm_up(self._consumer, self.topic)
            self._registry = Registry(settings.registry)
            if offsets is None:
                begins = admin.offsets_since(client, self.topic, window.begin / 1000, self.ends)
                offsets = dict(enumerate(begins))
        except BaseException:
            self._consumer.close()
            raise
        self.offsets = dict(offsets)
        """Partition → offset up to which all that is wanted was yielded."""
        self.save: Callable[[], object] = lambda: None
        """Called every few seconds while it is iterated, and before an `interrupt`: what was yielded has been
        taken, and lies before `offsets`."""
        self.on_progress: Callable[[str, int, int], object] = lambda *_: None
        """Called with the topic, the number of offsets passed and the total."""
        self._saved_at = time.monotonic()
        self._is_interrupted = False
        keys = selection.keys
        self.partitions = sorted(
            {partition_of(key, count) for key in keys} if keys and not selection.everywhere else range(count)
        )
        starts = [offsets.get(p, 0) for p in range(count)]
        stops = [self.ends[p] if p in self.partitions else starts[p] for p in range(count)]
        self._cursor = Cursor(self.topic, starts, stops)
        self._begun_at = sum(starts)
        # A record may come from a clock that was ahead, or from somebody else; brokers take none that is more
        # than an hour ahead of theirs. Two owners' clocks may differ: what the second wrote can be older than
        # what the first did. Not by offsets_since, which also finds the markers of commits: these may come
        # long after the receipt.
        ahead = topics.PUNCTUAL["message.timestamp.after.max.ms"]
        skew = 2000 * settings.feed.max_clock_skew_seconds
        self._late = inf if window.end is None else window.end + ahead + skew

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()
        self._registry.close()

    def __iter__(self) -> Iterator[Bet]:
        return (bet for bet, _ in self._found())

    def messages(self) -> Iterator[Message]:
        """Yield the messages of the same bets, as Kafka has them."""
        return (message for _, message in self._found())

    def _found(self) -> Iterator[tuple[Bet, Message]]:
        foreign = SkippedRecords()
        decoder = Decoder(BETS, self._registry)
        wants = self._wants()
        try:
            for message in heapq.merge(*(self._ahead(p, wants) for p in self.partitions), key=_received):
                self._pause()
                bet = None
                try:
                    bet = decoder.decode(message)
                except SchemaError as error:
                    if self._strict and isinstance(error, SchemaNotFound):
                        raise
                    foreign.add(error)
                self.offsets[message.partition() or 0] = (message.offset() or 0) + 1
                if isinstance(bet, Bet) and self._selection.wants(bet):
                    yield bet, message
        finally:
            self.on_progress(self.topic, 1, 1)
            foreign.log()

    def interrupt(self) -> None:
        """Have the iteration `save` and raise KeyboardInterrupt, for the handler of a signal."""
        self._is_interrupted = True

    def _pause(self) -> None:
        if self._is_interrupted or time.monotonic() - self._saved_at >= SAVE_SECONDS:
            self.save()
            self._saved_at = time.monotonic()
        if self._is_interrupted:
            raise KeyboardInterrupt

    def _wants(self) -> Callable[[Message], bool]:
        """Return what tells, before anything is decoded, whether a message may be wanted."""
        begin, end, keys = self._window.begin, self._window.end, self._selection.keys

        def wants(message: Message) -> bool:
            if keys is not None and message.key() not in keys:
                return False
            at = _received(message)
            return begin <= at and (end is None or at < end) and message.value() is not None

        return wants

    def _ahead(self, partition: int, wants: Callable[[Message], bool]) -> Iterator[Message]:
        """Yield the wanted messages of a partition, up to the first one received too late.

        All partitions share one consumer, which reads ahead in one at a time: memory and connections are
        bounded however far the partitions are apart.
        """
        cursor, late = self._cursor, self._late
        place, ends = cursor.places[partition], cursor.ends
        while place.offset < ends[partition]:
            self._consumer.assign([place])
            ahead: list[Message] = []
            size, heard_at = 0, time.monotonic()
            while place.offset < ends[partition] and size < READ_AHEAD_BYTES:
                if not ahead:
                    self.offsets[partition] = place.offset
                self._pause()
                done, of = cursor.reached - self._begun_at, int(sum(ends)) - self._begun_at
                self.on_progress(self.topic, done, of)
                messages = self._consumer.consume(num_messages=1000, timeout=POLL_SECONDS)
                if messages or outage.throttled:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at > IN_VAIN_SECONDS:
                    raise unanswered(f"reading {self.topic}")
                for message in cursor.records(messages):
                    if late != inf and _received(message) >= late:
                        ends[partition] = place.offset
                    elif wants(message):
                        ahead.append(message)
                        size += len(message)
            self._consumer.unassign()  # or it would go on fetching what the next turn discards
            yield from ahead
            self.offsets[partition] = place.offset


def _received(message: Message) -> int:
    return message.timestamp()[1]

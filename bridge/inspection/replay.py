"""Reads the settled bets that were received between two times."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import Any, NamedTuple, Self

from confluent_kafka import Message

from bridge.avro.schemas import Fields
from bridge.config import Settings, parse_time
from bridge.errors import SchemaError, SchemaNotFound, SettingsError, naming_option
from bridge.formatting import format_utc
from bridge.inspection.merging import Merging
from bridge.inspection.selection import Selection
from bridge.kafka import admin
from bridge.kafka.partitioner import partition_of
from bridge.reader import BETS, Bet, Removed
from bridge.reader.decoding import MessageDecoder
from bridge.reader.source import Source
from bridge.records import topics
from bridge.records.message import SkippedRecords
from bridge.registry import Registry

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
        self._selection = selection
        self.topic = topics.declare(settings).bets.name
        client = admin.require_topic(settings.kafka, self.topic)
        count = admin.partition_count(client, self.topic)
        self.ends = list(ends or admin.end_offsets(client, self.topic, count, visible=True))
        """Where each partition ends."""
        if offsets is None:
            begins = admin.offsets_since(client, self.topic, window.begin / 1000, self.ends)
            offsets = dict(enumerate(begins))
        self.offsets = {p: offsets.get(p, 0) for p in range(count)}
        """Partition → offset up to which all that is wanted was yielded."""
        keys = selection.keys
        partitions = {partition_of(key, count) for key in keys} if keys and not selection.everywhere else None
        stops = {
            p: end if partitions is None or p in partitions else self.offsets[p]
            for p, end in enumerate(self.ends)
        }
        self._source = Source(settings, BETS.name, self.offsets, stops)
        end = inf if window.end is None else window.end
        self._merging = Merging(self._source, window.begin, end, _late(settings, end), keys)
        self._registry = Registry(settings.registry)
        self.codec = self._registry.codec("settled-bet")
        """Reads the records."""
        self._decoder = MessageDecoder(BETS, self._registry)
        self.save: Callable[[], object] = lambda: None
        """Called every few seconds while it is iterated, and before an `interrupt`: what was yielded has been
        taken, and lies before `offsets`."""
        self.save_seconds = SAVE_SECONDS
        self.on_progress: Callable[[str, int, int], object] = lambda *_: None
        """Called with the topic, the number of offsets passed and the total."""
        self._foreign = SkippedRecords()
        self._saved_at = time.monotonic()
        self._is_interrupted = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._source.close()
        self._registry.close()

    def __iter__(self) -> Iterator[Bet]:
        for record in self.changes():
            if isinstance(record, Removed):
                self._foreign.tombstones += 1
            else:
                yield record

    def changes(self) -> Iterator[Bet | Removed]:
        """Yield the same with tombstones, if the selection can tell whose they are: by key."""
        return (record for record, _ in self._found())

    def messages(self) -> Iterator[Message]:
        """Yield the messages of `changes`, as Kafka has them."""
        return (message for _, message in self._found())

    def values(self) -> Iterator[list[Message]]:
        """Yield the same, many at a time, without decoding any, unless the selection asks for their content.

        Those that no bridge has written are among them then. `offsets` lie after what was yielded.
        """
        if not self._selection.is_by_key:
            yield from ([message] for message in self.messages())
            return
        for messages in self._merged():
            last_ones = {message.partition() or 0: message for message in messages}
            for partition, message in last_ones.items():
                self.offsets[partition] = (message.offset() or 0) + 1
            bets = [message for message in messages if message.value() is not None]
            self._foreign.tombstones += len(messages) - len(bets)
            yield bets

    def bet(self, message: Message) -> Bet:
        """Return the bet in a message that can be read."""
        found = self._decoder.decode(message)
        assert isinstance(found, Bet)
        return found

    def read_only(self, fields: Fields) -> None:
        """Yield bets with only these fields, among them those that a selection asks for."""
        self._decoder = MessageDecoder(BETS, self._registry, fields)

    def leave_out(self, error: SchemaError) -> None:
        """Count a message that no bridge has written. Raises the error if the registry lacks a schema."""
        if self._strict and isinstance(error, SchemaNotFound):
            raise error
        self._foreign.add(error)

    def _found(self) -> Iterator[tuple[Bet | Removed, Message]]:
        selection = None if self._selection.is_by_key else self._selection
        for messages in self._merged():
            for message in messages:
                if self._is_interrupted:
                    self._pause()
                record = None
                try:
                    record = self._decoder.decode(message)
                except SchemaError as error:
                    self.leave_out(error)
                self.offsets[message.partition() or 0] = (message.offset() or 0) + 1
                if isinstance(record, Removed) and selection is not None:
                    self._foreign.tombstones += 1
                elif record and (selection is None or (isinstance(record, Bet) and selection.wants(record))):
                    yield record, message

    def interrupt(self) -> None:
        """Have the iteration `save` and raise KeyboardInterrupt, for the handler of a signal."""
        self._is_interrupted = True

    def _pause(self) -> None:
        if self._is_interrupted or time.monotonic() - self._saved_at >= self.save_seconds:
            self.save()
            self._saved_at = time.monotonic()
        if self._is_interrupted:
            raise KeyboardInterrupt

    def _merged(self) -> Iterator[list[Message]]:
        """Yield the wanted messages in order of receipt, many at a time."""
        try:
            for messages in self._merging.batches():
                yield messages
                self.offsets |= self._merging.passed()
                self._pause()
                self.on_progress(self.topic, *self._source.progress)
        finally:
            self.on_progress(self.topic, 1, 1)
            self._foreign.log()


def _late(settings: Settings, end: float) -> float:
    """Return the time from which on no record of a partition is from before the end; Unix milliseconds.

    A record may come from a clock that was ahead, or from somebody else; brokers take none that is more than
    an hour ahead of theirs. Two owners' clocks may differ: what the second wrote can be older than what the
    first did. Not by offsets_since, which also finds the markers of commits: these may come long after the
    receipt.
    """
    ahead = topics.PUNCTUAL["message.timestamp.after.max.ms"]
    skew = 2000 * settings.feed.max_clock_skew_seconds
    return end + ahead + skew

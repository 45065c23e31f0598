"""Compares the topics in Kafka with those that a checkpoint speaks of, and says what is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import NamedTuple

from confluent_kafka import Message
from confluent_kafka.admin import AdminClient

from bridge import clock as instant
from bridge.avro.codec import reading
from bridge.avro.schemas import Schema
from bridge.clock import MICROS, Clock
from bridge.config import Settings
from bridge.errors import SchemaError, TopologyError
from bridge.formatting import format_utc
from bridge.kafka import admin
from bridge.kafka.admin import TopicSeen
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.partitioner import partition_of
from bridge.kafka.reader import TopicScan, with_fresh_clients
from bridge.log import get
from bridge.records.checkpoint import Checkpoint, Move
from bridge.records.message import received_at
from bridge.records.reach import TopicReach, as_seen, deleted, difference, same_kind
from bridge.records.topics import DAY_MS, Topics, refuse_lost_position
from bridge.stored.restore import deduplicated_from

TAIL_RECORDS = 1_000
"""The last record of a partition is looked for among as many offsets; the others are markers."""
FITTING = 0.9
"""The least share of keys that lie where they belong: records of others may be among them."""
BEFORE_SECONDS = 600.0
"""How much of what was received last shows how far the feed had come."""


class Lost(NamedTuple):
    """What the topics lack of what a checkpoint covers."""

    text: str
    revision: int
    """Everything that the provider published before it is there, as far as anybody knows; 0 if nothing is."""


class ReachReader:
    """Reads the topics of a feed. `schema_by_id` returns the schemas of bets. All calls block.

    `confirm` gets the id with which bets were written last, and raises if our own cannot be relied on.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        schema_by_id: Callable[[int], Schema],
        clock: Clock = instant.now,
        confirm: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._clock = clock
        self._confirm = confirm
        self._settings = settings
        self._topics = topics
        self._times = reading("settled-bet", schema_by_id, {"settlementTime": {}})

    def compare(
        self, client: AdminClient, checkpoint: Checkpoint | None, *, final: bool = False
    ) -> tuple[tuple[TopicReach, ...], Lost | None]:
        """Return the topics as they are now, with what is known of them, and what they lack.

        What no checkpoint speaks of is taken as it is. A copy that has all is as good as the original. Raises
        KafkaUnavailable also for a topic that does not exist, or not yet; with `final`, one that is known and
        not there is gone. Raises SchemaNotFound if the registry is not that of the bets.
        """
        known = () if checkpoint is None else self._known(checkpoint)
        reaches, texts, whole = list[TopicReach](), list[str](), list[float | None]()
        for name, found in admin.topics_seen(
            client, [topic.name for topic in self._topics.of_messages()]
        ).items():
            reach = same_kind(name, known)
            if found is None and not (final and reach):
                raise KafkaUnavailable(f"{name} does not exist, or not yet")
            seen = found or TopicSeen("", ())
            if name == self._topics.bets.name and (reach is None or reach.id != seen.id):
                seen = self._used(name, seen)
            text = "" if reach is None else difference(reach, name, seen if found else None)
            until = self._whole_until(client, reach, name, seen) if reach and text else []
            if reach is None or until:
                reaches.append(as_seen(name, seen))
            else:
                reaches.append(_going_on(reach, name, seen, text))
            if until:
                texts.append(text)
                whole += until if name != self._topics.gaps.name else []
        if checkpoint is None:
            return tuple(reaches), None
        bets = same_kind(self._topics.bets.name, known)
        is_other = bets is None or bets.id != reaches[0].id
        if is_other and not texts and (missing := self._newest_is_missing(checkpoint)):
            texts.append(missing)
            whole.append(None)
        if not texts:
            return tuple(reaches), None
        revision = checkpoint.revision
        if whole:
            revision = min(revision, self._published_by(whole, checkpoint.moved))
        return tuple(reaches), Lost("; ".join(texts), revision)

    def _known(self, checkpoint: Checkpoint) -> tuple[TopicReach, ...]:
        if checkpoint.bets_schema is not None:
            self._confirm(checkpoint.bets_schema)
            self._times.writers.must_be_ours(checkpoint.bets_schema)
        return checkpoint.topics

    def check(
        self, client: AdminClient, checkpoint: Checkpoint | None, *, final: bool = True
    ) -> tuple[TopicReach, ...]:
        """Return the topics with which a feed goes on. Raises TopologyError as `agree`, and as `compare`."""
        if checkpoint is None:
            refuse_lost_position(client, self._settings, self._topics, was_read=True)
        reaches, lost = self.compare(client, checkpoint, final=final)
        if lost is not None:
            raise TopologyError(lost_text(self._settings, lost, self._clock().wall))
        return reaches

    def agree(
        self, checkpoint: Checkpoint | None, give_up: Callable[[], bool], on_status: Callable[[str], None]
    ) -> tuple[TopicReach, ...]:
        """Return the topics with which a feed goes on; none of them once `give_up` returns true.

        Retries while Kafka is unavailable; `on_status` receives the reason of each delay. Raises
        TopologyError, with what to do, if they lack something, or nobody knows what.
        """
        found: list[tuple[TopicReach, ...]] = []

        with_fresh_clients(
            self._settings,
            lambda client, _: found.append(self.check(client, checkpoint, final=False)),
            give_up,
            on_status,
        )
        return found[-1] if found else ()

    def _used(self, name: str, seen: TopicSeen) -> TopicSeen:
        """Return a topic without the partitions that were added: empty, by where the keys of the others lie.

        Keys would move to them. No checkpoint knows how many there were.
        """
        places, found = [number for number, end in enumerate(seen.ends) if end], list[tuple[bytes, int]]()
        counts = range(len(seen.ends), max(places, default=-1), -1)
        if len(counts) > 1 and places:
            starts = {number: max(0, seen.ends[number] - TAIL_RECORDS) for number in places}
            ends = {number: seen.ends[number] for number in places}
            TopicScan(
                name,
                lambda message: found.append((message.key() or b"", message.partition() or 0)),
                start=starts,
                ends=ends,
            ).read(self._settings)
        for count in counts:
            fitting = sum(partition_of(key, count) == number for key, number in found)
            if fitting >= FITTING * len(found):
                return seen._replace(ends=seen.ends[:count], starts=seen.starts[:count])
        return seen

    def _whole_until(
        self, client: AdminClient, reach: TopicReach, name: str, seen: TopicSeen
    ) -> list[float | None]:
        """Return when the last record was received that each partition which lacks some has; None if none.

        Offsets of a copy are others: it lacks records unless it has one as new as the newest.
        """
        if len(seen.ends) != len(reach.partitions) or deleted(reach, seen):
            return [None]  # its keys lie elsewhere, or nobody knows what it had
        is_copy = bool(reach.id and seen.id and reach.id != seen.id)
        found = []
        for number, (partition, end) in enumerate(zip(reach.partitions, seen.ends, strict=True)):
            if end >= partition.end and not (is_copy and partition.end):
                continue
            newest, last = partition.newest, None
            if is_copy and newest is not None:
                last = self._last(
                    name, number, admin.offsets_since(client, name, newest, seen.ends)[number], end
                )
            if last is None or newest is None or last < newest:
                found.append(self._last(name, number, max(0, end - TAIL_RECORDS), end))
        return found

    def _newest_is_missing(self, checkpoint: Checkpoint) -> str:
        """Return why bets that no checkpoint knows by their id are not whole: the newest is not there.

        Their timestamps alone do not show it: a copy may have new ones. "" also where compaction may have
        removed that bet.
        """
        newest, lag = checkpoint.newest, self._settings.topics.min_compaction_lag_days * DAY_MS / 1000
        if newest is None or newest < self._clock().wall - lag:
            return ""
        name, found = self._topics.bets.name, False

        def take(message: Message) -> None:
            nonlocal found
            if (value := message.value()) is not None and not found:
                with suppress(SchemaError):
                    found = abs(self._settled_at(value) - newest) < 1 / MICROS

        # It was received after it was settled.
        TopicScan(name, take, start=newest - self._settings.feed.max_clock_skew_seconds).read(self._settings)
        return "" if found else f"{name} lacks the bet settled at {format_utc(newest)}, the newest published"

    def _settled_at(self, value: bytes) -> float:
        """Return when a bet was settled, Unix seconds. Raises SchemaError."""
        return float(self._times.decode(value)["settlementTime"] / MICROS)

    def _last(self, name: str, number: int, start: int, end: int) -> float | None:
        """Return the newest time of receipt in a part of a partition; None if it has no record."""
        found: list[float] = []
        scan = TopicScan(
            name,
            lambda message: found.append(received_at(message)),
            start={number: start},
            ends={number: end},
        )
        if start < end:
            scan.read(self._settings)
        return max(found, default=None)

    def _published_by(self, whole: Iterable[float | None], moved: Move | None) -> int:
        """Return the revision before which everything was received by the earliest of these times.

        Nothing is published before it is settled, and the feed is ordered: once a bet settled at t had been
        received, everything published before t had. That order began anew where an operator moved the
        position: what came before says nothing of what was to come again.
        """
        times = list(whole)
        if None in times:
            return 0
        moment = min(time for time in times if time is not None)
        anew = moved if moved is not None and moved.at <= moment else None
        since = max(0.0, moment - BEFORE_SECONDS, anew.at if anew else 0.0)
        settled: list[float] = []

        def take(message: Message) -> None:
            value, at = message.value(), received_at(message)
            if value is not None and since <= at <= moment:
                with suppress(SchemaError):
                    settled.append(self._settled_at(value))
                    if settled[-1] > at:
                        del settled[-1]

        TopicScan(self._topics.bets.name, take, start=since).read(self._settings)
        if not settled:
            return anew.end if anew else 0
        return max(0, int(deduplicated_from(self._settings.feed, max(settled))))


def _going_on(reach: TopicReach, name: str, seen: TopicSeen, text: str) -> TopicReach:
    """Return what is known of a topic that has all; `text` is how it differs, as a copy."""
    partitions = reach.partitions
    if text:
        pairs = zip(as_seen(name, seen).partitions, reach.partitions, strict=False)
        partitions = tuple(it._replace(newest=known.newest) for it, known in pairs)
        get().warning("topic is a copy that has all", topic=name, why=text)
    elif len(seen.ends) > len(partitions):
        get().warning(
            "partitions were added, and stay empty: keys would move", topic=name, used=len(partitions)
        )
    return TopicReach(name, seen.id, partitions)


def lost_text(settings: Settings, lost: Lost, now: float) -> str:
    """Return what is lost, and what to type; `now` in Unix seconds."""
    memory = settings.limits.memory_seconds
    oldest = int(now - memory + max(memory / 72, 300))
    what = "what was published" + (f" since {format_utc(lost.revision)}" if lost.revision else "")
    return (
        f"{lost.text}. The checkpoint of {settings.feed.name} says that more is there: {what} may be missing "
        "from it. Put back the topic that was written; or go on with this one: `bridge checkpoint set "
        f"--revision {max(lost.revision, oldest)} --reason …` declares the gap, and what the provider still "
        "has since then is received again"
    )

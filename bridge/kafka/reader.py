"""Reads topics from a start to an end, with retries; `read_committed` unless asked otherwise.

A client that was connected before an outage may keep asking the former leader of a partition. So each attempt
creates new clients, and a client that receives nothing before the end is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from math import ceil
from typing import TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge import clock as instant
from bridge.clock import Clock
from bridge.config import Settings
from bridge.errors import TopologyError
from bridge.formatting import format_duration, format_utc
from bridge.kafka import admin, clients
from bridge.kafka.blocking import Clients
from bridge.kafka.cursor import Cursor
from bridge.kafka.errors import KafkaUnavailable, denied, lacks_right
from bridge.kafka.open_transactions import RecordPlace, first_times, what_to_do
from bridge.kafka.outage import outage_of
from bridge.log import get
from bridge.registry import RegistryUnavailable

RETRY_SECONDS = 0.5
ASK_SECONDS = 10.0
CONSUME_SECONDS = 0.02
"""How long a client waits for a full batch: it does so even where only a few records are left."""
STALL_SECONDS = 30.0
"""A client that receives nothing for this long is replaced."""
IN_VAIN_SECONDS = 60.0
"""A command gives up when nothing comes for this long: one answer may be megabytes, and the link thin."""
MAX_STALL_FACTOR = 10
"""Upper bound, as a multiple of STALL_SECONDS, for clients that may be skipping aborted records."""

OffsetProgress: TypeAlias = Callable[[int, int], None]
"""Called with the number of offsets passed and the total."""


class Stalled(KafkaUnavailable):
    """A reader receives nothing although it has not reached its end. The text gives the likely cause.

    `hidden` is what an open transaction hides, if that is the cause.
    """

    def __init__(self, reason: str, hidden: tuple[RecordPlace, ...] = ()) -> None:
        super().__init__(reason)
        self.hidden = hidden


def reports_progress(on_status: Callable[[str], None], topic: str = "") -> OffsetProgress:
    """Return a progress of a scan that clears the status, or says how far the topic is read, in tenths."""
    return lambda done, of: on_status(
        f"reading {topic}: {done * 10 // max(of, 1) * 10} % are done" if topic else ""
    )


def with_fresh_clients(
    settings: Settings,
    read: Callable[[AdminClient, Consumer], object],
    give_up: Callable[[], bool],
    on_status: Callable[[str], None] = lambda _: None,
    *,
    committed: bool = True,
) -> str:
    """Call `read` until it succeeds, with new clients each time; return early when `give_up` says so.

    It is retried while Kafka or the registry is unavailable. `on_status` receives the error of each attempt.
    Returns that of the last one, "" after a success.
    """
    # Not the exception itself: its traceback would keep the clients alive.
    reason, stalled = "", False
    while not give_up():
        if stalled:
            get().warning("reader stalled, recreating Kafka clients", reason=reason)
        attempt, hidden = None, tuple[RecordPlace, ...]()
        try:
            attempt = Clients(settings, committed=committed)
            read(attempt.admin, attempt.consumer)
            return ""
        except (KafkaUnavailable, RegistryUnavailable, KafkaException) as error:
            reason, stalled = str(error), isinstance(error, Stalled)
            if not isinstance(error, RegistryUnavailable):
                reason = outage_of(settings.kafka).explain(error.args[0])
            hidden = error.hidden if isinstance(error, Stalled) else ()
            if not hidden:
                on_status(reason)
        finally:
            if attempt is not None:
                attempt.close()
        # Not before the exception is handled: the client would keep it for ever (decision 0009).
        if hidden:
            reason += explain_hidden(settings, hidden)
            on_status(reason)
        get().debug("read failed, retrying", error=reason)
        time.sleep(RETRY_SECONDS)
    return reason


def explain_hidden(settings: Settings, places: Sequence[RecordPlace]) -> str:
    """Return since when an open transaction hides records, as far as known, and how to find its producer."""
    times = first_times(settings, places)
    oldest = min(times, key=times.__getitem__, default=places[0])
    since = f", since {format_utc(round(times[oldest]))}" if times else ""
    others = [place for place in places if place != oldest]
    return f"{since}. {what_to_do(settings.kafka, [oldest, *others])}"


def ends_of(settings: Settings, topic: str) -> dict[int, int]:
    """Return the high watermark of each partition. Raises as `admin.high_watermarks`."""
    return admin.high_watermarks(clients.admin(settings.kafka), topic)


def cursor_over(topic: str, starts: Sequence[int], ends: Sequence[float]) -> Cursor:
    """Return a cursor over all partitions of a topic; an end is `inf` for never."""
    places = [TopicPartition(topic, partition, offset) for partition, offset in enumerate(starts)]
    return Cursor(places, ends, KafkaError._PARTITION_EOF, partial(_refuse, topic))


def _refuse(topic: str, error: KafkaError) -> None:
    """Raise TopologyError for an error that does not pass; ignore any other."""
    if error.fatal() or lacks_right(error):
        group = f"{topic.rpartition('.')[0]}.reader"  # topics and group share the prefix
        rights = f"Read the topic {topic}", f"Describe the group {group}"
        text = denied(error, *rights) if lacks_right(error) else error.str()
        raise TopologyError(f"reading {topic}: {text}")


@dataclass
class TopicScan:
    """Passes each record of a topic to `take`, once, in as many attempts as it takes.

    Starts at the beginning, at the offsets in `start`, or at the records since that time (Unix seconds), but
    before the last `least` offsets, which are shared out among the partitions.
    Stops at `ends`, or at the current high watermarks, and waits for open transactions below them. With
    `visible`, stops at the last stable offsets instead, before open transactions.
    """

    topic: str
    take: Callable[[Message], None]
    _: KW_ONLY
    start: Mapping[int, int] | float | None = None
    least: int = 0
    ends: Mapping[int, int] | None = None
    visible: bool = False
    committed: bool = True
    """Whether `read` leaves out what was aborted, or is not committed yet."""
    progress: OffsetProgress | None = None
    stall_seconds: float = STALL_SECONDS
    """Time without progress after which the client is replaced."""
    clock: Clock = instant.now
    cursor: Cursor | None = field(default=None, init=False)
    """None until the ends are known."""
    done: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.moved_at = self.clock().monotonic
        """Monotonic time of the last progress, or of the start."""
        self._least_stall_seconds = self.stall_seconds
        self._begun_at = self._reached = 0
        """Sums of offsets."""

    def read(self, settings: Settings) -> dict[int, int]:
        """Read to the end; return the offset after the last record of each partition.

        A missing topic has no records, and `{}` is returned. Raises KafkaUnavailable when nothing has come
        for `stall_seconds`, or twice that; TopologyError when a right is missing or the topic ends before
        `ends`; and what `take` raises.
        """
        patience = self.stall_seconds

        def attempt(client: AdminClient, consumer: Consumer) -> None:
            if self.cursor is not None or admin.topic_id(client, self.topic, ASK_SECONDS) is not None:
                self.resume(client, consumer, lambda: False)
            else:
                self.done = True

        reason = with_fresh_clients(
            settings,
            attempt,
            lambda: self.clock().monotonic - self.moved_at > patience,
            committed=self.committed,
        )
        if not self.done:
            raise KafkaUnavailable(f"{self.topic}: nothing came for {format_duration(patience)}: {reason}")
        return {} if self.cursor is None else {p: int(end) for p, end in enumerate(self.cursor.ends)}

    def resume(self, client: AdminClient, consumer: Consumer, give_up: Callable[[], bool]) -> None:
        """Read to the end, unless `give_up`, asked every CONSUME_SECONDS or so, says so first.

        Raises Stalled when nothing comes for `stall_seconds`, KafkaUnavailable, TopologyError (also when the
        topic has lost its end), and what `take` raises.
        """
        if self.cursor is None:
            self.cursor = self._set_out(client)
            self._begun_at = self._reached = self.cursor.reached
        cursor, take, begun = self.cursor, self.take, self.clock().monotonic
        if left := cursor.left:
            clients.warm_up(consumer, self.topic)
            consumer.assign(left)
        while cursor.left:
            self._check_progress(client, cursor, begun)
            if give_up():
                return
            for message in cursor.records(consumer.consume(num_messages=2000, timeout=CONSUME_SECONDS)):
                take(message)
        consumer.unassign()  # or it would go on fetching while another topic is read
        self.done = True
        self._report(cursor, cursor.reached)

    def _set_out(self, client: AdminClient) -> Cursor:
        count = admin.partition_count(client, self.topic)
        if self.ends is not None:
            ends = [self.ends.get(p, 0) for p in range(count)]
        else:
            ends = admin.end_offsets(client, self.topic, count, visible=self.visible)
        if isinstance(self.start, int | float):
            share = ceil(self.least / count)
            since = admin.offsets_since(client, self.topic, self.start, ends)
            starts = [max(0, min(found, end - share)) for found, end in zip(since, ends, strict=True)]
        else:
            given = self.start or {}
            # An offset beyond the end belongs to an earlier topic of that name.
            starts = [o if (o := given.get(p, 0)) <= ends[p] else 0 for p in range(count)]
        return cursor_over(self.topic, starts, ends)

    def _check_progress(self, client: AdminClient, cursor: Cursor, begun: float) -> None:
        """Raise Stalled when nothing has come for too long in the attempt that has `begun`."""
        now, reached = self.clock().monotonic, cursor.reached
        if reached != self._reached:
            self._reached, self.moved_at, self.stall_seconds = reached, now, self._least_stall_seconds
            self._report(cursor, reached)
        elif outage_of(client).throttled:
            self.moved_at = now
        elif now - max(self.moved_at, begun) > self.stall_seconds:
            raise self._stalled(client, cursor)

    def _stalled(self, client: AdminClient, cursor: Cursor) -> Stalled:
        """Ask the broker for the cause. Raises TopologyError where waiting is in vain."""
        try:
            admin.topic_id(client, self.topic)  # before the leaders are asked (decision 0009)
            stable = admin.end_offsets(client, self.topic, len(cursor.ends), visible=True)
            written = admin.end_offsets(client, self.topic, len(cursor.ends))
        except KafkaUnavailable as error:
            return Stalled(str(error))
        for partition, (end, before) in enumerate(zip(written, cursor.ends, strict=True)):
            if end < before:
                raise TopologyError(
                    f"{self.topic}: partition {partition} ends at offset {end}, and was to be read to "
                    f"{before}: records were lost, or the topic was recreated"
                )
        if any(place.offset < stable[place.partition] for place in cursor.left):
            # Or the client is skipping aborted records, which takes that long.
            least = self._least_stall_seconds
            self.stall_seconds = min(self.stall_seconds + least, MAX_STALL_FACTOR * least)
            return Stalled(f"the broker has more of {self.topic} than its client gets")
        hidden = tuple(RecordPlace(self.topic, it.partition, stable[it.partition]) for it in cursor.left)
        where = ", ".join(f"partition {place.partition} from offset {place.offset}" for place in hidden)
        return Stalled(f"an open transaction hides what is in {self.topic}: {where}", hidden)

    def _report(self, cursor: Cursor, reached: int) -> None:
        if self.progress is not None:
            self.progress(reached - self._begun_at, int(sum(cursor.ends)) - self._begun_at)

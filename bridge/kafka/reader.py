"""Reads topics from a start to an end, or for ever, with retries; `read_committed` unless asked otherwise.

A client that was connected before an outage may keep asking the former leader of a partition. So each attempt
creates new clients, and a client that receives nothing before the end is replaced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from math import ceil, inf
from typing import TypeAlias, TypeVar

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
from bridge.kafka.errors import BlockedByOpenTransaction, KafkaUnavailable, Stalled, denied, lacks_right
from bridge.kafka.open_transactions import RecordPlace, first_times, what_to_do
from bridge.kafka.outage import outage
from bridge.kafka.topic_watch import POLL_SECONDS, TopicWatch
from bridge.log import get
from bridge.registry import RegistryUnavailable

T = TypeVar("T")

RETRY_SECONDS = 0.5
ASK_SECONDS = 10.0
STALL_SECONDS = 30.0
"""A client that receives nothing for this long is replaced."""
IN_VAIN_SECONDS = 60.0
"""A command gives up when nothing comes for this long: one answer may be megabytes, and the link thin."""
STALL_SECONDS = 30.0
"""A client that receives nothing for this long is replaced."""
IN_VAIN_SECONDS = 60.0
"""A command gives up when nothing comes for this long: one answer may be megabytes, and the link thin."""
FOLLOW_SECONDS = 0.2
"""How long a client that follows a topic waits for a full batch."""
STALL_SECONDS = 30.0
"""A client that receives nothing for this long is replaced."""
IN_VAIN_SECONDS = 60.0
"""A command gives up when nothing comes for this long: one answer may be megabytes, and the link thin."""
FOLLOW_SECONDS = 0.2
"""How long a client that follows a topic waits for a full batch."""
LOOK_SECONDS = 1.0
"""Interval between checks whether a topic was recreated; its first records may be read twice."""
MAX_STALL_FACTOR = 10
"""Upper bound, as a multiple of STALL_SECONDS, for clients that may be skipping aborted records."""

OffsetProgress: TypeAlias = Callable[[int, int], object]
"""Called with the number of offsets passed and the total."""


def reading_clients(settings: Settings, *, committed: bool = True, prompt: bool = True) -> Clients:
    """Create the clients of one attempt. Raises as `clients.reader`."""
    name = f"{settings.topics.prefix}.reader"
    reader = clients.reader(settings.kafka, name=name, prompt=prompt, committed=committed)
    return Clients(clients.admin(settings.kafka), reader)


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
) -> str:
    """Call `read` as `_attempts` does, and return the same."""

    def call(client: AdminClient, consumer: Consumer) -> Iterable[None]:
        read(client, consumer)
        return ()

    attempts = _attempts(partial(reading_clients, settings), settings, call, give_up, on_status)
    while True:
        try:
            next(attempts)
        except StopIteration as end:
            return str(end.value)


def _attempts(
    connect: Callable[[], Clients],
    settings: Settings,
    read: Callable[[AdminClient, Consumer], Iterable[T]],
    give_up: Callable[[], bool],
    on_status: Callable[[str], None] = lambda _: None,
) -> Generator[T, None, str]:
    """Yield what `read` yields, until it succeeds, with new clients each time; end when `give_up` says so.

    It is retried while Kafka or the registry is unavailable. `on_status` receives the error of each attempt.
    Returns that of the last one, "" after a success.
    """
    # Not the exception itself: its traceback would keep the clients alive.
    reason, stalled = "", False
    while not give_up():
        if stalled:
            get().warning("reader stalled, recreating Kafka clients", reason=reason)
        attempt, hidden = None, list[RecordPlace]()
        try:
            attempt = connect()
            yield from read(attempt.admin, attempt.consumer)
            return ""
        except (KafkaUnavailable, RegistryUnavailable, KafkaException) as error:
            reason, stalled = str(error), isinstance(error, Stalled)
            if not isinstance(error, RegistryUnavailable):
                reason = outage.explain(error.args[0])
            if isinstance(error, BlockedByOpenTransaction):
                hidden = [RecordPlace(*place) for place in error.places]
            else:
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


class _Advance:
    """How far a scan has come, in sums of offsets, and whether it still does."""

    def __init__(self, seconds: float, now: float) -> None:
        self._least = self._seconds = seconds
        self.moved_at = now
        """Monotonic time of the last progress, or of the start."""
        self.begun_at = self._reached = 0

    def begin(self, reached: int) -> None:
        """Take the offsets at which a scan begins."""
        self.begun_at = self._reached = reached

    def has_moved(self, reached: int, now: float) -> bool:
        """Return whether offsets were passed since the last call."""
        if reached == self._reached:
            return False
        self._reached, self.moved_at, self._seconds = reached, now, self._least
        return True

    def is_stalled(self, now: float, begun: float) -> bool:
        """Return whether nothing has come for too long in the attempt that has `begun`."""
        return now - max(self.moved_at, begun) > self._seconds

    def wait_longer(self) -> None:
        """Give the next client more time: it may be skipping aborted records."""
        self._seconds = min(self._seconds + self._least, MAX_STALL_FACTOR * self._least)


def _pass_by(_: Message) -> None:
    """Take nothing."""


@dataclass
class TopicScan:
    """Reads each record of a topic once, in as many attempts as it takes.

    Starts at the beginning, at the offsets in `start`, or at the records since that time (Unix seconds), but
    before the last `least` offsets, which are shared out among the partitions.
    Stops at `ends`, or at the current high watermarks, and waits for open transactions below them. With
    `visible`, stops at the last stable offsets instead, before open transactions. With a `watch` that
    follows, it stops never.
    `read` and `resume` pass the records to `take`, `polls` yields them.
    """

    topic: str
    take: Callable[[Message], None] = _pass_by
    _: KW_ONLY
    start: Mapping[int, int] | float | None = None
    least: int = 0
    ends: Mapping[int, int] | None = None
    visible: bool = False
    committed: bool = True
    """Whether what was aborted, or is not committed yet, is left out: with clients of its own."""
    watch: TopicWatch | None = None
    progress: OffsetProgress | None = None
    stall_seconds: float = STALL_SECONDS
    """Time without progress after which the client is replaced."""
    clock: Clock = instant.now
    cursor: Cursor | None = field(default=None, init=False)
    """None until the ends are known."""

    def __post_init__(self) -> None:
        self._advance = _Advance(self.stall_seconds, self.clock().monotonic)
        self._held: dict[int, TopicPartition] = {}
        self._consumer: Consumer | None = None

    @property
    def done(self) -> bool:
        """Whether the end was reached."""
        return self.cursor is not None and not self.cursor.left

    @property
    def offsets(self) -> dict[int, int]:
        """What is read next of each partition; empty until the ends are known."""
        return {place.partition: place.offset for place in self.cursor.places} if self.cursor else {}

    def read(self, settings: Settings) -> dict[int, int]:
        """Read to the end; return the offset after the last record of each partition.

        A missing topic has no records, and `{}` is returned. Raises as `polls`, and what `take` raises.
        """
        for _ in self._tries(settings, self._taken, lambda: False):
            pass
        return {p: int(end) for p, end in enumerate(self.cursor.ends)} if self.cursor else {}

    def polls(
        self, settings: Settings, stop: Callable[[], bool] = lambda: False
    ) -> Generator[Iterator[Message], None, None]:
        """Yield the messages of each poll, to the end or until `stop` says so; to be closed.

        Raises KafkaUnavailable when nothing has come for `stall_seconds`, or twice that; TopologyError when a
        right is missing or the topic ends before `ends`.
        """
        return self._tries(settings, self._polls, stop)

    def resume(self, client: AdminClient, consumer: Consumer, give_up: Callable[[], bool]) -> None:
        """Read to the end, unless `give_up`, asked every POLL_SECONDS or so, says so first.

        Raises Stalled when nothing comes for `stall_seconds`, KafkaUnavailable, TopologyError (also when the
        topic has lost its end), and what `take` raises.
        """
        for _ in self._taken(client, consumer, give_up):
            pass

    def hold(self, place: TopicPartition) -> None:
        """Read no more of a partition for now. What the client has fetched of it will be fetched again."""
        self._held[place.partition] = place
        if self._consumer is not None:
            self._consumer.pause([place])

    def go_on(self, place: TopicPartition) -> None:
        """Go on with a partition that was held."""
        del self._held[place.partition]
        if self._consumer is not None:
            self._consumer.resume([place])

    def set_out(self, client: AdminClient) -> Cursor:
        """Find out from where to where it reads, if that is not known, and return it."""
        if self.cursor is None:
            self.cursor = self._set_out(client)
            self._advance.begin(self.cursor.reached)
        return self.cursor

    def _tries(
        self,
        settings: Settings,
        read: Callable[[AdminClient, Consumer, Callable[[], bool]], Iterator[T]],
        stop: Callable[[], bool],
    ) -> Generator[T, None, None]:
        """Yield what an attempt yields, in as many as it takes."""
        patience, follows = self.stall_seconds, self.watch is not None and self.watch.follows

        def attempt(client: AdminClient, consumer: Consumer) -> Iterator[T]:
            if self.cursor is None and admin.topic_id(client, self.topic, ASK_SECONDS) is None:
                self.cursor = cursor_over(self.topic, [], [])
                return
            yield from read(client, consumer, stop)

        def give_up() -> bool:
            return stop() or (not follows and self.clock().monotonic - self._advance.moved_at > patience)

        self._advance.moved_at = self.clock().monotonic  # it may have set out long ago
        connect = partial(reading_clients, settings, committed=self.committed, prompt=not follows)
        reason = yield from _attempts(connect, settings, attempt, give_up)
        if not self.done and not stop():
            raise KafkaUnavailable(f"{self.topic}: nothing came for {format_duration(patience)}: {reason}")

    def _taken(self, client: AdminClient, consumer: Consumer, give_up: Callable[[], bool]) -> Iterator[None]:
        take = self.take
        for messages in self._polls(client, consumer, give_up):
            for message in messages:
                take(message)
        yield from ()

    def _polls(
        self, client: AdminClient, consumer: Consumer, give_up: Callable[[], bool]
    ) -> Iterator[Iterator[Message]]:
        cursor, begun = self.set_out(client), self.clock().monotonic
        seconds = self.watch.poll_seconds if self.watch else POLL_SECONDS
        if left := cursor.left:
            clients.warm_up(consumer, self.topic)
            consumer.assign(left)
            if self._held:
                consumer.pause([*self._held.values()])
        self._consumer = consumer
        try:
            while cursor.left:
                self._check_progress(client, consumer, cursor, begun)
                if give_up():
                    return
                yield cursor.records(consumer.consume(num_messages=2000, timeout=seconds))
        finally:
            self._consumer = None
        consumer.unassign()  # or it would go on fetching while another topic is read
        self._report(cursor, cursor.reached)

    def _set_out(self, client: AdminClient) -> Cursor:
        count = admin.partition_count(client, self.topic)
        if self.watch is not None:
            self.watch.begin(client, self.topic, self.clock)
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
        follows = self.watch is not None and self.watch.follows
        return cursor_over(self.topic, starts, [inf] * count if follows else ends)

    def _check_progress(self, client: AdminClient, consumer: Consumer, cursor: Cursor, begun: float) -> None:
        """Raise Stalled when nothing has come for too long, or the client must be replaced."""
        now, reached = self.clock().monotonic, cursor.reached
        if self._advance.has_moved(reached, now):
            self._report(cursor, reached)
        if reason := getattr(consumer, "stranded", ""):
            raise Stalled(reason)
        if self.watch is not None and (
            starts := self.watch.changed(client, self.topic, cursor.places, self.clock)
        ):
            self.cursor = cursor_over(self.topic, starts, [inf] * len(starts))
            raise Stalled(f"{self.topic} has changed")  # the client has cached what it was like
        if outage.throttled:
            self._advance.moved_at = now
        elif inf not in cursor.ends and self._advance.is_stalled(now, begun):
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
                    f"{before:.0f}: records were lost, or the topic was recreated"
                )
        if any(place.offset < stable[place.partition] for place in cursor.left):
            self._advance.wait_longer()
            return Stalled(f"the broker has more of {self.topic} than its client gets")
        return BlockedByOpenTransaction(
            self.topic, [(place.partition, stable[place.partition]) for place in cursor.left]
        )

    def _report(self, cursor: Cursor, reached: int) -> None:
        if self.progress is not None and inf not in cursor.ends:
            self.progress(reached - self._advance.begun_at, int(sum(cursor.ends)) - self._advance.begun_at)

"""Reading topics back, `read_committed`, with clients of its own for each try.

A client remembers the leader of a partition from before an outage, and does not always unlearn it. Where
nothing comes any more although the end is not reached, a new one takes over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from bridge import clock as instant
from bridge.avro.codec import Codec
from bridge.avro.registry import RegistryUnavailable
from bridge.clock import Clock
from bridge.config import Settings
from bridge.errors import NotOurs, SchemaError, TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.blocking import Clients
from bridge.kafka.errors import KafkaUnavailable, Stalled, explained, lacks_right
from bridge.log import get

RETRY_SECONDS = 0.5
LOOK_SECONDS = 10.0
PATIENCE_SECONDS = 30.0
"""Without anything new, until a client is no longer trusted to bring the rest."""
MOST_PATIENT = 10
"""Times that, for clients that may be busy with what does not show."""


def more_patient(patience: float, least: float) -> float:
    """Seconds for the next client, where one had so many in which it may have been busy."""
    return min(patience + least, MOST_PATIENT * least)


Progress: TypeAlias = Callable[[int, int], None]
"""Told how many offsets have been passed, of how many."""


def reading_clients(settings: Settings) -> Clients:
    """Those of one try to read. Raises SettingsError; KafkaUnavailable where they could be made before."""
    reader = clients.reader(settings.kafka, name=f"{settings.topics.prefix}.reader", prompt=True)
    return Clients(clients.admin(settings.kafka), reader)


def with_fresh_clients(
    settings: Settings,
    read: Callable[[AdminClient, Consumer], None],
    give_up: Callable[[], bool],
    told: Callable[[str], None] = lambda _: None,
) -> str:
    """Read until it succeeds, while Kafka or the registry is away; returns early when `give_up` says so.

    `told` hears each time what stands in the way. Returns what did at last, if it did to the end.
    """
    # Not the error itself: its traceback would keep the clients.
    trouble, stalled = "", False
    while not give_up():
        if stalled:
            get().warning("nothing comes: reading on with new clients", reason=trouble)
        tried = None
        try:
            tried = reading_clients(settings)
            read(tried.admin, tried.consumer)
            return ""
        except (KafkaUnavailable, RegistryUnavailable, KafkaException) as error:
            trouble, stalled = str(error), isinstance(error, Stalled)
            told(trouble)
            get().debug("reading waits for Kafka or the registry", error=trouble)
            time.sleep(RETRY_SECONDS)
        finally:
            if tried is not None:
                tried.close()
    return trouble


def starts_since(
    client: AdminClient, consumer: Consumer, topic: str, moment: float, ends: list[int]
) -> list[TopicPartition]:
    """Where what came at that moment or later begins, Unix seconds; at its end in `ends` where nothing did.

    A look-up by time goes no further than an open transaction, and what that hides may be as young: then
    it begins there. Raises as `explained`, and KafkaUnavailable.
    """
    stable = admin.end_offsets(client, topic, len(ends), visible=True)
    with explained(f"finding a time in {topic}"):
        # Less than 0 is no time there, but stands for an end of the partition.
        asked = [TopicPartition(topic, p, max(0, round(moment * 1000))) for p in range(len(ends))]
        starts = consumer.offsets_for_times(asked, timeout=LOOK_SECONDS)
    for start in starts:
        if start.error is not None:
            raise KafkaUnavailable(f"{topic} partition {start.partition}: {start.error.str()}")
        if start.offset < 0:  # nothing as young as that is to be seen
            start.offset = stable[start.partition]
        start.offset = min(start.offset, ends[start.partition])
    return starts


def ends_of(settings: Settings, topic: str) -> dict[int, int]:
    """Partition → its high watermark. Raises as `admin.end_offsets`."""
    client = clients.admin(settings.kafka)
    count = admin.partition_count(client, topic)
    return dict(enumerate(admin.end_offsets(client, topic, count)))


def read_topic(
    settings: Settings,
    topic: str,
    take: Callable[[Message], None],
    *,
    start: Mapping[int, int] | float | None = None,
    ends: Mapping[int, int] | None = None,
    visible: bool = False,
    progress: Progress | None = None,
    patience: float = PATIENCE_SECONDS,
) -> dict[int, int]:
    """Hand each record of a topic to `take`, once; returns the offset after what was read.

    Begins at the beginning, at the offsets in `start`, or at what came since that moment (Unix seconds).
    Ends exactly at `ends`, or where the topic ends now: behind what an open transaction hides, which is
    waited for; before it where only what is `visible` is asked for.

    A topic that is not there has no records, and `{}` is returned. Raises KafkaUnavailable when nothing
    has come for `patience` seconds, or twice that; TopologyError when a right is missing or the topic ends
    before `ends`; and what `take` raises.
    """
    passage = TopicScan(
        topic, take, start=start, ends=ends, visible=visible, progress=progress, patience=patience
    )

    def read(client: AdminClient, consumer: Consumer) -> None:
        if passage.ends or admin.topic_id(client, topic, LOOK_SECONDS) is not None:
            passage.go_on(client, consumer, lambda: False)
        else:
            passage.done = True

    trouble = with_fresh_clients(
        settings, read, lambda: instant.now().monotonic - passage.moved_at > patience
    )
    if not passage.done:
        raise KafkaUnavailable(f"{topic}: nothing came for {patience:g} s: {trouble}")
    return dict(enumerate(passage.ends))


def key_of(message: Message) -> bytes:
    """The key of a record. Raises NotOurs where it is no UTF-8 text: all of ours are."""
    key = message.key()
    try:
        if isinstance(key, bytes) and key.decode():
            return key
    except UnicodeDecodeError:
        pass
    raise NotOurs("its key is no UTF-8 text" if key else "it has no key")


def decode(codec: Codec, message: Message, value: bytes) -> dict[str, Any]:
    """The datum in a message's value. Raises SchemaError or NotOurs, with the place, where it has none."""
    try:
        return codec.decode(value)
    except SchemaError as error:
        raise at(message, error) from None


def at(message: Message, error: SchemaError) -> SchemaError:
    """The error that says where the record is that cannot be read."""
    place = f"{message.topic()} partition {message.partition()} offset {message.offset()}"
    if isinstance(error, NotOurs):
        return NotOurs(f"{place} was not written by a bridge: {error}")
    return SchemaError(f"{place} cannot be read: {error}")


class Foreign:
    """Records that a reader passes over, because they are none of ours: how many, and the first one."""

    def __init__(self) -> None:
        self.count = 0
        self.first = ""
        """Where it is, and what it is not."""

    def add(self, error: SchemaError) -> None:
        """Another one, by what is wrong with it."""
        self.count += 1
        self.first = self.first or str(error)

    def tell(self) -> None:
        """Once, when all is read: nothing where there was none."""
        if self.count:
            get().warning("passed over records that are none of ours", count=self.count, first=self.first)


class TopicScan:
    """A reader's way through a topic: another try goes on where the last one was interrupted.

    The arguments are those of `read_topic`.
    """

    def __init__(
        self,
        topic: str,
        take: Callable[[Message], None],
        *,
        start: Mapping[int, int] | float | None = None,
        ends: Mapping[int, int] | None = None,
        visible: bool = False,
        progress: Progress | None = None,
        patience: float = PATIENCE_SECONDS,
        clock: Clock = instant.now,
    ) -> None:
        self.ends: list[int] = []
        """Empty until they are known."""
        self.done = False
        self.moved_at = clock().monotonic
        """When something came, or else when it began; monotonic."""
        self._topic = topic
        self._take = take
        self._start = start
        self._wanted = ends
        self._visible = visible
        self._progress = progress
        self.patience = self._least_patience = patience
        """Seconds without anything new until the next client's turn."""
        self._clock = clock
        self._places: list[TopicPartition] = []
        self._begun_at = self._reached = 0
        """Sums of offsets."""

    def go_on(self, client: AdminClient, consumer: Consumer, give_up: Callable[[], bool]) -> None:
        """Read on to the end, unless `give_up` says so first.

        Raises Stalled when nothing comes for `patience` seconds, KafkaUnavailable, TopologyError, also
        where the topic has lost its end meanwhile, and what `take` raises.
        """
        if not self.ends:
            self._set_out(client, consumer)
        begun = self._clock().monotonic

        def is_over() -> bool:
            self._look(client, begun)
            return give_up()

        self.done = _read_to(consumer, self._places, self.ends, self._take, is_over)
        if self.done:
            self._tell(sum(self.ends))

    def _set_out(self, client: AdminClient, consumer: Consumer) -> None:
        count = admin.partition_count(client, self._topic)
        if self._wanted is not None:
            ends = [self._wanted.get(p, 0) for p in range(count)]
        else:
            ends = admin.end_offsets(client, self._topic, count, visible=self._visible)
        if isinstance(self._start, int | float):
            starts = [s.offset for s in starts_since(client, consumer, self._topic, self._start, ends)]
        else:
            given = self._start or {}
            # An offset beyond the end is one of a topic that has been made anew since.
            starts = [o if (o := given.get(p, 0)) <= ends[p] else 0 for p in range(count)]
        self._places = [TopicPartition(self._topic, p, offset) for p, offset in enumerate(starts)]
        self.ends = ends
        self._begun_at = self._reached = sum(starts)

    def _look(self, client: AdminClient, begun: float) -> None:
        """Whether anything has come since the last look; this try has begun at that moment, monotonic."""
        now, reached = self._clock().monotonic, sum(place.offset for place in self._places)
        if reached != self._reached:
            self._reached, self.moved_at, self.patience = reached, now, self._least_patience
            self._tell(reached)
        elif now - max(self.moved_at, begun) > self.patience:
            raise self._stalled(client)

    def _stalled(self, client: AdminClient) -> Stalled:
        """Why nothing comes, as far as the broker can tell; the next client gets more time where that helps.

        Raises TopologyError where nothing ever will.
        """
        try:
            stable = admin.end_offsets(client, self._topic, len(self.ends), visible=True)
            written = admin.end_offsets(client, self._topic, len(self.ends))
        except KafkaUnavailable as error:
            return Stalled(str(error))
        for partition, (end, before) in enumerate(zip(written, self.ends, strict=True)):
            if end < before:
                raise TopologyError(
                    f"{self._topic}: partition {partition} ends at offset {end}, and was to be read to "
                    f"{before}: records were lost, or the topic was made anew"
                )
        left = [place for place in self._places if place.offset < self.ends[place.partition]]
        if any(place.offset < stable[place.partition] for place in left):
            # Or it skips what was aborted, and that takes so long.
            self.patience = more_patient(self.patience, self._least_patience)
            return Stalled(f"the broker has more of {self._topic} than its client gets")
        hidden = ", ".join(f"partition {place.partition} from offset {place.offset}" for place in left)
        return Stalled(f"an open transaction hides what is in {self._topic}: {hidden}")

    def _tell(self, reached: int) -> None:
        if self._progress is not None:
            self._progress(reached - self._begun_at, sum(self.ends) - self._begun_at)


def _read_to(
    consumer: Consumer,
    places: list[TopicPartition],
    ends: list[int],
    take: Callable[[Message], None],
    give_up: Callable[[], bool],
) -> bool:
    """Read partitions from their `places` up to their `ends`; `places[i].partition` is `i`.

    Each place moves on behind what was taken, so that whoever is interrupted can go on from there. Waits
    for as long as an open transaction of somebody hides records below an end. Returns False when `give_up`
    said so first, which it is asked at least every 0.2 s. Raises TopologyError, and what `take` and
    `give_up` raise.
    """

    def left() -> list[TopicPartition]:
        return [place for place in places if place.offset < ends[place.partition]]

    if not left():
        return True
    consumer.assign(left())
    try:
        while left():
            if give_up():
                return False
            for message in consumer.consume(num_messages=2000, timeout=0.2):
                error = message.error()
                place, offset = places[message.partition() or 0], message.offset() or 0
                end = ends[place.partition]
                if error is None:
                    # Not what was taken before, where a log was cut and a client begins anew; and not what
                    # was written meanwhile: where that never ceases, no end of the partition is told.
                    if place.offset <= offset < end:
                        take(message)
                    place.offset = max(place.offset, min(offset + 1, end))
                elif error.code() == KafkaError._PARTITION_EOF:
                    place.offset = max(place.offset, min(offset, end))
                elif error.fatal() or lacks_right(error):
                    raise TopologyError(f"reading {message.topic()}: {error.str()}")
        return True
    finally:
        consumer.unassign()

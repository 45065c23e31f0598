"""Reads the topics of a snapshot job, and scans the settled bets for what they use: once, for both jobs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from confluent_kafka import Message

from bridge.avro.codec import Codec, schema_id_of
from bridge.config import Settings
from bridge.errors import ForeignRecord, SchemaError, SchemaNotFound, TopologyError
from bridge.formatting import shortened
from bridge.kafka import admin, clients
from bridge.kafka.reader import OffsetProgress, TopicScan
from bridge.log import get
from bridge.records import topics
from bridge.records.message import SkippedRecords, at, key_of, record_of
from bridge.registry import Registry
from bridge.snapshots.model import Job, Offsets, Snapshot, is_key
from bridge.snapshots.state import JobState
from bridge.snapshots.usage import FIELDS

DAY_SECONDS: Final = 86_400
LEARNT_AT_ONCE: Final = 200_000
"""Bets between two saves of what they use: an interrupted run need not begin again."""
_SYMBOLS: Final = (b"translations/in-use/currency:", b"translations/read")
"""What the currencies take from the state of the translations, which scan the bets for both."""


def topic_of(settings: Settings, job: Job) -> str:
    """Return the name of the topic that the job publishes to."""
    name: str = getattr(topics.declare(settings), job).name
    return name


def last_record(settings: Settings, job: Job, *, visible: bool = False) -> Message | None:
    """Return the record of a job's last snapshot, if there is any.

    Waits for open transactions to end, unless only what is `visible` now is wanted. Raises as
    `TopicScan.read`.
    """
    found: Message | None = None

    def take(message: Message) -> None:
        nonlocal found
        if message.key() == job.encode():
            found = None if message.value() is None else message

    TopicScan(topics.declare(settings).snapshots.name, take, visible=visible).read(settings)
    return found


def last_snapshot(settings: Settings, job: Job, *, visible: bool = False) -> Snapshot | None:
    """Return a job's last snapshot, if there is any.

    Raises SchemaError, with the place, if its record is invalid: the one before it is out of date. Otherwise
    as `last_record` and `Registry`.
    """
    if (found := last_record(settings, job, visible=visible)) is None:
        return None
    with Registry(settings.registry) as registry:
        return record_of(found, registry.codec("snapshot"), Snapshot.from_avro)


class JobStorage:
    """Reads Kafka for one run of a job.

    Waits for open transactions to end, unless only what is `visible` now is wanted. Raises as
    `TopicScan.read`.
    """

    def __init__(self, settings: Settings, job: Job, *, visible: bool = False) -> None:
        self._settings, self._job, self._visible = settings, job, visible
        self._other: JobState | None = None
        """What the other job has learnt for this one."""

    def state(self) -> JobState:
        """Return the state that the last run left."""
        found: dict[bytes, bytes] = {}
        wanted = (f"{self._job}/".encode(), *(_SYMBOLS if self._job == "currencies" else ()))

        def take(message: Message) -> None:
            key, value = message.key() or b"", message.value()
            if not key.startswith(wanted):
                return  # the other job's state may be large
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value

        name = topics.declare(self._settings).snapshot_state.name
        TopicScan(name, take, visible=self._visible).read(self._settings)
        state = JobState(self._job, found)
        if self._job == "currencies":
            self._other = JobState("translations", found)
        if state.foreign:
            get().warning("invalid records of the job state skipped", count=state.foreign)
        return state

    def published(self) -> dict[bytes, bytes]:
        """Return key → value of the job's topic.

        Records whose key the job cannot have written, or whose value has another format, are skipped and
        counted in the log: they are never removed. Values stay encoded, so that a whole snapshot fits into
        memory.
        """
        found: dict[bytes, bytes] = {}
        foreign = SkippedRecords()

        def take(message: Message) -> None:
            value = message.value()
            try:
                key = key_of(message)
                if self._job == "translations" and not is_key(key.decode()):
                    raise ForeignRecord(f"its key is {shortened(key.decode())!r}")
                found.pop(key, None)
                if value is not None:
                    schema_id_of(value)
                    found[key] = value
            except ForeignRecord as error:
                foreign.add(at(message, error))

        TopicScan(topic_of(self._settings, self._job), take, visible=self._visible).read(self._settings)
        foreign.log()
        return found

    def learn(
        self, state: JobState, now: float, save: Callable[[], None], progress: OffsetProgress | None = None
    ) -> tuple[int, str]:
        """Learn what the settled bets use that are visible now and were not read yet.

        The first time, and after the topic was created again, reads the bets of the last `api.keep_days`
        before `now` (Unix seconds). Calls `save` after every `LEARNT_AT_ONCE` bets and at the end. Returns
        the number of bets, and a note about records that are no bets, which are skipped. Raises TopologyError
        if the first read finds records and no bet among them, SchemaError for a schema that the registry does
        not know, and as `TopicScan.read`.
        """
        settings, topic = self._settings, topics.declare(self._settings).bets.name
        topic_id, keep_days = admin.topic_id(clients.admin(settings.kafka), topic), settings.api.keep_days
        if state.position and state.topic_id != topic_id:
            get().warning("topic of bets recreated, reading it from the beginning", topic=topic)
        if self._other is not None:
            state.adopt(self._other, topic_id, keep_days)
        reads_on = state.reads_on(topic_id, keep_days)
        start: Offsets | float = state.position if reads_on else now - keep_days * DAY_SECONDS
        bets, unsaved, foreign = 0, 0, SkippedRecords()

        def remember(read: Offsets) -> None:
            nonlocal unsaved
            unsaved = 0
            state.learnt(read, topic_id, keep_days)
            save()

        with Registry(settings.registry) as registry:
            codec = registry.codec("settled-bet", FIELDS[self._job])

            def take(message: Message) -> None:
                nonlocal bets, unsaved
                if unsaved == LEARNT_AT_ONCE and scan.cursor is not None:
                    remember({place.partition: place.offset for place in scan.cursor.places})
                try:
                    bet = _bet_in(message, codec)
                except ForeignRecord as error:
                    foreign.add(error)
                    return
                if bet is not None:
                    state.learn(bet, message.timestamp()[1] / 1000)
                    bets, unsaved = bets + 1, unsaved + 1

            # `visible`: records of open transactions are read by the next run.
            scan = TopicScan(topic, take, start=start, visible=True, progress=progress)
            read = scan.read(settings)
        if foreign.count and not bets and not state.position:
            raise TopologyError(f"{topic} has no bets among {foreign.count:,} records: {foreign.first}")
        if bets or reads_on:
            remember(read)  # else the next run looks again: this one's clock may be far ahead
        foreign.log()
        return bets, f"{foreign.count:,} records are not bets: {foreign.first}" if foreign.count else ""


def _bet_in(message: Message, codec: Codec) -> dict[str, Any] | None:
    """Return the bet in a record, None for a tombstone.

    Raises ForeignRecord, with the place, if it is not a bet; SchemaNotFound if the registry does not know its
    schema. That may be the registry's fault, and a bet that is skipped would never be learnt.
    """
    try:
        key_of(message)
        value = message.value()
        return None if value is None else codec.decode(value)
    except (ForeignRecord, SchemaNotFound) as error:
        raise at(message, error) from None
    except SchemaError as error:
        raise at(message, ForeignRecord(str(error))) from None

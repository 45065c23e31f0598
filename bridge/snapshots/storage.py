"""What the topics of a snapshot job hold, and what settled bets there are to learn ids from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient

from bridge import clock
from bridge.avro.codec import READ_ONLY, Codec, schema_id_of
from bridge.avro.registry import Registry
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import NotOurs, SchemaError, TopologyError
from bridge.formatting import shortened
from bridge.kafka import admin, clients, topics
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.reader import (
    LOOK_SECONDS,
    STALL_SECONDS,
    Foreign,
    OffsetProgress,
    at,
    decode,
    key_of,
    read_topic,
    starts_since,
    with_fresh_clients,
)
from bridge.log import get
from bridge.snapshots.model import Job, Offsets, Snapshot
from bridge.snapshots.references import REFERENCES_SCHEMAS, References
from bridge.snapshots.state import HOUR_SECONDS, State

DAY_SECONDS: Final = 86_400
LEARNT_AT_ONCE: Final = 200_000
"""After so many bets what they mention is saved: whoever is interrupted need not begin again."""


class Learnt(NamedTuple):
    """What was read to learn from."""

    bets: int
    foreign: str
    """What was passed over, because it is no bet; empty where there was none."""


def topic_of(settings: Settings, job: Job) -> str:
    """The topic of the records that the job publishes."""
    declared = topics.declare(settings)
    return {"translations": declared.translations, "currencies": declared.currencies}[job].name


def last_snapshot(settings: Settings, job: Job, *, visible: bool = False) -> Snapshot | None:
    """The last whole snapshot of a job, None before the first.

    Waits for what an open transaction hides, unless what is `visible` now is enough. Raises as `read_topic`.
    """
    value = last_value(settings, job, visible=visible)
    return None if value is None else decode_snapshot(settings, value)


def last_value(settings: Settings, job: Job, *, visible: bool = False) -> bytes | None:
    """The value of a job's last Snapshot record in wire format.

    Raises SchemaError, with the place, where it is none: the one before it is long out of date. And as
    `read_topic`.
    """
    found: Message | None = None

    def take(message: Message) -> None:
        nonlocal found
        if message.key() == job.encode():
            found = None if message.value() is None else message

    read_topic(settings, topics.declare(settings).snapshots.name, take, visible=visible)
    if found is None:
        return None
    value = found.value() or b""
    with Registry(settings.registry) as registry:
        decode(Codec(load("snapshot"), READ_ONLY, registry.schema_by_id), found, value)
    return value


def decode_snapshot(settings: Settings, value: bytes) -> Snapshot:
    """The snapshot in the value of its record. Raises SchemaError, and as `Registry.schema_by_id`."""
    with Registry(settings.registry) as registry:
        codec = Codec(load("snapshot"), READ_ONLY, registry.schema_by_id)
        return Snapshot.from_avro(codec.decode(value))


def read_compacted(
    settings: Settings,
    topic: str,
    ends: Mapping[int, int] | None = None,
    *,
    visible: bool = False,
    is_key: Callable[[str], bool] = bool,
) -> dict[bytes, bytes]:
    """Key → value in wire format of all that a compacted topic holds, now or at `ends`.

    Records without a key of ours, which is UTF-8 and for which `is_key` holds, or with a value in another
    format are passed over, and counted in the log: none of them is removed or compared with anything. Waits
    for what an open transaction hides, unless what is `visible` now is enough. Nothing is decoded: a whole
    snapshot is to fit into memory. Raises as `read_topic`.
    """
    found: dict[bytes, bytes] = {}
    foreign = Foreign()

    def take(message: Message) -> None:
        value = message.value()
        try:
            key = key_of(message)
            if not is_key(key.decode()):
                raise NotOurs(f"its key is {shortened(key.decode())!r}")
            found.pop(key, None)
            if value is not None:
                schema_id_of(value)
                found[key] = value
        except NotOurs as error:
            foreign.add(at(message, error))

    read_topic(settings, topic, take, ends=ends, visible=visible)
    foreign.log()
    return found


def read_state(settings: Settings, job: Job, *, visible: bool = False) -> State:
    """What the job remembers. Raises as `read_topic`."""
    found: dict[bytes, bytes] = {}

    def take(message: Message) -> None:
        key, value = message.key() or b"", message.value()
        if not key.startswith(f"{job}/".encode()):
            return  # the other job's may be large
        if value is None:
            found.pop(key, None)
        else:
            found[key] = value

    read_topic(settings, topics.declare(settings).snapshot_state.name, take, visible=visible)
    state = State(job, found)
    if state.foreign:
        get().warning("passed over records of the jobs' state that no job has written", count=state.foreign)
    return state


def learn(
    settings: Settings,
    job: Job,
    state: State,
    now: float,
    save: Callable[[], None],
    progress: OffsetProgress | None = None,
) -> Learnt:
    """Learn what the settled bets mention that are visible now and were not read yet.

    The first time, and when the topic was made anew, these are the bets of the time that names are kept for,
    back from `now` (Unix seconds). `save` is called whenever a good deal is learnt, and at the end. Records
    that are no bets are passed over, and counted. Raises TopologyError where there are no others, and for a
    schema that the registry does not know; and as `read_topic`.
    """
    topic = topics.declare(settings).bets.name
    topic_id = admin.topic_id(clients.admin(settings.kafka), topic)
    keep_days = settings.api.keep_days
    if state.reads_on(topic_id, keep_days):
        position = dict(state.position)
    else:
        if state.position and state.topic_id != topic_id:
            get().warning("the topic of the bets was made anew: it is read again", topic=topic)
        position = _received_since(settings, topic, now - keep_days * DAY_SECONDS)
    hours: dict[int, References] = {}
    bets, foreign = 0, Foreign()

    def remember(read: Offsets) -> None:
        for hour, references in hours.items():
            state.learn(hour, references)
        hours.clear()
        state.learnt(read, topic_id, keep_days)
        save()

    with Registry(settings.registry) as registry:
        codec = Codec(REFERENCES_SCHEMAS[job], READ_ONLY, registry.schema_by_id)

        def take(message: Message) -> None:
            nonlocal bets
            position[message.partition() or 0] = (message.offset() or 0) + 1
            try:
                bet = _bet_in(message, codec, registry)
            except NotOurs as error:
                foreign.add(error)
                return
            if bet is None:
                return
            received = max(0, message.timestamp()[1] // 1000)
            hours.setdefault(received - received % HOUR_SECONDS, References()).add(bet)
            bets += 1
            if bets % LEARNT_AT_ONCE == 0:
                remember(position)

        state.begin()
        # What a bridge has not committed yet is read the next time, also where it died over it.
        read = read_topic(settings, topic, take, start=position, visible=True, progress=progress)
    if foreign.count and not bets and not state.position:
        raise TopologyError(f"{topic} has no bets among {foreign.count:,} records: {foreign.first}")
    remember(read)
    foreign.log()
    return Learnt(bets, f"{foreign.count:,} records are no bets: {foreign.first}" if foreign.count else "")


def _bet_in(message: Message, codec: Codec, registry: Registry) -> dict[str, Any] | None:
    """The bet in a record, None for a tombstone.

    Raises NotOurs, with the place, where there is none; SchemaError where the registry does not know its
    schema, which may be the registry's fault: whoever passed over the bet would never ask about it.
    """
    try:
        key_of(message)
        if (value := message.value()) is None:
            return None
        registry.schema_by_id(schema_id_of(value))
    except SchemaError as error:
        raise at(message, error) from None
    try:
        return codec.decode(value)
    except SchemaError as error:
        raise at(message, NotOurs(str(error))) from None


def _received_since(settings: Settings, topic: str, moment: float) -> Offsets:
    """Where in each partition that begins which was received since then; `{}` where there is no topic."""
    found: Offsets = {}

    def read(client: AdminClient, consumer: Consumer) -> None:
        if admin.topic_id(client, topic, LOOK_SECONDS) is not None:
            ends = admin.end_offsets(client, topic, admin.partition_count(client, topic), visible=True)
            found.update({x.partition: x.offset for x in starts_since(client, consumer, topic, moment, ends)})

    deadline = clock.now().monotonic + STALL_SECONDS
    if reason := with_fresh_clients(settings, read, lambda: clock.now().monotonic > deadline):
        raise KafkaUnavailable(f"{topic}: {reason}")
    return found

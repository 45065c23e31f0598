"""What the topics of a snapshot job hold, and what settled bets there are to learn ids from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from confluent_kafka import Consumer, Message
from confluent_kafka.admin import AdminClient

from bridge import instant, kafka, topics
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.registry import Registry
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.log import get
from bridge.sink.reading import (
    LOOK_SECONDS,
    PATIENCE_SECONDS,
    Progress,
    decode,
    persist,
    read_topic,
    starts_since,
)
from bridge.snapshots.mentions import REFERENCES, Mentions
from bridge.snapshots.records import Job, Offsets, Snapshot
from bridge.snapshots.state import HOUR_SECONDS, State

DAY_SECONDS: Final = 86_400
LEARNT_AT_ONCE: Final = 200_000
"""After so many bets what they mention is saved: whoever is interrupted need not begin again."""


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
    """The value of a job's last Snapshot record in wire format. Raises as `read_topic`."""
    found: bytes | None = None

    def take(message: Message) -> None:
        nonlocal found
        if message.key() == job.encode():
            found = message.value()

    read_topic(settings, topics.declare(settings).snapshots.name, take, visible=visible)
    return found


def decode_snapshot(settings: Settings, value: bytes) -> Snapshot:
    """The snapshot in the value of its record. Raises SchemaError, and as `Registry.schema_by_id`."""
    with Registry(settings.registry) as registry:
        codec = Codec(load("snapshot"), READ_ONLY, registry.schema_by_id)
        return Snapshot.from_avro(codec.decode(value))


def read_present(
    settings: Settings, topic: str, ends: Mapping[int, int] | None = None, *, visible: bool = False
) -> dict[bytes, bytes]:
    """Key → value in wire format of all that a compacted topic holds, now or at `ends`.

    Waits for what an open transaction hides, unless what is `visible` now is enough. Nothing is decoded:
    a whole snapshot is to fit into memory. Raises as `read_topic`.
    """
    found: dict[bytes, bytes] = {}

    def take(message: Message) -> None:
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        if value is None:
            found.pop(key, None)
        else:
            found[key] = value

    read_topic(settings, topic, take, ends=ends, visible=visible)
    return found


def read_state(settings: Settings, job: Job, *, visible: bool = False) -> State:
    """What the job remembers. Raises as `read_topic`."""
    return State(job, read_present(settings, topics.declare(settings).snapshot_state.name, visible=visible))


def learn(
    settings: Settings,
    job: Job,
    state: State,
    now: float,
    save: Callable[[], None],
    progress: Progress | None = None,
) -> int:
    """Learn what the settled bets mention that are visible now and were not read yet; returns how many.

    The first time, and when the topic was made anew, these are the bets of the time that names are kept for,
    back from `now` (Unix seconds). `save` is called whenever a good deal is learnt, and at the end. Raises
    TopologyError for a record that is no bet, and as `read_topic`.
    """
    topic = topics.declare(settings).bets.name
    topic_id = kafka.topic_id(kafka.admin(settings.kafka), topic)
    if state.position and state.topic_id == topic_id:
        position = dict(state.position)
    else:
        if state.position:
            get().warning("the topic of the bets was made anew: it is read again", topic=topic)
        position = _received_since(settings, topic, now - settings.api.keep_days * DAY_SECONDS)
    hours: dict[int, Mentions] = {}
    bets = 0

    def remember(read: Offsets) -> None:
        for hour, mentions in hours.items():
            state.learn(hour, mentions)
        hours.clear()
        state.learnt(read, topic_id)
        save()

    with Registry(settings.registry) as registry:
        codec = Codec(REFERENCES[job], READ_ONLY, registry.schema_by_id)

        def take(message: Message) -> None:
            nonlocal bets
            if (value := message.value()) is not None:
                received = message.timestamp()[1] // 1000
                hour = received - received % HOUR_SECONDS
                hours.setdefault(hour, Mentions()).add(decode(codec, message, value))
                bets += 1
            position[message.partition() or 0] = (message.offset() or 0) + 1
            if bets % LEARNT_AT_ONCE == 0 and hours:
                remember(position)

        state.begin()
        # What a bridge has not committed yet is read the next time, also where it died over it.
        remember(read_topic(settings, topic, take, start=position, visible=True, progress=progress))
    return bets


def _received_since(settings: Settings, topic: str, moment: float) -> Offsets:
    """Where in each partition that begins which was received since then; `{}` where there is no topic."""
    found: Offsets = {}

    def read(admin: AdminClient, consumer: Consumer) -> None:
        if kafka.exists(admin, topic, LOOK_SECONDS):
            ends = kafka.end_offsets(admin, topic, kafka.partition_count(admin, topic), visible=True)
            found.update({x.partition: x.offset for x in starts_since(admin, consumer, topic, moment, ends)})

    deadline = instant.now().steady + PATIENCE_SECONDS
    if trouble := persist(settings, read, lambda: instant.now().steady > deadline):
        raise kafka.KafkaUnavailable(f"{topic}: {trouble}")
    return found

"""What the topics of a snapshot job hold, and what settled bets there are to learn ids from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import Message

from bridge import topics
from bridge.avro.codec import READ_ONLY, Codec, schema_id_of
from bridge.avro.registry import Registry
from bridge.avro.schemas import Schema, load
from bridge.config import Settings
from bridge.errors import NotOurs, SchemaError
from bridge.sink.reading import Foreign, Progress, at, decode, key_of, read_topic
from bridge.snapshots.lock import Job
from bridge.snapshots.records import Offsets, Snapshot
from bridge.text import shortened


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


def read_present(
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
    foreign.tell()
    return found


def read_bets(
    settings: Settings,
    start: Mapping[int, int] | float,
    schema: Schema,
    take: Callable[[dict[str, Any]], None],
    progress: Progress | None = None,
) -> Offsets:
    """Hand the settled bets that are visible now to `take`, as seen through that schema.

    `start` is a position or a moment (Unix seconds) of receipt. Returns the position after what was read,
    `{}` where there is no topic. Records that are no bets are passed over, and counted in the log. Raises as
    `read_topic`.
    """
    topic = topics.declare(settings).bets.name
    foreign = Foreign()
    with Registry(settings.registry) as registry:
        codec = Codec(schema, READ_ONLY, registry.schema_by_id)

        def take_bet(message: Message) -> None:
            try:
                key_of(message)
                if (value := message.value()) is not None:
                    take(codec.decode(value))
            except SchemaError as error:
                foreign.add(at(message, error))

        # What a bridge has not committed yet is read the next time, also where it died over it.
        position = read_topic(settings, topic, take_bet, start=start, visible=True, progress=progress)
    foreign.tell()
    return position

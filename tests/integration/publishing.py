"""A process that publishes snapshots one after the other until it is killed, and their contents."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from confluent_kafka import Message
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import KafkaSettings, Settings
from bridge.kafka import clients
from bridge.kafka.batch import Record
from bridge.kafka.reader import TopicScan
from bridge.ownership.election import LeaderElection
from bridge.records import topics
from bridge.snapshots.lock import Lock
from bridge.snapshots.model import Job, Offsets, Snapshot
from bridge.snapshots.publisher import Publisher
from bridge.snapshots.storage import last_snapshot, topic_of
from tests.harness import Place
from tests.integration.snapshots import settings_at
from tests.processes import SERVER

JOB: Job = "translations"
KEYS = 5_000


def settings_of(place: Place) -> Settings:
    """Settings with a short session, and readers that receive the end of a partition at once."""
    fast = {"session_timeout_ms": 3000, "heartbeat_interval_ms": 500, "fetch_wait_max_ms": 20}
    return settings_at(place, fast)


def prepared(place: Place) -> Settings:
    """Settings of the place, after its topics were created."""
    settings = settings_of(place)
    topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.all)
    return settings


def state(number: int, keys: int = KEYS) -> dict[bytes, bytes]:
    """The content of snapshot `number`: every value is new, every seventh key is missing."""
    return {b"sport:%d" % i: b"\0\0\0\0\7%d %d" % (number, i) for i in range(keys) if (i + number) % 7}


def records(settings: Settings, number: int, keys: int = KEYS) -> list[Record]:
    """The records to write for it."""
    whole, topic, now = state(number, keys), topic_of(settings, JOB), round(time.time() * 1000)
    names = (b"sport:%d" % i for i in range(keys))
    return [Record(topic, name, whole.get(name), now) for name in names]


def read_snapshot(settings: Settings, *, visible: bool = False) -> tuple[Snapshot, dict[bytes, bytes]] | None:
    """The last whole snapshot with exactly its records.

    Waits until all that was committed can be seen, unless what is `visible` now is enough.
    """
    snapshot = last_snapshot(settings, JOB, visible=visible)
    if snapshot is None:
        return None
    return snapshot, records_at(settings, snapshot.ends)


def records_at(settings: Settings, ends: Offsets) -> dict[bytes, bytes]:
    """Key → value of the topic's records up to these offsets."""
    messages: list[Message] = []
    TopicScan(topic_of(settings, JOB), messages.append, ends=ends).read(settings)
    found = {message.key() or b"": message.value() for message in messages}
    return {key: value for key, value in found.items() if value is not None}


class Sealer:
    """Makes Snapshot records whose id is a number."""

    def __init__(self, settings: Settings) -> None:
        self._topic = topics.declare(settings).snapshots.name
        schema = load("snapshot")
        with SchemaRegistryClient({"url": settings.registry.url}) as registry:
            schema_id = registry.register_schema(f"{self._topic}-value", Schema(json.dumps(schema), "AVRO"))
        self._codec = Codec(schema, schema_id)

    def record(self, number: int, ends: Offsets) -> Record:
        """The record of snapshot `number`."""
        now = time.time()
        snapshot = Snapshot(JOB, str(number), now, now, now, True, ("en",), ends=ends)
        return Record(self._topic, JOB.encode(), self._codec.encode(snapshot.to_avro()), round(now * 1000))


def started(settings: Settings, group: str) -> tuple[BaseProcess, Connection]:
    """A process that publishes, forked from one that has imported everything already.

    It says when it is about to begin with the first snapshot, and the number of each that it has published.
    """
    reports, report = SERVER.Pipe(duplex=False)
    process = SERVER.Process(
        target=publish_for_ever, args=(settings.model_dump(), group, report), daemon=True
    )
    process.start()
    return process, reports


def publish_for_ever(given: dict[str, Any], group: str, report: Connection) -> None:
    """Publish with a lock that nobody else has: so none waits for the session of a dead one."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    settings = Settings.model_validate(given)
    sealer = Sealer(settings)

    def elect(settings: KafkaSettings, _: str, topic: str, changed: Callable[[], object]) -> LeaderElection:
        return LeaderElection(settings, group, topic, changed)

    lock = Lock(settings, JOB, threading.Event(), print, elect)
    lock.acquire(None)
    with closing(Publisher(settings, JOB, lock)) as publisher:
        last = publisher.open()
        report.send("ready")
        for number in itertools.count(int(last.id) + 1 if last else 1):
            publisher.publish(records(settings, number), partial(sealer.record, number))
            report.send(number)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)

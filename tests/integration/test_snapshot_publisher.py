"""Snapshots on a real Kafka: a reader that stops at the ends of the last one has exactly that one."""

from __future__ import annotations

import asyncio
import itertools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

import pytest
from confluent_kafka import KafkaException, Message, Producer

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import KafkaSettings, Settings
from bridge.errors import SinkBroken
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.reader import TopicScan
from bridge.records import topics
from bridge.registry import Registry
from bridge.snapshots.lock import Lock
from bridge.snapshots.model import Job, Offsets, Snapshot
from bridge.snapshots.publisher import Publisher
from bridge.snapshots.storage import JobStorage, last_snapshot, topic_of
from tests.chaos.test_snapshots import killed_at_random
from tests.harness import PATIENCE, Place
from tests.integration.publishing import prepared
from tests.processes import send

JOB: Job = "translations"
KEYS = 5_000


@contextmanager
def at_work(settings: Settings, trouble: Callable[[str], None] = print) -> Iterator[Publisher]:
    """A run that has its lock and has fenced its predecessors."""
    with closing(Lock(settings, JOB, threading.Event(), trouble)) as lock:
        lock.acquire(PATIENCE)
        with closing(Publisher(settings, JOB, lock)) as publisher:
            publisher.open()
            yield publisher


def state(number: int) -> dict[bytes, bytes]:
    """The content of snapshot `number`: every value is new, every seventh key is missing."""
    return {b"sport:%d" % i: b"\0\0\0\0\7%d %d" % (number, i) for i in range(KEYS) if (i + number) % 7}


def records(settings: Settings, number: int) -> list[Record]:
    """The records to write for it."""
    whole, topic, now = state(number), topic_of(settings, JOB), round(time.time() * 1000)
    names = (b"sport:%d" % i for i in range(KEYS))
    return [Record(topic, name, whole.get(name), now) for name in names]


def records_at(settings: Settings, ends: Offsets) -> dict[bytes, bytes]:
    """Key → value of the topic's records up to these offsets."""
    messages: list[Message] = []
    TopicScan(topic_of(settings, JOB), messages.append, ends=ends).read(settings)
    found = {message.key() or b"": message.value() for message in messages}
    return {key: value for key, value in found.items() if value is not None}


def read(settings: Settings, *, visible: bool = False) -> tuple[int, dict[bytes, bytes]]:
    """Number of the last whole snapshot, and exactly its records.

    Waits until all that was committed can be seen, unless what is `visible` now is enough.
    """
    snapshot = last_snapshot(settings, JOB, visible=visible)
    assert snapshot is not None
    return int(snapshot.id), records_at(settings, snapshot.ends)


class Sealer:
    """Makes Snapshot records whose id is a number."""

    def __init__(self, settings: Settings) -> None:
        self._topic = topics.declare(settings).snapshots.name
        with Registry(settings.registry) as registry:
            self._codec = Codec(load("snapshot"), registry.register(settings.topics.prefix)["snapshot"])

    def record(self, number: int, ends: Offsets) -> Record:
        """The record of snapshot `number`."""
        now = time.time()
        snapshot = Snapshot(JOB, str(number), now, now, now, True, ("en",), ends=ends)
        return Record(self._topic, JOB.encode(), self._codec.encode(snapshot.to_avro()), round(now * 1000))


def dead_transaction(place: Place, settings: Settings) -> Producer:
    """The open transaction of a dead run: records in every partition, and a Snapshot."""
    dead = place.open_transaction(JOB)
    for partition in range(settings.topics.partitions):
        dead.produce(topic_of(settings, JOB), b"never visible", b"sport:1", partition=partition)
    dead.produce(topics.declare(settings).snapshots.name, b"never visible", JOB.encode())
    assert dead.flush(20) == 0
    return dead


def test_a_reader_at_the_ends_has_exactly_each_snapshot(place: Place) -> None:
    settings = prepared(place)
    sealer = Sealer(settings)
    assert last_snapshot(settings, JOB) is None
    ends = []
    with at_work(settings) as publisher:
        for number in (1, 2, 3):
            ends.append(publisher.publish(records(settings, number), partial(sealer.record, number)))
            assert read(settings) == (number, state(number))
        ends.append(publisher.publish([], partial(sealer.record, 4)))
    assert [records_at(settings, end) for end in ends] == [state(n) for n in (1, 2, 3, 3)]
    assert JobStorage(settings, JOB).published() == state(3)


def test_what_a_dead_run_left_open_neither_hides_nor_shows(place: Place) -> None:
    settings = prepared(place)
    sealer = Sealer(settings)
    with at_work(settings) as publisher:
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
    assert read(settings) == (1, state(1))
    dead = dead_transaction(place, settings)
    assert read(settings, visible=True) == (1, state(1))
    with at_work(settings) as publisher:
        last = publisher.open()
        assert last is not None
        assert last.id == "1"
        assert JobStorage(settings, JOB).published() == state(1)
        publisher.publish(records(settings, 2), partial(sealer.record, 2))
    assert read(settings) == (2, state(2))
    with pytest.raises(KafkaException, match="fenced"):  # not timed out
        dead.commit_transaction(20)


def test_a_transaction_that_outlives_its_time_out(place: Place) -> None:
    settings, topic = prepared(place), f"{place.prefix}.{JOB}"
    short = {**settings.kafka.model_dump(), "transaction_timeout_ms": 2_000}
    settings = settings.model_copy(update={"kafka": KafkaSettings.model_validate(short)})
    sealer, turns = Sealer(settings), itertools.count(1)
    client = clients.admin(settings.kafka)
    committed: list[Message] = []

    def is_open() -> bool:
        ends = admin.end_offsets(client, topic, settings.topics.partitions)
        return ends != admin.end_offsets(client, topic, settings.topics.partitions, visible=True)

    def seal(ends: dict[int, int]) -> Record:
        assert is_open()
        first = next(turns) == 1
        while first and is_open():
            time.sleep(0.2)
        return sealer.record(2, ends)

    with at_work(settings) as publisher:
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        publisher.publish(records(settings, 2), seal)
    assert read(settings) == (2, state(2))
    snapshots = topics.declare(settings).snapshots.name
    TopicScan(snapshots, committed.append).read(settings)
    assert len(committed) == 2


@pytest.mark.long
async def test_runs_killed_at_random(place: Place) -> None:
    await killed_at_random(place, kills=8, seed=1)


async def test_a_broker_that_is_away_in_the_middle(place: Place) -> None:
    settings = prepared(place)
    sealer, turns, broker = Sealer(settings), itertools.count(1), place.cluster.servers["kafka-1"]

    def seal(ends: dict[int, int]) -> Record:
        if next(turns) == 1:
            send(broker, signal.SIGSTOP)
            threading.Timer(6, send, (broker, signal.SIGCONT)).start()
        return sealer.record(2, ends)

    with at_work(settings) as publisher:
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        await asyncio.wait_for(asyncio.to_thread(publisher.publish, records(settings, 2), seal), 90)
    assert read(settings) == (2, state(2))


@pytest.mark.parametrize(
    ("value", "ahead", "why"),
    [(b"x", 2 * 3_600_000, r"[Ii]nvalid timestamp.* The clock of this"), (b"x" * 2_000_000, 0, "too large")],
    ids=["clock", "size"],
)
def test_a_record_that_the_topic_will_never_take(place: Place, value: bytes, ahead: int, why: str) -> None:
    settings = prepared(place)
    sealer = Sealer(settings)
    reasons: list[str] = []
    with at_work(settings, reasons.append) as publisher:
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        *others, last = records(settings, 2)
        unfit = Record(last.topic, last.key, value, last.timestamp + ahead)
        with pytest.raises(SinkBroken, match=why):
            publisher.publish([*others, unfit], partial(sealer.record, 2))
    assert not reasons
    # What was begun has been aborted: so nothing waits for its time-out.
    assert JobStorage(settings, JOB).published() == state(1)

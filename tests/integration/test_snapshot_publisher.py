"""Snapshots on a real Kafka: a reader that stops at the ends of the last one has exactly that one."""

from __future__ import annotations

import asyncio
import itertools
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial

import pytest
from confluent_kafka import KafkaException, Message, Producer

from bridge.config import KafkaSettings, Settings
from bridge.errors import NotCommitted, SinkBroken
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.reader import TopicScan
from bridge.records import topics
from bridge.snapshots.lock import Lock
from bridge.snapshots.publisher import Publisher
from bridge.snapshots.storage import JobStorage, last_snapshot, topic_of
from tests.harness import PATIENCE, Place
from tests.integration.publishing import (
    JOB,
    Sealer,
    prepared,
    read_snapshot,
    records,
    records_at,
    started,
    state,
)
from tests.processes import send

LINES = 4
KILLS = 4
"""Of each line."""


@contextmanager
def at_work(
    settings: Settings, stop: threading.Event | None = None, trouble: Callable[[str], None] = print
) -> Iterator[Publisher]:
    """A run that has its lock and has fenced its predecessors."""
    with closing(Lock(settings, JOB, stop or threading.Event(), trouble)) as lock:
        assert lock.acquire(PATIENCE)
        with closing(Publisher(settings, JOB, lock)) as publisher:
            publisher.open()
            yield publisher


def read(settings: Settings, *, visible: bool = False) -> tuple[int, dict[bytes, bytes]]:
    """Number and content of the last snapshot, as `read_snapshot`."""
    found = read_snapshot(settings, visible=visible)
    assert found is not None
    return int(found[0].id), found[1]


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
    assert read_snapshot(settings) is None
    ends = []
    with at_work(settings) as publisher:
        for number in (1, 2, 3):
            ends.append(publisher.publish(records(settings, number), partial(sealer.record, number)))
            found = read_snapshot(settings)
            assert found is not None
            assert (found[0].id, found[0].ends, found[1]) == (str(number), ends[-1], state(number))
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


class Interrupted(list[Record]):
    """Records in the middle of which something happens, the first time."""

    def __init__(self, given: list[Record], interrupt: Callable[[], object]) -> None:
        super().__init__(given)
        self._interrupts = [interrupt]

    def __iter__(self) -> Iterator[Record]:
        given = list(super().__iter__())
        yield from given[: len(given) // 2]
        if self._interrupts:
            self._interrupts.pop()()
        yield from given[len(given) // 2 :]


def test_a_producer_that_was_fenced(place: Place) -> None:
    settings = prepared(place)
    sealer = Sealer(settings)
    reasons: list[str] = []
    fenced = Interrupted(records(settings, 2), lambda: place.open_transaction(JOB).abort_transaction(20))
    with at_work(settings, trouble=reasons.append) as publisher:
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        publisher.publish(fenced, partial(sealer.record, 2))
    assert len(reasons) == 1
    assert read(settings) == (2, state(2))
    assert JobStorage(settings, JOB).published() == state(2)


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


def test_records_of_a_clock_that_is_ahead(place: Place) -> None:
    settings, ahead = prepared(place), 2 * 3_600_000
    sealer = Sealer(settings)
    reasons: list[str] = []
    with at_work(settings, trouble=reasons.append) as publisher:
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        late = [
            Record(record.topic, record.key, record.value, record.timestamp + ahead)
            for record in records(settings, 2)
        ]
        with pytest.raises(SinkBroken, match=r"[Ii]nvalid timestamp.* The clock of this machine"):
            publisher.publish(late, partial(sealer.record, 2))
    assert not reasons
    assert JobStorage(settings, JOB).published() == state(1)


@pytest.mark.long
def test_killed_at_any_moment(place: Place) -> None:
    # Several at a time, each with its own topics: most of it is waiting for what a dead one left open.
    lines = [prepared(replace(place, prefix=f"{place.prefix}-{line}")) for line in range(LINES)]
    with ThreadPoolExecutor(LINES) as pool:
        published = list(pool.map(killed_again_and_again, lines))
    assert min(published) >= KILLS // 2  # else the kills would have met nothing


def killed_again_and_again(settings: Settings) -> int:
    """Returns the number of the last snapshot."""
    topic, dice = topic_of(settings, JOB), random.Random(settings.topics.prefix)
    reached: dict[int, int] = {}
    content: dict[bytes, bytes] = {}
    numbers, published = {0}, 0

    def take(message: Message) -> None:
        key, value = message.key(), message.value()
        assert isinstance(key, bytes)
        if value is None:
            content.pop(key, None)
        else:
            content[key] = value
            numbers.add(int(value[5:].split()[0]))

    for kill in range(KILLS):
        process, reports = started(settings, f"{settings.topics.prefix}.lock-{kill}")
        with reports:
            if kill:  # the first is killed somewhere on its way to the first transaction
                assert reports.poll(30)
                reports.recv()
            if kill % 2:  # and half of them only once they have published
                assert reports.poll(30)
            time.sleep(dice.uniform(0, 0.5))
            process.kill()
            process.join()
        last = last_snapshot(settings, JOB, visible=True)
        if last is not None:
            reached = TopicScan(topic, take, start=reached, ends=last.ends).read(settings)
            published = int(last.id)
            assert content == state(published), f"kill {kill}"
            assert max(numbers) == published
    with at_work(settings):
        TopicScan(topic, take, start=reached).read(settings)
        assert content == state(published) == read(settings)[1]
        assert numbers == set(range(published + 1))
    return published


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


async def test_sigterm_while_the_broker_is_away(place: Place) -> None:
    settings = prepared(place)
    sealer, stop, broker = Sealer(settings), threading.Event(), place.cluster.servers["kafka-1"]

    def seal(ends: dict[int, int]) -> Record:
        send(broker, signal.SIGSTOP)
        threading.Timer(3, stop.set).start()
        return sealer.record(2, ends)

    def attempt(publish: Callable[[], object]) -> None:
        with pytest.raises(NotCommitted):
            publish()

    try:
        with at_work(settings, stop) as publisher:
            publisher.publish(records(settings, 1), partial(sealer.record, 1))
            await asyncio.to_thread(attempt, partial(publisher.publish, records(settings, 2), seal))
    finally:
        send(broker, signal.SIGCONT)
    with at_work(settings):
        assert read(settings) == (1, state(1))


def test_a_record_that_the_topic_will_never_take(place: Place) -> None:
    settings = prepared(place)
    sealer = Sealer(settings)
    too_large = Record(topic_of(settings, JOB), b"sport:1", b"x" * 2_000_000, 0)
    with at_work(settings) as publisher:
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        with pytest.raises(SinkBroken, match="too large"):
            publisher.publish([*records(settings, 2), too_large], partial(sealer.record, 2))
    # What was begun has been aborted: so nothing waits for its time-out.
    assert JobStorage(settings, JOB).published() == state(1)

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
from typing import Any

import pytest
from confluent_kafka import KafkaException, Message, Producer

from bridge.config import KafkaSettings, Settings
from bridge.errors import NotCommitted, NotOwner, SinkBroken, TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.reader import TopicScan
from bridge.ownership.election import LeaderElection
from bridge.records import topics
from bridge.snapshots import lock as module
from bridge.snapshots.lock import Busy, Lock
from bridge.snapshots.publisher import Publisher
from bridge.snapshots.storage import JobStorage, last_snapshot, topic_of
from tests.harness import PATIENCE, Place
from tests.integration.publishing import (
    JOB,
    KEYS,
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
) -> Iterator[tuple[LeaderElection, Publisher]]:
    """A run that has its lock and has fenced its predecessors."""
    joined: list[LeaderElection] = []

    def elect(*given: Any) -> LeaderElection:
        joined.append(LeaderElection(*given))
        return joined[0]

    with closing(Lock(settings, JOB, stop or threading.Event(), trouble, elect)) as lock:
        assert lock.acquire(PATIENCE)
        with closing(Publisher(settings, JOB, lock)) as publisher:
            publisher.open()
            yield joined[0], publisher


def read(settings: Settings, *, visible: bool = False) -> tuple[int, dict[bytes, bytes]]:
    """Number and content of the last snapshot, as `read_snapshot`."""
    found = read_snapshot(settings, visible=visible)
    assert found is not None
    return int(found[0].id), found[1]


def producer_of(settings: Settings) -> Producer:
    """A producer with the job's transactional id."""
    return Producer(
        {
            "bootstrap.servers": str(settings.kafka.bootstrap_servers),
            "transactional.id": f"{settings.topics.prefix}.{JOB}",
            "log_level": 0,
        }
    )


def dead_transaction(settings: Settings) -> Producer:
    """The open transaction of a dead run: records in every partition, and a Snapshot."""
    dead = producer_of(settings)
    dead.init_transactions(20)
    dead.begin_transaction()
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
    with at_work(settings) as (_, publisher):
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
    with at_work(settings) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
    assert read(settings) == (1, state(1))
    dead = dead_transaction(settings)
    assert read(settings, visible=True) == (1, state(1))
    with at_work(settings) as (_, publisher):
        last = publisher.open()
        assert last is not None
        assert last.id == "1"
        assert JobStorage(settings, JOB).published() == state(1)
        publisher.publish(records(settings, 2), partial(sealer.record, 2))
    assert read(settings) == (2, state(2))
    with pytest.raises(KafkaException, match="fenced"):  # not timed out
        dead.commit_transaction(20)


def test_a_run_whose_lock_was_taken_over_does_not_commit(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "REGAIN_SECONDS", 1)
    settings = prepared(place)
    sealer = Sealer(settings)
    with at_work(settings) as (election, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        with closing(Lock(settings, JOB, threading.Event(), print)) as second:
            with pytest.raises(Busy, match=f"{place.prefix}.translations.owner"):
                second.acquire(0.5)
            election.close()
            assert second.acquire(None)
            # As in a process that was paused: it takes itself for the owner, until it asks.
            election._owner.set()
            monkeypatch.setattr(election, "confirm", lambda _: election._owner.clear())
            with pytest.raises(NotOwner):
                publisher.publish(records(settings, 2), partial(sealer.record, 2))
            with closing(Publisher(settings, JOB, second)) as heir:
                heir.open()
                heir.publish(records(settings, 3), partial(sealer.record, 3))
    assert read(settings) == (3, state(3))


class Interrupted(list[Record]):
    """Records in the middle of which something happens, the first time."""

    def __init__(self, given: list[Record], interrupt: Callable[[], None]) -> None:
        super().__init__(given)
        self._interrupts = [interrupt]

    def __iter__(self) -> Iterator[Record]:
        given = list(super().__iter__())
        yield from given[: len(given) // 2]
        if self._interrupts:
            self._interrupts.pop()()
        yield from given[len(given) // 2 :]


@pytest.mark.parametrize("when", ["before", "amid the records", "behind the records"])
def test_a_producer_that_was_fenced(place: Place, when: str) -> None:
    settings = prepared(place)
    sealer, turns = Sealer(settings), itertools.count(1)
    reasons: list[str] = []

    def fence(now: str) -> None:
        if now == when:
            producer_of(settings).init_transactions(20)

    def seal(ends: dict[int, int]) -> Record:
        if next(turns) == 1:
            fence("behind the records")
        return sealer.record(2, ends)

    with at_work(settings, trouble=reasons.append) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        fence("before")
        publisher.publish(Interrupted(records(settings, 2), lambda: fence("amid the records")), seal)
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

    with at_work(settings) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        publisher.publish(records(settings, 2), seal)
    assert read(settings) == (2, state(2))
    snapshots = topics.declare(settings).snapshots.name
    TopicScan(snapshots, committed.append).read(settings)
    assert len(committed) == 2


@pytest.mark.parametrize("count", [1, KEYS])
def test_records_of_a_clock_that_is_ahead(place: Place, count: int) -> None:
    settings, ahead = prepared(place), 2 * 3_600_000
    sealer = Sealer(settings)
    reasons: list[str] = []
    with at_work(settings, trouble=reasons.append) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        late = [
            Record(record.topic, record.key, record.value, record.timestamp + ahead)
            for record in records(settings, 2)[:count]
        ]
        with pytest.raises(SinkBroken, match=r"[Ii]nvalid timestamp.* The clock of this machine"):
            publisher.publish(late, partial(sealer.record, 2))
    assert not reasons
    assert JobStorage(settings, JOB).published() == state(1)


def delete(place: Place, topic: str) -> None:
    """Delete a topic; return when no broker has it."""
    client = place.admin()
    for future in client.delete_topics([topic]).values():
        future.result(20)
    while topic in client.list_topics(timeout=10).topics:
        time.sleep(0.05)


@pytest.mark.parametrize("topic", ["translations", "snapshots"])
@pytest.mark.parametrize("when", ["before", "amid the records"])
def test_a_topic_that_is_deleted_during_the_run(place: Place, topic: str, when: str) -> None:
    settings, name = prepared(place), f"{place.prefix}.{topic}"
    sealer = Sealer(settings)
    given: list[Record] = records(settings, 2)
    with at_work(settings) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        if when == "before":
            delete(place, name)
        else:
            given = Interrupted(given, lambda: delete(place, name))
        with pytest.raises(TopologyError, match=f"the topic {name} is gone"):
            publisher.publish(given, partial(sealer.record, 2))


def test_a_topic_that_is_recreated_during_the_run(place: Place) -> None:
    settings, topic = prepared(place), f"{place.prefix}.{JOB}"
    sealer = Sealer(settings)

    def again() -> None:
        delete(place, topic)
        topics.ensure(clients.admin(settings.kafka), settings, topics.Topics.all)

    with at_work(settings) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        with pytest.raises(TopologyError, match=f"the topic {topic} was recreated"):
            publisher.publish(Interrupted(records(settings, 2), again), partial(sealer.record, 2))
    assert JobStorage(settings, JOB).published() == {}
    last = last_snapshot(settings, JOB)
    assert last is not None
    assert last.id == "1"


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


@pytest.mark.parametrize("outage", ["paused", pytest.param("killed", marks=pytest.mark.long)])
async def test_a_broker_that_is_away_in_the_middle(place: Place, outage: str) -> None:
    settings = prepared(place)
    sealer = Sealer(settings)
    turns, broker = itertools.count(1), place.cluster.servers["kafka-1"]

    def seal(ends: dict[int, int]) -> Record:
        if next(turns) == 1:
            send(broker, signal.SIGSTOP) if outage == "paused" else broker.stop(kill=True)
            threading.Timer(6, resume).start()
        return sealer.record(2, ends)

    def resume() -> None:
        send(broker, signal.SIGCONT) if outage == "paused" else place.cluster.restart(broker.name)

    with at_work(settings) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        job = asyncio.to_thread(publisher.publish, records(settings, 2), seal)
        await asyncio.wait_for(job, 90)
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
        with at_work(settings, stop) as (_, publisher):
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
    with at_work(settings) as (_, publisher):
        publisher.publish(records(settings, 1), partial(sealer.record, 1))
        with pytest.raises(SinkBroken, match="too large"):
            publisher.publish([*records(settings, 2), too_large], partial(sealer.record, 2))
    # What was begun has been aborted: so nothing waits for its time-out.
    assert JobStorage(settings, JOB).published() == state(1)

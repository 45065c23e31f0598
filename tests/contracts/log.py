"""The log: what one owner of a feed has committed, the next one goes on from (`Writer`, `StoredState`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple, Protocol, TypeVar

import pytest

from bridge.avro.codec import Codecs
from bridge.clock import MICROS
from bridge.dedup.deduplicator import DedupResult, fingerprint
from bridge.errors import NotOwner
from bridge.feed.received import Received
from bridge.kafka.batch import Batch, Reached, Record
from bridge.kafka.partitioner import partition_of
from bridge.records.checkpoint import Checkpoint, State, UnprovenReplay, checkpoint_record
from bridge.records.counters import Counters
from bridge.records.dead_letter import DeadLetterKind, dead_letter, identity
from bridge.records.reach import TopicReach
from bridge.records.topics import Topics
from bridge.service.interfaces import StoredState, Writer
from tests.bets import BARE_BET

T = TypeVar("T")
FEED, PARTITIONS = "f", 6
NOW = 1_790_000_000.0
BROKEN = b'{"data":1}'


class Owner(NamedTuple):
    """A process that owns the feed."""

    log: Log
    writer: Writer
    stored: StoredState

    async def does(self, job: Callable[[], T]) -> T:
        """Run a job as the event loop does."""
        return await asyncio.wrap_future(self.writer.run(job))

    async def takes_over(self) -> Checkpoint | None:
        """Fence the former owner; return its checkpoint."""
        value = await self.does(self.writer.open)
        return None if value is None else Checkpoint.from_avro(self.log.codecs.checkpoints.decode(value))

    async def agrees(self, committed: Checkpoint | None) -> tuple[TopicReach, ...]:
        """Return the topics with which it goes on."""
        return await self.does(lambda: self.stored.agree_on_topics(committed, _never, _silent))

    async def commits(self, batch: Batch, revision: int, topics: tuple[TopicReach, ...]) -> Checkpoint:
        """Commit a batch with a checkpoint; return that as it is then."""
        made: list[Checkpoint] = []

        def complete(reached: Reached) -> Record:
            made.append(_checkpoint(revision, topics).reaching(reached))
            return checkpoint_record(self.log.topics.checkpoints.name, self.log.codecs.checkpoints, made[-1])

        await self.does(lambda: self.writer.commit(batch, complete))
        return made[-1]


class Log(Protocol):
    """Topics without any record, and the processes that write to them."""

    topics: Topics
    codecs: Codecs

    async def owner(self) -> Owner:
        """A new process that owns the feed instead of the one before."""


def _never() -> bool:
    return False


def _silent(_: str) -> None: ...


def _checkpoint(revision: int, topics: tuple[TopicReach, ...]) -> Checkpoint:
    first = Checkpoint(FEED, revision, State.LIVE, (), Counters(), NOW, "me")
    return replace(first, topics=topics)


def _batch(log: Log, *bets: tuple[str, int, float]) -> Batch:
    """Bets of these ids, versions and payouts, received now."""
    batch = Batch()
    for name, version, payout in bets:
        value = value_of(log, name, version, payout)
        batch.add(
            Record(
                log.topics.bets.name,
                name.encode(),
                value,
                int(NOW * 1000),
                None,
                partition_of(name.encode(), PARTITIONS),
            )
        )
    return batch


def value_of(log: Log, name: str, version: int, payout: float) -> bytes:
    """The Avro value of a bet."""
    datum = {"betId": name, "settlementVersion": version, "payout": payout}
    return log.codecs.bets.encode(BARE_BET | datum | {"settlementTime": int(NOW * MICROS)})


class LogContract:
    """The suite; a fixture `log` says what it runs on."""

    async def test_a_first_owner_finds_nothing(self, log: Log) -> None:
        owner = await log.owner()
        assert await owner.takes_over() is None
        topics = await owner.agrees(None)
        assert {topic.name for topic in topics} == {topic.name for topic in log.topics.of_messages()}
        known = await owner.does(lambda: owner.stored.restore(NOW - 60, _never, _silent, None))
        assert len(known) == 0

    async def test_the_next_owner_goes_on_from_what_was_committed(self, log: Log) -> None:
        owner = await log.owner()
        await owner.takes_over()
        batch = _batch(log, ("a", 1, 1.0), ("b", 1, 1.0), ("a", 1, 2.0))
        letter = Received(BROKEN, NOW)
        batch.add(
            dead_letter(
                log.topics.deadletters.name,
                letter,
                DeadLetterKind.ERROR,
                "no bet",
                feed=FEED,
                revision=int(NOW),
                partitions=PARTITIONS,
            )
        )
        topics = await owner.agrees(None)
        owner.writer.write(batch)  # some of it may be on its way already
        written = await owner.commits(batch, int(NOW) - 90, topics)

        successor = await log.owner()
        assert await successor.takes_over() == written
        assert await successor.agrees(written) == written.topics
        known = await successor.does(lambda: successor.stored.restore(NOW - 60, _never, _silent, None))
        known.connected(int(NOW) - 90)
        assert known.proves_replay(b"a")
        assert known.letter_proves_replay(identity(BROKEN), since=NOW)

        def judged(name: str, version: int, payout: float) -> DedupResult:
            content = fingerprint(value_of(log, name, version, payout))
            return known.judge(name.encode(), version, content, lambda _: None, replaying=False)

        assert judged("a", 1, 2.0) is judged("b", 1, 1.0) is DedupResult.DUPLICATE
        assert judged("a", 1, 3.0) is DedupResult.CORRECTION
        assert judged("c", 1, 1.0) is DedupResult.NEW
        assert known.dead_letter_time(identity(BROKEN)) is not None

        unproven = UnprovenReplay(int(NOW) - 90, NOW, NOW - 1)
        brought = await successor.does(lambda: successor.stored.restore(NOW - 60, _never, _silent, unproven))
        brought.connected(int(NOW) - 90, replay_unproven=True)
        assert not brought.proves_replay(b"a")
        assert not brought.letter_proves_replay(identity(BROKEN), since=NOW)

    async def test_a_checkpoint_says_how_far_the_topics_reach_with_it(self, log: Log) -> None:
        owner = await log.owner()
        await owner.takes_over()
        topics, partition = await owner.agrees(None), partition_of(b"a", PARTITIONS)
        ends = []
        for version in (1, 2):
            written = await owner.commits(_batch(log, ("a", version, 1.0)), int(NOW) - 90, topics)
            topics = written.topics
            [reach] = [topic.partitions for topic in topics if topic.name == log.topics.bets.name]
            assert [number for number, place in enumerate(reach) if place.end] == [partition]
            assert reach[partition].newest == NOW
            ends.append(reach[partition].end)
        assert 1 <= ends[0] < ends[1]

    async def test_a_checkpoint_is_committed_without_any_record(self, log: Log) -> None:
        owner = await log.owner()
        await owner.takes_over()
        written = await owner.commits(Batch(), int(NOW) - 90, await owner.agrees(None))
        assert await (await log.owner()).takes_over() == written

    async def test_who_was_replaced_commits_nothing(self, log: Log) -> None:
        former = await log.owner()
        await former.takes_over()
        written = await former.commits(_batch(log, ("a", 1, 1.0)), int(NOW) - 90, await former.agrees(None))
        successor = await log.owner()
        await successor.takes_over()
        with pytest.raises(NotOwner):
            await former.commits(_batch(log, ("b", 1, 1.0)), int(NOW), written.topics)
        known = await successor.does(lambda: successor.stored.restore(NOW - 60, _never, _silent, None))
        assert len(known) == 1
        assert await (await log.owner()).takes_over() == written

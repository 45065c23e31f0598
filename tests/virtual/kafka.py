"""Kafka in memory for one owner of a feed: whole transactions, and their records.

It outlives the process. It may be away, and do nothing until it is back, or deaf, and do everything without
an answer: so a process dies between its commit and the answer.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import lru_cache, partial
from itertools import islice
from math import inf
from typing import TypeVar
from zlib import crc32

from bridge.avro.codec import Codec, Codecs, reading
from bridge.avro.schemas import load
from bridge.config import BatchSettings
from bridge.config.kafka import SESSION_MS
from bridge.dedup.deduplicator import KEPT, Deduplicator, fingerprint
from bridge.errors import NotOwner, TopologyError
from bridge.kafka.admin import TopicSeen
from bridge.kafka.batch import Batch, Record
from bridge.kafka.errors import TooMuch
from bridge.kafka.pace import KafkaPace
from bridge.kafka.transactions import LONGEST_SECONDS
from bridge.ownership.batch_writer import Complete
from bridge.records.checkpoint import Checkpoint, UnprovenReplay
from bridge.records.gap import FeedGap
from bridge.records.message import original_receipt
from bridge.records.reach import TopicReach, as_seen
from bridge.records.topics import Topics
from bridge.service.interfaces import GiveUp, OnDelay, StoredState
from bridge.stored.restore import LETTERS, SAMPLE

T = TypeVar("T")

PARTITIONS = 6
_SCHEMAS = ("settled-bet", "feed-checkpoint", "feed-gap")
CODECS = Codecs(*(Codec(load(name), number) for number, name in enumerate(_SCHEMAS, 1)))
_VERSIONS = reading("settled-bet", lambda _: load("settled-bet"), {"settlementVersion": {}})


def _is_from(unproven: UnprovenReplay | None, record: Record) -> bool:
    """Return whether a record was received in that replay."""
    headers = {name: value for name, value in record.headers or [] if isinstance(value, str)}
    return unproven is not None and (original_receipt(headers) or record.timestamp / 1000) >= unproven.since


@lru_cache(maxsize=20_000)
def _identity(value: bytes) -> tuple[int, bytes]:
    """Return version and fingerprint of a bet's record."""
    return _VERSIONS.decode(value)["settlementVersion"], fingerprint(value)


class Kafka:
    """The topics, each a list of records by partition, and the waiting jobs."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self.look_for_other_feeds: Callable[[], object] = lambda: None
        self.deaf = False
        self.lost = False
        """Whether commits find that another process owns the feed."""
        self.bytes_per_second = inf
        """What it takes of a process; its broker 1 says so."""
        self.opened = 0
        """How often a writer has fenced those before it."""
        self.deaths = 0
        """Of processes: what a dead one still does has no effect."""
        self.transactions = 0
        self.checked = 0
        """Transactions whose commit depended on the generation of the owner group."""
        self.handed_over: list[Record] = []
        """Of the batch in hand."""
        self.polls = 0
        """How often a job's delivery reports were taken."""
        self._log: dict[str, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
        self._newest: dict[tuple[str, int], list[int]] = defaultdict(list)
        """The highest timestamp up to each record of a partition."""
        self._jobs: deque[Callable[[], None]] = deque()
        self._left_at = self._back_at = 0.0
        self._loop = asyncio.get_running_loop()

    def away(self, seconds: float) -> None:
        """Do nothing for these seconds."""
        self._left_at = self._loop.time()
        self._back_at = self._left_at + seconds
        self._loop.call_at(self._back_at, self._work)

    @property
    def now(self) -> float:
        """Return the moment, monotonic seconds."""
        return self._loop.time()

    @property
    def session_is_over(self) -> bool:
        """Whether it is away for longer than a member keeps its place in a group."""
        return self._left_at + SESSION_MS / 1000 < self._loop.time() < self._back_at

    def submit(self, job: Callable[[], None]) -> None:
        """Do a job now, or once Kafka is back and all earlier jobs are done."""
        self._jobs.append(job)
        self._work()

    def process_died(self) -> None:
        """Discard the jobs of a producer whose process has ended. The next one is answered again."""
        self._jobs.clear()
        self.deaf = False
        self.deaths += 1

    def append(self, records: list[Record]) -> None:
        """Commit a transaction."""
        self.transactions += 1
        for record in records:
            partition = record.partition if record.partition >= 0 else crc32(record.key or b"") % PARTITIONS
            self._log[record.topic][partition].append(record)
            newest = self._newest[record.topic, partition]
            newest.append(max(record.timestamp, newest[-1] if newest else 0))

    def ends(self, topic: str) -> list[int]:
        """Return the end offset of each partition."""
        return [len(self._log[topic][partition]) for partition in range(PARTITIONS)]

    @property
    def stored(self) -> StoredState:
        """How it is read."""
        return StoredState(self.judge_topics, self.agree_on_topics, self.restore, self.refuse_other_feeds)

    def judge_topics(self, *_: object) -> None:
        """They are as they must be."""

    def refuse_other_feeds(self, *_: object) -> None:
        """Raise if a test says so."""
        self.look_for_other_feeds()

    def agree_on_topics(self, checkpoint: Checkpoint | None, *_: object) -> tuple[TopicReach, ...]:
        """Return the topics of the checkpoint, or as they are (`ReachReader.agree`)."""
        if checkpoint is not None and checkpoint.topics:
            return checkpoint.topics
        return tuple(
            as_seen(topic.name, TopicSeen("id", tuple(self.ends(topic.name))))
            for topic in self.topics.of_messages()
        )

    def records(self, topic: str) -> list[Record]:
        """Return all records of a topic.

        Records with the same key are in the order in which they were written.
        """
        return [record for partition in self._log[topic].values() for record in partition]

    def checkpoint(self) -> bytes | None:
        """Return the value of the last checkpoint."""
        records = self.records(self.topics.checkpoints.name)
        return records[-1].value if records else None

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Return all checkpoints ever committed."""
        records = self.records(self.topics.checkpoints.name)
        return [Checkpoint.from_avro(CODECS.checkpoints.decode(record.value or b"")) for record in records]

    @property
    def gaps(self) -> list[FeedGap]:
        """Return all declared gaps."""
        return [
            FeedGap.from_avro(CODECS.gaps.decode(r.value or b"")) for r in self.records(self.topics.gaps.name)
        ]

    def restore(
        self, since: float, _give_up: GiveUp, _on_delay: OnDelay, unproven: UnprovenReplay | None
    ) -> Deduplicator:
        """Restore the deduplicator as `bridge.stored.restore` does."""
        deduplicator = Deduplicator()
        for record in self._since(self.topics.bets.name, since, KEPT):
            version, content = _identity(record.value or b"")
            brought, at = _is_from(unproven, record), record.timestamp / 1000
            deduplicator.publish(record.key or b"", version, content, at, brought=brought)
        for record in self._since(self.topics.deadletters.name, since, LETTERS):
            if dict(record.headers or []).get("kind") != SAMPLE.decode():
                brought, at = _is_from(unproven, record), record.timestamp / 1000
                deduplicator.record_dead_letter(record.key or b"", at, brought=brought)
        return deduplicator

    def _since(self, topic: str, since: float, least: int) -> Iterator[Record]:
        """Yield the records of each partition from the first one that is as new as that, but `least`."""
        for number, partition in self._log[topic].items():
            first = bisect_left(self._newest[topic, number], int(since * 1000))
            first = max(0, min(first, len(partition) - least // 6))
            yield from islice(partition, first, None)

    def _work(self) -> None:
        while self._jobs and self._loop.time() >= self._back_at:
            self._jobs.popleft()()


class MemoryWriter:
    """A transactional producer of one process (`bridge.service.interfaces.Writer`)."""

    def __init__(self, kafka: Kafka, refuse_other_feeds: Callable[[], object] = lambda: None) -> None:
        self._kafka = kafka
        self._refuse_other_feeds = refuse_other_feeds
        self._deaths, self._opened = kafka.deaths, kafka.opened
        self.pace = KafkaPace(BatchSettings().max_bytes)
        self._takes = 0.0
        """How long the job at hand takes, in seconds."""

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Do a job in its turn."""
        future: Future[T] = Future()

        def work() -> None:
            self._takes = 0.0
            end: Callable[[], None]
            try:
                end = partial(future.set_result, job())
            except (NotOwner, TopologyError, TooMuch) as error:
                end = partial(future.set_exception, error)
            else:
                if self._kafka.deaf:
                    return
            if self._takes:
                asyncio.get_running_loop().call_later(self._takes, end)
            else:
                end()

        if self._deaths == self._kafka.deaths:
            self._kafka.submit(work)
        return future

    def open(self) -> bytes | None:
        """Return the committed checkpoint. Raises TopologyError if another feed goes before this one."""
        self._refuse_other_feeds()
        self._kafka.opened = self._opened = self._kafka.opened + 1
        return self._kafka.checkpoint()

    def write(self, batch: Batch) -> None:
        """Do nothing yet: uncommitted records cannot be read."""
        self._kafka.handed_over = list(batch.records)

    def poll(self) -> None:
        """Count the calls."""
        self._kafka.polls += 1

    def commit(
        self, batch: Batch, complete: Complete, *, check_generation: bool = False, divisible: bool = False
    ) -> None:
        """Commit the batch as a whole or not at all. Raises NotOwner and TooMuch."""
        if self._kafka.lost or self._kafka.opened != self._opened:
            raise NotOwner("another process owns the feed")
        if seconds := batch.bytes / self._kafka.bytes_per_second:
            self._takes = min(seconds, LONGEST_SECONDS)
            self.pace.on_throttle(1, self._takes, self._kafka.now)
            if seconds > LONGEST_SECONDS and divisible:
                raise TooMuch("on purpose", LONGEST_SECONDS / seconds, LONGEST_SECONDS)
        self._kafka.checked += check_generation
        ends = self._kafka.ends
        firsts = {(r.topic, r.partition): ends(r.topic)[r.partition] for r in batch.records if r.first}
        self._kafka.append([*batch.records, complete(batch.reached(firsts))])

    def close(self, *, abandon: bool = False) -> None:
        """Nothing is left to be done."""

"""Writes batches of the feed, each in a transaction with the checkpoint that covers it.

Records go to the broker as they arrive, in the open transaction; `commit` adds the checkpoint and commits.
During a commit, new records wait in the next batch. A batch is kept until it is committed, so that it can be
written again. All calls that may block run on one worker thread (decision 0004).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any, NoReturn, TypeVar

from confluent_kafka import KafkaException, Producer, TopicPartition

from bridge.config import Settings
from bridge.errors import NotOwner, SinkBroken
from bridge.kafka import clients
from bridge.kafka.batch import Batch, Reached, Record
from bridge.kafka.blocking import Worker, destroy_in_background
from bridge.kafka.errors import ErrorAction, KafkaUnavailable, TooMuch, refusal, triage
from bridge.kafka.outage import outage_of
from bridge.kafka.pace import KafkaPace
from bridge.kafka.patience import CALL_SECONDS
from bridge.kafka.transactions import LONGEST_INIT_SECONDS, TransactionalWriter
from bridge.log import get
from bridge.ownership.election import LeaderElection
from bridge.ownership.group import Group
from bridge.ownership.lost_record_guard import LostRecordGuard
from bridge.records.topics import max_record_bytes

T = TypeVar("T")
ReadMarker = Callable[..., bytes | None]
"""Reads back the committed checkpoint, as `CheckpointReader.last`, and may raise."""
Complete = Callable[[Reached], Record]
"""Returns the record of a checkpoint of topics that reach this far. Raises TopologyError."""

STUCK_SECONDS = 15.0
MAX_FAILURES = 3
CLOSE_SECONDS = 2.0


def transactional_id(settings: Settings) -> str:
    """Return the feed's transactional id: a new producer with it fences the one before."""
    return f"{settings.topics.prefix}.{settings.feed.name}"


def transactional(settings: Settings, pace: KafkaPace | None = None) -> Producer:
    """Create the feed's producer, which fences no other before its `init_transactions`."""
    return clients.producer(
        settings.kafka,
        transactional_id=transactional_id(settings),
        max_record_bytes=max_record_bytes(settings.feed),
        pace=pace,
    )


def try_open(settings: Settings, members: Callable[[], Group]) -> bool:
    """Open a writer of a feed that nobody owns, and close it. Returns False if its group has `members`.

    Raises SinkBroken if Kafka refuses that, KafkaUnavailable without an answer.
    """
    producer = transactional(settings)
    try:
        clients.warm_up(producer)
        if members().members:
            return False
        producer.init_transactions(LONGEST_INIT_SECONDS)
        return True
    except KafkaException as exception:
        error = exception.args[0]
        if triage(error) is ErrorAction.REFUSED:
            raise SinkBroken(refusal(transactional_id(settings), error)) from None
        raise KafkaUnavailable(outage_of(settings.kafka).explain(error)) from None
    finally:
        destroy_in_background(producer)


class _Term:
    """The writer's lease: one term of leadership of the feed."""

    def __init__(
        self, election: LeaderElection, committed: ReadMarker, on_error: Callable[[str], None]
    ) -> None:
        self.abandoned = threading.Event()
        self.trouble = ""
        """Why the last attempt of this commit failed."""
        self._election = election
        self._term = election.term
        self._committed = committed
        self._on_error = on_error

    def confirm(self) -> None:
        if not self._election.confirm(self._is_over, self._on_error) or self._is_over():
            self._end("another process owns the feed")

    def committed(self, *, visible: bool) -> bytes | None:
        found = self._committed(self._is_over, self._on_error, visible=visible)
        self.check()
        return found

    def check_sentinel(self, found: bytes | None, last: bytes | None) -> None:
        if found != last:
            raise NotOwner("another process has written a checkpoint of this feed")

    def offsets(self) -> tuple[list[TopicPartition], Any]:
        return self._election.offsets()

    def pause(self, reason: str, seconds: float) -> None:
        self.trouble = reason
        self._on_error(reason)
        self.abandoned.wait(seconds)
        self.check()

    def check(self) -> None:
        if self._is_over():
            self._end("another process owns the feed, or this one is ending")

    def _end(self, reason: str) -> NoReturn:
        self._election.check()  # without a right the feed is lost, but to nobody
        raise NotOwner(f"{reason}; before: {self.trouble}" if self.trouble else reason)

    def _is_over(self) -> bool:
        return self.abandoned.is_set() or not self._election.holds(self._term)


class BatchWriter:
    """Writes batches one after the other.

    The worker thread calls `on_error` with Kafka's error before each further attempt. What the `guard`
    finds lost is written again.
    """

    def __init__(
        self,
        settings: Settings,
        election: LeaderElection,
        committed: ReadMarker,
        on_error: Callable[[str], None],
        guard: LostRecordGuard,
    ) -> None:
        self._term = _Term(election, committed, on_error)
        self._guard = guard
        self.pace = KafkaPace(settings.batch.max_bytes)
        self._given_up: dict[int, Record] = {}
        """What was too much and is not committed yet, in parts, by its identity."""
        self._worker = Worker("kafka")
        self._writer = TransactionalWriter(
            transactional_id(settings),
            lambda: transactional(settings, self.pace),
            self._term,
            self.pace,
            outage_of(settings.kafka),
            call_seconds=CALL_SECONDS,
            stuck_seconds=STUCK_SECONDS,
            max_failures=MAX_FAILURES,
        )

    # Called by the event loop.

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job for the worker thread, after all queued before."""
        return self._worker.submit(job)

    def write(self, batch: Batch) -> None:
        """Produce the new records of the batch, until the client's queue is full.

        Never blocks, and leaves errors and the rest to `commit`. Must not be called while a job runs.
        """
        self._writer.produce_ready(batch.records)

    def poll(self) -> None:
        """Take delivery reports off a job that waits for many: never blocks."""
        self._writer.poll()

    def close(self, *, abandon: bool = False) -> None:
        """End the worker. `abandon` drops uncommitted records; a replay repeats them."""
        if abandon:
            self._term.abandoned.set()
        self._worker.submit(self._writer.close)
        self._worker.close(0 if abandon else CLOSE_SECONDS)

    # Jobs for `run`.

    def open(self) -> bytes | None:
        """Fence every earlier owner; return the committed checkpoint. Raises as `commit`."""
        self._writer.last = self._writer.retry(self._reopen)
        return self._writer.last

    def _reopen(self) -> bytes | None:
        found = self._writer.reopen()
        self._guard.begin()
        return found

    def commit(
        self, batch: Batch, complete: Complete, *, check_generation: bool = False, divisible: bool = False
    ) -> None:
        """Commit the batch with the checkpoint that covers it, however long Kafka is unavailable.

        The checkpoint says how far the topics reach with this transaction, which is known once its records
        are delivered: then `complete` makes it, in each attempt. What that raises ends the commit.

        The transactional id fences a former owner once its successor has opened a writer. With
        `check_generation`, the coordinator of the owner group must also accept this process as a member.
        Raises NotOwner if another process owns the feed, SinkBroken and TopologyError if an operator has to
        act, TooMuch if the batch is `divisible` and the next one must hold less.
        """
        writer, records, self._term.trouble = self._writer, batch.records, ""
        checkpoint: Record | None = None

        def fill() -> bytes | None:
            nonlocal checkpoint
            if checkpoint is None or writer.written <= len(records):  # otherwise it was produced with them
                writer.produce_blocking(records[writer.written :])
                writer.flush()
                checkpoint = complete(batch.reached(writer.offsets))
                writer.produce_blocking([checkpoint])
            return checkpoint.value

        def restore() -> None:
            """Write again what an abort has discarded although Kafka had acknowledged it, before the rest."""
            if lost := self._guard.find_lost([*self._given_up.values(), *records]):
                get().warning("acknowledged records were discarded, writing them again", count=len(lost))
            batch.restore(lost)

        def mend() -> bytes | None:
            found = complete({})  # it is aborted with the others
            writer.produce_blocking([*_one_a_partition([*self._given_up.values(), *records]), found])
            return found.value

        try:
            writer.commit(
                fill, check_generation=check_generation, aborted=restore, mend=mend, divisible=divisible
            )
        except TooMuch:
            self._given_up |= {id(record): record for record in records}
            raise
        for record in records if self._given_up else ():
            self._given_up.pop(id(record), None)
        self._guard.note_commit(records)


def _one_a_partition(records: Iterable[Record]) -> list[Record]:
    """Return the first record of each partition, and all whose partition is not known."""
    found: dict[object, Record] = {}
    for record in records:
        found.setdefault((record.topic, record.partition) if record.partition >= 0 else record, record)
    return list(found.values())

"""The one wrapper of the transactional producer, with a worker thread for all that may block.

Records go to the broker as they come, into the open transaction; `commit` adds the checkpoint and the
leadership group's offset and commits. While it does, nothing can be produced: what comes meanwhile
waits in the next batch. A batch is kept until it is committed, so whatever goes wrong, it is
written again or found to have been committed, never guessed at:

    retry      the same call again, for as long as Kafka is away
    abort      abort, then write the batch again
    reopen     ask whether we still own the feed, then a new producer with the same transactional id
               (which ends whatever the old one left), then read the checkpoint back: is it ours?
    refused    stop: a right is missing, or a record is one that the topic will never take, such as those of
               a clock that is an hour ahead
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from bridge.config import Settings
from bridge.errors import NotOwner, SinkBroken
from bridge.kafka import clients
from bridge.kafka.batch import Batch, Record
from bridge.kafka.blocking import Watchdog, Worker, discard
from bridge.kafka.election import LeaderElection
from bridge.kafka.errors import ErrorAction, KafkaUnavailable, cause, refusal, triage
from bridge.kafka.topics import max_record_bytes
from bridge.log import get

T = TypeVar("T")

CALL_SECONDS = 2.0
"""Asked of each call that may block; some take five times as long."""
INIT_SECONDS = 10.0
"""Not called again on the same producer: a time-out ends in a new one."""
STUCK_SECONDS = 15.0
"""A call that has not returned by then never will."""
PATIENT_RETRIES = 3
"""After so many failures in a row a new producer is tried, also where the error says to try again."""
CLOSE_SECONDS = 2.0
LONGEST_REST_SECONDS = 2.0


def rest_seconds(failures: int) -> float:
    """How long to leave Kafka alone after so many failures before this one: growing, with jitter."""
    return min(LONGEST_REST_SECONDS, 0.05 * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1.0)


def produce(
    producer: Producer,
    record: Record,
    on_delivery: Callable[[KafkaError | None, Message], None] | None = None,
) -> None:
    """Give a record to the client, which copies it. Raises BufferError while the client's queue is full."""
    producer.produce(
        record.topic,
        value=record.value,
        key=record.key,
        partition=record.partition,
        timestamp=record.timestamp,
        headers=record.headers,
        on_delivery=on_delivery,
    )


def produce_blocking(
    producer: Producer,
    record: Record,
    while_full: Callable[[], object],
    on_delivery: Callable[[KafkaError | None, Message], None] | None = None,
) -> None:
    """`give`, but while the client's queue is full, wait, and call `while_full`, which may raise."""
    while True:
        try:
            produce(producer, record, on_delivery)
            return
        except BufferError:
            producer.poll(0.05)
            while_full()


def transactional_id(settings: Settings) -> str:
    """Whoever uses it next fences whoever used it before."""
    return f"{settings.topics.prefix}.{settings.feed.name}"


def transactional(settings: Settings) -> Producer:
    """The feed's producer, which fences nobody before its `init_transactions`. Raises as `kafka.producer`."""
    return clients.producer(
        settings.kafka,
        transactional_id=transactional_id(settings),
        max_record_bytes=max_record_bytes(settings),
    )


class TransactionalWriter:
    """Writes batches one after the other, each in a transaction of its own.

    `trouble` is called on the worker thread with what Kafka says when something failed and is tried
    again. `committed` reads back the value of the feed's checkpoint, as `bridge.state.restore.Store` does.
    """

    def __init__(
        self,
        settings: Settings,
        leadership: LeaderElection,
        committed: Callable[[Callable[[], bool], Callable[[str], None]], bytes | None],
        trouble: Callable[[str], None],
    ) -> None:
        self.transactional_id = transactional_id(settings)
        self._settings = settings
        self._leadership = leadership
        self._committed = committed
        self._trouble = trouble
        self._term = leadership.term
        self._abandoned = threading.Event()
        self._worker = Worker("kafka")
        self._watchdog = Watchdog(STUCK_SECONDS)
        self._producer: Producer | None = None
        self._last: bytes | None = None
        """The checkpoint that this writer knows to be the committed one."""
        self._begun = False
        self._written = 0
        """How many records of the batch in hand are in the open transaction."""
        self._sealed = False
        """Whether the leadership group's offset is in it too: nothing is left but to commit."""
        self._failures = 0

    # Called by the event loop.

    def run(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job for the worker thread, behind everything queued before."""
        return self._worker.submit(job)

    def open(self) -> bytes | None:
        """Fence every earlier owner; returns the committed checkpoint. A job for `run`.

        Raises NotOwner and SinkBroken.
        """
        while True:
            try:
                self._reopen()
                self._failures = 0
                return self._last
            except KafkaException as exception:
                self._face(exception.args[0])

    def write(self, batch: Batch) -> None:
        """Hand to the broker what the batch has gained, as far as the client's queue takes it.

        Called while no job is under way. It does not wait; `commit` faces what fails, and what is left.
        """
        producer, records = self._producer, batch.records
        if producer is None or self._written == len(records):
            return
        try:
            self._begin(producer)
            while self._written < len(records):
                produce(producer, records[self._written])
                self._written += 1
            producer.poll(0)  # the reports of what was delivered, of which nobody wants to know
        except BufferError:
            producer.poll(0)
        except KafkaException as exception:
            get().debug("the transaction is in trouble", error=str(exception.args[0]))

    def commit(self, batch: Batch, checkpoint: Record) -> None:
        """Commit the batch with the checkpoint that covers it. A job for `run`.

        Returns when a `read_committed` reader can see it, however long Kafka is away. Raises NotOwner
        when the feed belongs to another process now, and SinkBroken when a person has to act.
        """
        batch.add(checkpoint)
        while True:
            try:
                if self._producer is None and self._reopen(awaited=checkpoint.value):
                    break
                self._commit(batch)
                break
            except KafkaException as exception:
                answer = self._face(exception.args[0])
                if answer is ErrorAction.RETRY and self._failures >= PATIENT_RETRIES:
                    # Seen: a coordinator that is back, and a client that never finds it again.
                    answer = ErrorAction.REOPEN
                if answer is ErrorAction.ABORT:
                    self._abort()
                elif answer is ErrorAction.REOPEN:
                    self._discard()
        self._last = checkpoint.value
        self._forget()
        self._failures = 0

    def close(self, *, abandon: bool = False) -> None:
        """End the worker. `abandon` gives up what is not committed; a replay brings it back."""
        if abandon:
            self._abandoned.set()
        self._worker.submit(self._close)
        self._worker.close(0 if abandon else CLOSE_SECONDS)

    # On the worker thread.

    def _gone(self) -> bool:
        return self._abandoned.is_set() or not self._leadership.holds(self._term)

    def _must_own(self) -> None:
        if self._gone():
            raise NotOwner("another process owns the feed, or this one is ending")

    def _face(self, error: KafkaError) -> ErrorAction:
        """What the error asks for, after a rest that grows, with jitter.

        Raises SinkBroken when a person has to act, NotOwner when there is nothing left to wait for.
        """
        if self._producer is not None:
            error = cause(self._producer, error)
        answer = triage(error)
        get().debug("a transaction failed", error=error.str(), code=error.name(), answer=answer.name)
        if answer is ErrorAction.REFUSED:
            raise SinkBroken(refusal(self.transactional_id, error))
        self._trouble(error.str())
        self._abandoned.wait(rest_seconds(self._failures))
        self._failures += 1
        self._must_own()
        return answer

    def _forget(self) -> None:
        """There is no open transaction."""
        self._begun, self._written, self._sealed = False, 0, False

    def _begin(self, producer: Producer) -> None:
        if not self._begun:
            producer.begin_transaction()  # asks nobody: it opens on the broker with its first record
            self._begun = True

    def _commit(self, batch: Batch) -> None:
        producer = self._need()
        if not self._sealed:
            self._begin(producer)
            while self._written < len(batch.records):
                produce_blocking(producer, batch.records[self._written], self._must_own)
                self._written += 1
            offsets, group = self._leadership.offsets()
            self._watchdog.call(partial(producer.send_offsets_to_transaction, offsets, group, CALL_SECONDS))
            self._sealed = True
        self._watchdog.call(partial(producer.commit_transaction, CALL_SECONDS))

    def _discard(self) -> None:
        if self._producer is not None:
            discard(self._producer)
            self._producer = None

    def _abort(self) -> None:
        """Abort the open transaction, or give the producer up where even that is refused."""
        while self._producer is not None:
            try:
                self._watchdog.call(partial(self._producer.abort_transaction, CALL_SECONDS))
                self._forget()
                return
            except KafkaException as exception:
                if self._face(exception.args[0]) is not ErrorAction.RETRY:
                    self._discard()

    def _reopen(self, awaited: bytes | None = None) -> bool:
        """A new producer; returns whether the checkpoint `awaited` had been committed after all.

        An owner that was paused must not fence the rightful one, so the coordinator is asked first.
        """
        if not self._leadership.confirm(self._gone) or self._gone():
            raise NotOwner("another process owns the feed")
        try:
            producer = transactional(self._settings)
        except KafkaUnavailable as error:
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, str(error))) from None
        self._watchdog.call(partial(producer.init_transactions, INIT_SECONDS))
        found = self._committed(self._gone, self._trouble)
        self._must_own()
        if awaited is None:
            self._last = found
        elif found not in (self._last, awaited):
            raise NotOwner("another process has written a checkpoint of this feed")
        self._producer = producer
        self._forget()
        return awaited is not None and found == awaited

    def _need(self) -> Producer:
        assert self._producer is not None, "the writer is not open"
        return self._producer

    def _close(self) -> None:
        if self._producer is not None and self._begun:
            try:
                self._producer.purge()
                self._watchdog.call(partial(self._producer.abort_transaction, 1.0))
            except KafkaException as exception:
                get().debug("the last transaction is left to its time-out", error=str(exception.args[0]))
        self._discard()
        self._watchdog.close()

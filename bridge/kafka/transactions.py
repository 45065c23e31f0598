"""Writes transactions exactly once, whatever errors the producer raises.

A transaction is the records of the caller, a sentinel among them. The sentinel (a checkpoint, a Snapshot
record) is unique, so reading it back shows whether a commit took place. The transactional id fences every
earlier writer; where the caller asks for it, an offset of the owner group also fences one that the group has
replaced (decision 0021). An error leads to one of these (`ErrorAction`):

    retry      repeat the call, while Kafka is unavailable
    abort      abort, write and abort once more what Kafka may have left open (decision 0036), write again
    reopen     confirm that this process still holds the lease, so that a paused one never fences the rightful
               owner; create a producer with the same transactional id, which ends the old one's transaction;
               read the sentinel back. If it is this transaction's, the commit took place; if it is the one
               before, go on as after an abort; any other was written by another owner
    give up    raise TooMuch instead of either, where the caller may write less: what is slow is written in
               smaller pieces (decision 0047)
    refused    raise SinkBroken: a right is missing, or the topic will never accept a record, for example
               because the clock is an hour ahead; TopologyError without the right to read the owner group
"""

from __future__ import annotations

import enum
import random
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from bridge.errors import SinkBroken, TopologyError
from bridge.kafka import clients
from bridge.kafka.batch import Record
from bridge.kafka.blocking import CallTimeout, checked, destroy_in_background
from bridge.kafka.errors import ErrorAction, KafkaUnavailable, TooMuch, cause, is_consequence, refusal, triage
from bridge.kafka.outage import Outage
from bridge.kafka.pace import KafkaPace
from bridge.kafka.patience import patience
from bridge.log import get

T = TypeVar("T")

INIT_SECONDS = 10.0
LONGEST_INIT_SECONDS = 18.0
FLUSH_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 2.0
LONGEST_SECONDS = 20.0
"""What would take longer to deliver is given up: the broker aborts a transaction of 30 s."""


def backoff_seconds(failures: int) -> float:
    """Return the pause after a failure, given the number of failures before it: it grows, with jitter."""
    return min(MAX_BACKOFF_SECONDS, 0.05 * 2.0 ** min(failures, 10)) * random.uniform(0.5, 1.0)


class _Phase(enum.Enum):
    CLOSED = "no producer that has fenced its predecessors, and whose last sentinel was read"
    EMPTY = "no transaction is open"
    OPEN = "records may be produced"
    DELIVERED = "complete; the commit is missing"
    FAILED = "must be aborted"


class Lease(Protocol):
    """The right to write as a transactional id. Each method may raise to end the attempts."""

    def confirm(self) -> None:
        """Return when the coordinator has confirmed that this process holds the lease."""

    def committed(self, *, visible: bool) -> bytes | None:
        """Read back the last committed sentinel; None before the first.

        Waits for open transactions to end, unless only what is `visible` now is wanted.
        """

    def check_sentinel(self, found: bytes | None, last: bytes | None) -> None:
        """Raise if the sentinel `found` is not the `last` one of this process."""

    def offsets(self) -> tuple[list[TopicPartition], Any]:
        """Return the arguments of `send_offsets_to_transaction` that fail the commit of a stale holder."""

    def pause(self, reason: str, seconds: float) -> None:
        """Report a failure and wait before the next attempt."""

    def check(self) -> None:
        """Raise if writing must not continue."""


class _Client:
    """The producer in use, and what it reports of the records in the open transaction."""

    def __init__(self) -> None:
        self.producer: Producer | None = None
        self.polling = threading.Lock()
        """Held while `poll` has a reference to the producer, which must not be the last."""
        self.topics: set[str] = set()
        """Those that were written by any producer."""
        self.begin()

    def begin(self) -> None:
        """Forget what was reported: a transaction begins."""
        self.undelivered: KafkaError | None = None
        self.offsets: dict[tuple[str, int], int] = {}
        """By topic and partition: where the `first` record lies, once the transaction was flushed."""
        self.note = partial(_note_offset, self.offsets)  # of this transaction, however late it is called

    def poll(self) -> None:
        """Discard delivery reports. Raises nothing."""
        with self.polling, suppress(KafkaException):
            if self.producer is not None:
                checked(self.producer.poll, 0)

    def discard(self) -> None:
        """Let the producer go, without waiting for its end."""
        with self.polling:
            if self.producer is not None:
                destroy_in_background(self.producer)
            self.producer = None

    def delivered(self, error: KafkaError | None, _: Message) -> None:
        """Take a report; the error counts that is not only the consequence of another one."""
        if self.undelivered is None or is_consequence(self.undelivered):
            self.undelivered = error or self.undelivered


def _note_offset(offsets: dict[tuple[str, int], int], error: KafkaError | None, message: Message) -> None:
    # A broker that takes a record for a repetition need not know its offset any more.
    if error is None and (offset := message.offset()) is not None and offset >= 0:
        offsets[message.topic() or "", message.partition() or 0] = offset


@dataclass
class _Effort:
    """The attempts at one thing."""

    most_failures: int
    """After so many in a row, the producer is replaced."""
    failures: int = 0
    """In a row so far."""
    divisible: bool = False
    """Whether the caller of `commit` may write less instead."""
    slow: TooMuch | None = None
    """How far the delivery has come, if it takes long."""


class TransactionalWriter:
    """Writes one transaction after the other with one producer at a time. Its calls block.

    `call_seconds` is the time-out given to each call; some take five times as long, and all longer where
    `patience` says so. A call that has not returned after `stuck_seconds` never will, so its producer is
    replaced (decision 0009). A producer is also replaced after `max_failures` failures in a row, whatever the
    error, unless the `pace` knows of a quota that holds back the answer. Seen: a client that never found its
    coordinator again.
    """

    def __init__(
        self,
        transactional_id: str,
        make: Callable[[], Producer],
        lease: Lease,
        pace: KafkaPace,
        outage: Outage,
        *,
        call_seconds: float,
        stuck_seconds: float,
        max_failures: int,
    ) -> None:
        self.transactional_id = transactional_id
        self.written = 0
        """Records in the open transaction."""
        self.asked: bytes | None = None
        """The sentinel whose commit was requested, until the outcome is known."""
        self.last: bytes | None = None
        """The last sentinel known to be committed."""
        self._make = make
        self._lease = lease
        self._pace = pace
        self._outage = outage
        self._call_seconds = call_seconds
        self._calls = CallTimeout(stuck_seconds)
        self._client = _Client()
        self._effort = _Effort(max_failures)
        self._phase = _Phase.CLOSED
        self._left_open = False
        """Whether records may be in the log of a transaction that was ended without its markers."""

    @property
    def offsets(self) -> Mapping[tuple[str, int], int]:
        """By topic and partition: where the `first` record lies, once the open transaction was flushed."""
        return self._client.offsets

    def retry(self, attempt: Callable[[], T]) -> T:
        """Call `attempt` until it succeeds. Raises SinkBroken if an operator has to act, and as the lease."""
        self._effort.failures = 0
        while True:
            try:
                if self._phase is _Phase.FAILED:
                    self._abort()
                return attempt()
            except KafkaException as exception:
                recover = partial(self._recover, exception.args[0])
            except KafkaUnavailable as error:
                recover = partial(self._wait, str(error))
            # Not before the exception is handled: the client would keep it for ever (decision 0009).
            recover()

    def reopen(self) -> bytes | None:
        """Fence all other producers of the transactional id; return its last sentinel, now final."""
        self._discard()
        self._lease.confirm()
        self._client.producer = producer = self._make()
        self._call(clients.warm_up, producer)
        self._call(producer.init_transactions, min(INIT_SECONDS * patience.factor, LONGEST_INIT_SECONDS))
        # A commit that was never requested cannot have taken place, whatever is still hidden.
        found = self._lease.committed(visible=self._left_open and self.asked is None)
        self._phase = _Phase.EMPTY
        return found

    def commit(
        self,
        fill: Callable[[], bytes | None],
        *,
        check_generation: bool,
        aborted: Callable[[], None] = lambda: None,
        mend: Callable[[], bytes | None] | None = None,
        divisible: bool = False,
    ) -> None:
        """Commit the transaction that `fill` completes; return when `read_committed` consumers can see it.

        `fill` produces the missing records and returns the sentinel. It is called again after an abort or
        with a new producer. Without a sentinel, a transaction whose commit was not answered is written again.
        With `check_generation`, the coordinator of the owner group must accept this process as a member
        before the commit is requested. `aborted` is called after an abort, before the transaction is written
        again. `mend` replaces `fill` for what only reaches the partitions of a transaction that was left
        open. Raises as `retry` and `aborted`; `asked` is then the sentinel whose outcome is unknown. TooMuch
        if it is `divisible` and was not delivered in time: the next commit has to `mend` its partitions.
        """
        self.asked = None
        self._effort.divisible, self._effort.slow = divisible, None
        self.retry(partial(self._attempt, fill, mend or fill, check_generation, aborted))
        self.asked = None
        self._left_open = False
        self._outage.over()
        self._reset(_Phase.EMPTY)

    def begin(self) -> None:
        """Begin a transaction. Sends no request: the broker opens it with the first record."""
        self._need().begin_transaction()
        self._phase = _Phase.OPEN
        self._client.begin()

    def produce_ready(self, records: Sequence[Record]) -> None:
        """Produce the records after the first `written` ones, until the client's queue is full.

        Never blocks, and leaves errors to `commit`. Must not be called during another call.
        """
        producer = self._client.producer
        if producer is None or self._phase is _Phase.CLOSED or self.written == len(records):
            return
        try:
            if self._phase is _Phase.EMPTY:
                self.begin()
            self._produce(producer, islice(records, self.written, None))
            checked(producer.poll, 0)  # discards the delivery reports
        except KafkaException as exception:
            get().debug("producing failed", error=str(exception.args[0]))

    def poll(self) -> None:
        """Discard delivery reports that a call on another thread waits for. Never blocks, and raises nothing.

        For each report, that thread would take the interpreter lock from the one that handles messages. After
        the last one, a `flush` returns up to 10 ms later.
        """
        self._client.poll()

    def produce_blocking(self, records: Iterable[Record], on_delivery: Any = None) -> None:
        """Produce the records, waiting while the client's queue is full."""
        producer = self._need()
        if self._phase is _Phase.EMPTY:
            self.begin()
        for record in records:
            while not self._produce(producer, [record], on_delivery):
                checked(producer.poll, 0.05)
                self._lease.check()

    def deliver(self, records: Iterable[Record]) -> None:
        """Produce the records and wait until the broker has them. Raises the error of one that it refuses.

        The calls after it would only say that the transaction has failed.
        """
        self.produce_blocking(records, self._client.delivered)
        while checked(self._need().flush, FLUSH_SECONDS):
            self._lease.check()
        if self._client.undelivered is not None:
            raise KafkaException(self._client.undelivered)

    def close(self) -> None:
        """Abort an open transaction, which would hide later records, and end the producer."""
        producer = self._client.producer
        if producer is not None and self._phase not in (_Phase.CLOSED, _Phase.EMPTY):
            try:
                producer.purge()
                self._call(producer.abort_transaction, 1.0)
            except KafkaException as exception:
                get().debug("abort failed, the transaction will time out", error=str(exception.args[0]))
        del producer  # the last reference is not to be this one
        self._discard()
        self._calls.close()

    def _attempt(
        self,
        fill: Callable[[], bytes | None],
        mend: Callable[[], bytes | None],
        check_generation: bool,
        aborted: Callable[[], None],
    ) -> None:
        """Commit, from where the last attempt has failed.

        1. Without a producer, open one and read the sentinel back. If it is this transaction's, the commit
           took place; if it is neither that nor the last one, another owner has written.
        2. End what Kafka may have left open, by an abort with a record in each of its partitions.
        3. `fill` writes the records, and after them the sentinel; all are delivered.
        4. An offset of the owner group joins them, if asked for or after a failure: the coordinator refuses
           it from an owner that was replaced, and where a record was refused or the transaction has ended.
        5. Request the commit. Its answer makes the sentinel the last one.
        """
        if self._phase is _Phase.CLOSED:  # 1
            found = self.reopen()
            if self.asked is not None and found == self.asked:
                self.last = found
                return
            self._lease.check_sentinel(found, self.last)
            self.asked = None
        if self._left_open:  # 2
            self._deliver_all(mend, send_offsets=True)
            self._abort()
            aborted()
            self._left_open = False
        if self._phase is not _Phase.DELIVERED:  # 3, 4
            # Without a failure, the coordinator has just added the sentinel's partition to the transaction.
            send_offsets = check_generation or self._effort.failures > 0
            self.asked, self._phase = self._deliver_all(fill, send_offsets=send_offsets), _Phase.DELIVERED
        self._call(self._need().commit_transaction, self._seconds)  # 5
        if self.asked is not None:
            self.last = self.asked

    def _deliver_all(self, fill: Callable[[], bytes | None], *, send_offsets: bool) -> bytes | None:
        sentinel = fill()  # 3
        self.flush()
        if send_offsets:  # 4
            offsets = self._lease.offsets()
            self._call(self._need().send_offsets_to_transaction, *offsets, self._seconds)
        return sentinel

    def flush(self) -> None:
        """Wait until all records are delivered, as long as some are or a broker has said when they will be.

        Raises what leads to TooMuch if that would take longer than a transaction may.
        """
        producer, began = self._need(), time.monotonic()
        waiting, silent = (total := len(producer)), 0.0
        while left := checked(producer.flush, self._call_seconds):
            self._lease.check()
            now = time.monotonic()
            silent += self._call_seconds
            if left < waiting:
                self._pace.alive(now)
                silent = 0.0
            spent, delivered = now - began, 1 - left / max(total, left)
            text = f"{left} records were not delivered within {spent:.0f} s"
            self._effort.slow = TooMuch(text, delivered, spent)
            if silent >= self._seconds and not self._pace.moves(now):
                if gone := self._gone():
                    text += f": {' and '.join(gone)} {'is' if len(gone) == 1 else 'are'} gone"
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text, retriable=True))
            if self._effort.divisible and spent > LONGEST_SECONDS * max(delivered, 0.4):
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, text, txn_requires_abort=True))
            waiting = left
        with self._client.polling:  # a report that `poll` has taken is noted
            pass

    def _gone(self) -> list[str]:
        """Return the topics that brokers do not list: somebody has deleted them."""
        try:
            listed = self._need().list_topics(timeout=FLUSH_SECONDS).topics
        except KafkaException:
            return []
        return sorted(self._client.topics - listed.keys())

    def _abort(self) -> None:
        self._left_open = True
        self._call(self._need().abort_transaction, self._seconds)
        self.asked = None  # nothing of it was committed
        self._reset(_Phase.EMPTY)

    @property
    def _seconds(self) -> float:
        """The time-out of a call."""
        return self._call_seconds * patience.factor

    def _call(self, call: Callable[..., object], *arguments: Any) -> None:
        began = time.monotonic()
        self._calls.call(partial(call, *arguments))
        patience.answered(time.monotonic() - began)

    def _produce(self, producer: Producer, records: Iterable[Record], on_delivery: Any = None) -> bool:
        """Pass records to the client, which copies them. Return whether all of them fit into its queue."""
        produce, topics, written = producer.produce, self._client.topics, self.written
        note = self._client.note
        try:
            for record in records:
                topics.add(record.topic)
                record.produce(produce, on_delivery or (note if record.first else None))
                written += 1
        except BufferError:
            return False
        finally:
            self.written = written
        return True

    def _recover(self, error: KafkaError) -> None:
        """Prepare for another attempt, and pause. Raises SinkBroken if an operator has to act."""
        if self._client.producer is not None:
            error = cause(self._client.producer, error)
        if error.code() == KafkaError._TIMED_OUT:
            patience.ran_out()
        action = triage(error)
        get().debug("transaction failed", error=error.str(), code=error.name(), action=action.name)
        if action is ErrorAction.REFUSED:
            # The member of the group may miss that right just as well; the exit code must not depend on it.
            no_member = error.code() == KafkaError.GROUP_AUTHORIZATION_FAILED
            kind = TopologyError if no_member else SinkBroken
            raise kind(refusal(self.transactional_id, error, self._client.topics)) from None
        # While a broker holds back its answers, another producer would only begin anew.
        effort, throttled = self._effort, self._pace.throttled(time.monotonic())
        hopeless = effort.failures + 1 >= effort.most_failures and not throttled
        void = effort.slow if effort.divisible and self.asked is None else None
        if void is not None and (hopeless or action is not ErrorAction.RETRY):
            self._discard()
            raise void
        if action is ErrorAction.REOPEN or hopeless or self._phase is _Phase.CLOSED:
            self._discard()
        elif action is ErrorAction.ABORT:
            self._phase = _Phase.FAILED
        self._pause(self._outage.explain(error))

    def _wait(self, reason: str) -> None:
        """Wait until Kafka may be there again, for which another producer asks then."""
        self._discard()
        self._pause(reason)

    def _pause(self, reason: str) -> None:
        self._lease.pause(reason, backoff_seconds(self._effort.failures))
        self._effort.failures += 1

    def _reset(self, phase: _Phase) -> None:
        """Enter a phase in which no transaction is open."""
        self._phase, self.written = phase, 0

    def _discard(self) -> None:
        self._left_open |= self._phase not in (_Phase.CLOSED, _Phase.EMPTY)
        self._client.discard()
        self._reset(_Phase.CLOSED)

    def _need(self) -> Producer:
        assert self._client.producer is not None, "the writer is not open"
        return self._client.producer

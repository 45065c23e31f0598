"""Publishes a snapshot: what has changed, and the record that says it is whole, in one transaction.

All that a snapshot needs is there before its transaction opens. Whatever goes wrong then, it is written
again from the beginning, or found to have been committed, never guessed at, until a last moment where there
is one:

    make sure that the lock is ours, or win it again: an outage may outlast a session
    → a new producer with the same transactional id, which ends whatever the old one left
    → read the job's last Snapshot record back: is it ours, or still the one before?

What will never be accepted is not tried again: a right that is missing, records of a wrong clock, a topic
that is gone. One that was made anew meanwhile lacks what has not changed, and this run would not write it.

Only the job writes to its topic. So the high watermarks that are read inside the transaction, when all its
records have arrived, are where the snapshot ends: its last record is below them, and the marker of its
commit, which no reader sees, is the first thing above. A partition without a record of it ends where the
last snapshot has left it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Final, Self, TypeVar

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from bridge import clock
from bridge.config import Settings
from bridge.errors import NotCommitted, NotOwner, SinkBroken, TopologyError
from bridge.kafka import admin, clients, topics
from bridge.kafka.batch import Record
from bridge.kafka.blocking import Watchdog, discard
from bridge.kafka.election import LeaderElection
from bridge.kafka.errors import ErrorAction, KafkaUnavailable, cause, follows, refusal, triage
from bridge.kafka.reader import ends_of
from bridge.kafka.transactions import produce_blocking, rest_seconds
from bridge.log import get
from bridge.snapshots import storage
from bridge.snapshots.lock import POLL_SECONDS, REGAIN_SECONDS, taken_over
from bridge.snapshots.model import Job, Offsets, Snapshot
from bridge.snapshots.presence import Presence

T = TypeVar("T")

CALL_SECONDS = 10.0
"""Asked of each call that may block."""
STUCK_SECONDS = 30.0
"""A call that has not returned by then never will."""
TRANSACTION_MS: Final = 300_000
"""For a million records, on a cluster that is slow. The next run ends what a dead one has left open."""
QUEUE_KBYTES: Final = 32_768
"""Records on their way to the broker: a snapshot need not be twice in memory."""
MAX_RECORD_BYTES: Final = 1_000_000
"""What a topic takes unless told otherwise, and far more than the names of one thing."""
FLUSH_SECONDS = 0.5
LOCK_IS_LOST: Final = "the lock has to be won again"


class Publisher:
    """Publishes the snapshots of one job, one after the other; a context manager. Its calls block.

    It is for whoever has the job's lock, `leadership`. `trouble` is told what was attempted and what Kafka
    said when something failed and is tried again. It goes on trying until `stop` is set, or until a
    snapshot has not been published in `patience` seconds.
    """

    def __init__(
        self,
        settings: Settings,
        job: Job,
        leadership: LeaderElection,
        stop: threading.Event,
        trouble: Callable[[str], None],
        patience: float | None = None,
    ) -> None:
        self.transactional_id = f"{settings.topics.prefix}.{job}"
        self._settings = settings
        self._job: Job = job
        self._leadership = leadership
        self._stop = stop
        self._trouble = trouble
        self._patience = patience
        self._topic = storage.topic_of(settings, job)
        self._snapshots = topics.declare(settings).snapshots.name
        self._presence = Presence(settings, [])
        self._watchdog = Watchdog(STUCK_SECONDS)
        self._producer: Producer | None = None
        self._begun = False
        self._deadline = math.inf
        """Of what is attempted, in monotonic seconds."""
        self._undelivered: KafkaError | None = None
        self._last: bytes | None = None
        """The Snapshot record, its value, that is known to be the committed one."""
        self._ends: Offsets = {}
        """Where the topic of the records ended when that was known."""
        self._sealed: tuple[Offsets, bytes | None] | None = None
        """Ends and value of the one whose commit was asked for, until its outcome is known."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, patience: float | None = None) -> Snapshot | None:
        """End whatever an earlier run has left open; returns the last snapshot, which is final now.

        To be called when the lock has been acquired, before anything is read. Raises as `publish`;
        KafkaUnavailable when it fails after the `patience` given here, None tries for ever.
        """
        self._last, self._ends = self._persist("opening", self._open, patience, [])
        return None if self._last is None else storage.decode_snapshot(self._settings, self._last)

    def publish(self, records: Collection[Record], snapshot: Callable[[Offsets], Record]) -> Offsets:
        """Commit the records with the Snapshot record that is made of the ends; returns those.

        Raises NotOwner when another run has the lock or has published meanwhile, SinkBroken when a person has
        to act, TopologyError when a right to read is missing or a topic is gone; NotCommitted when it was
        stopped first, and KafkaUnavailable when its last moment is over. Nothing of it is readable then, nor
        will be, unless the answer to a commit was being waited for: KafkaUnavailable says so.
        """
        self._sealed = None
        attempt = partial(self._attempt, records, snapshot)
        try:
            self._ends, self._last = self._persist(
                "publishing", attempt, self._patience, (record.topic for record in records)
            )
        except KafkaUnavailable as error:
            if self._sealed is None:
                outcome = "Nothing of it is published"
            else:
                outcome = "Whether it is published is not known: the next run finds out"
            raise KafkaUnavailable(f"{error}. {outcome}.") from None
        return self._ends

    def save(self, records: Collection[Record]) -> None:
        """Commit records that say what the job remembers, with no snapshot. Raises as `publish`.

        It does no harm if they are committed twice.
        """
        written = {record.topic for record in records}
        self._persist("saving", partial(self._save, records), self._patience, written)

    def close(self) -> None:
        """Abort what is open, so that it hides nothing from readers until it times out."""
        if self._producer is not None and self._begun:
            try:
                self._producer.purge()
                self._watchdog.call(partial(self._producer.abort_transaction, 1.0))
            except (KafkaException, SystemError) as exception:
                get().debug("the last transaction is left to its time-out", error=str(exception.args[0]))
        self._discard()
        self._watchdog.close()

    def _persist(
        self, what: str, attempt: Callable[[], T], patience: float | None, written: Iterable[str]
    ) -> T:
        """Try until it succeeds, each time with a new producer, after rests that grow.

        Raises KafkaUnavailable after `patience` seconds. `written` are topics that must not be gone.
        """
        failures = 0
        self._presence = Presence(self._settings, {self._topic, self._snapshots, *written})
        self._deadline = math.inf if patience is None else clock.now().monotonic + patience
        while True:
            try:
                return attempt()
            except KafkaException as exception:
                error: KafkaError = exception.args[0]
                if self._producer is not None:
                    error = cause(self._producer, error)
                if triage(error) is ErrorAction.REFUSED:
                    raise SinkBroken(refusal(self.transactional_id, error)) from None
                reason = error.str()
            except KafkaUnavailable as exception:
                reason = str(exception)
            reason = f"{what} as {self.transactional_id}: {reason}"
            self._discard()
            if self._is_late():
                raise KafkaUnavailable(reason)
            self._trouble(reason)
            self._stop.wait(rest_seconds(failures))
            failures += 1
            self._must_go_on()

    def _attempt(
        self, records: Collection[Record], snapshot: Callable[[Offsets], Record]
    ) -> tuple[Offsets, bytes | None]:
        if self._producer is None:
            found = self._reopen()
            if self._sealed is not None and found == self._sealed[1]:
                return self._sealed
            self._sealed = None
            self._must_be_last(found)
        return self._write(records, snapshot)

    def _must_be_last(self, found: bytes | None) -> None:
        if found is None and self._last is not None:
            raise _made_anew(self._snapshots)
        if found != self._last:
            raise NotOwner(f"another `bridge {self._job}` has published meanwhile")

    def _save(self, records: Collection[Record]) -> None:
        if self._producer is None:
            self._must_be_last(self._reopen())
        producer = self._begin(records)
        self._offer(producer)
        self._commit(producer)

    def _open(self) -> tuple[bytes | None, Offsets]:
        return self._reopen(), ends_of(self._settings, self._topic)

    def _reopen(self) -> bytes | None:
        """A new producer; returns the value of the last Snapshot record.

        A process that was paused must not fence the rightful owner, so the coordinator is asked first.
        """
        self._discard()
        self._regain()
        if not self._leadership.confirm(self._is_over):
            raise KafkaUnavailable("nobody confirms that the lock is ours")
        self._producer = clients.producer(
            self._settings.kafka,
            transactional_id=self.transactional_id,
            max_record_bytes=MAX_RECORD_BYTES,
            transaction_ms=TRANSACTION_MS,
            queue_kbytes=QUEUE_KBYTES,
        )
        self._watchdog.call(partial(self._producer.init_transactions, CALL_SECONDS))
        return storage.last_value(self._settings, self._job)

    def _regain(self) -> None:
        if self._leadership.owner:
            return
        admin.listed(clients.admin(self._settings.kafka))
        deadline = clock.now().monotonic + REGAIN_SECONDS
        while not self._leadership.owner:
            self._leadership.check()
            self._must_go_on()
            if clock.now().monotonic > deadline:
                admin.listed(clients.admin(self._settings.kafka))  # it may have gone again
                raise taken_over(self._job)
            self._stop.wait(POLL_SECONDS)

    def _write(
        self, records: Collection[Record], snapshot: Callable[[Offsets], Record]
    ) -> tuple[Offsets, bytes | None]:
        producer = self._begin(records)
        ends = ends_of(self._settings, self._topic)
        given = sum(record.topic == self._topic for record in records)
        if sum(ends.values()) < sum(self._ends.values()) + given:
            raise _made_anew(self._topic)
        whole = snapshot(ends)
        self._send(producer, [whole])
        self._offer(producer)
        self._sealed = (ends, whole.value)
        self._commit(producer)
        return self._sealed

    def _begin(self, records: Collection[Record]) -> Producer:
        """Open a transaction with the records in it."""
        producer = self._producer
        assert producer is not None
        self._presence.must_be_there()  # or the client might make it anew by writing to it
        producer.begin_transaction()
        self._begun, self._undelivered = True, None
        self._send(producer, records)
        return producer

    def _offer(self, producer: Producer) -> None:
        """Make the lock part of the transaction, so that it fails where another has it."""
        if not self._leadership.owner:
            # JobStatus: the call below, with the membership of before an outage, does not return.
            raise KafkaUnavailable(LOCK_IS_LOST)
        offsets, group = self._leadership.offsets()
        self._watchdog.call(partial(producer.send_offsets_to_transaction, offsets, group, CALL_SECONDS))

    def _commit(self, producer: Producer) -> None:
        self._watchdog.call(partial(producer.commit_transaction, CALL_SECONDS))
        self._begun = False

    def _send(self, producer: Producer, records: Iterable[Record]) -> None:
        """Return when the broker has everything. What it refused says why; later calls would not."""
        try:
            for record in records:
                produce_blocking(producer, record, self._must_come_soon, self._delivered)
            while producer.flush(FLUSH_SECONDS):
                self._must_come_soon()
        except SystemError:
            # The client sets an exception for a fatal error, and calls `_delivered` all the same.
            raise KafkaException(
                KafkaError(KafkaError._FATAL, "the producer was fenced, or has failed for good", fatal=True)
            ) from None
        if self._undelivered is not None:
            raise KafkaException(self._undelivered)

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if self._undelivered is None or follows(self._undelivered):
            self._undelivered = error or self._undelivered

    def _is_late(self) -> bool:
        return clock.now().monotonic > self._deadline

    def _is_over(self) -> bool:
        if self._stop.is_set() or self._is_late():
            return True
        self._must_go_on()
        return False

    def _must_go_on(self) -> None:
        if self._stop.is_set():
            raise NotCommitted(f"told to end before Kafka had taken the snapshot of {self._job}")
        with suppress(KafkaUnavailable):  # one that is away has deleted nothing
            self._presence.check()

    def _must_come_soon(self) -> None:
        if self._is_late():
            raise KafkaUnavailable("Kafka has not taken all of it")
        self._must_go_on()

    def _discard(self) -> None:
        if self._producer is not None:
            discard(self._producer)
            self._producer, self._begun = None, False


def _made_anew(topic: str) -> TopologyError:
    return TopologyError(
        f"the topic {topic} was made anew meanwhile: it lacks what this run would not write. Nothing is "
        "published; the next run asks about everything."
    )

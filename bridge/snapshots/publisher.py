"""Publish a snapshot: the changed records and a Snapshot record, in one transaction.

Everything is ready before the transaction begins. It is written exactly once (`bridge.kafka.transactions`),
with the Snapshot record as its marker, and retried until a deadline, if there is one. Before each new
producer the lock must be ours, or is won back: an outage may outlast a session.

Some failures are final: a missing right, records of a wrong clock, a deleted topic. A topic that was
recreated lacks the unchanged records, which this run would not write.

Only the job writes to its topic. So the high watermarks read inside the transaction, once the broker has all
its records, are where the snapshot ends: its last record is below them, and the commit marker, which no
reader sees, comes next. A partition without a record of it ends where the last snapshot left it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self

from confluent_kafka import TopicPartition

from bridge import clock
from bridge.config import Settings
from bridge.errors import NotCommitted, NotOwner, TopologyError
from bridge.kafka import admin, clients, topics
from bridge.kafka.batch import Record
from bridge.kafka.election import LeaderElection
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.reader import ends_of
from bridge.kafka.transactions import TransactionalWriter
from bridge.snapshots import storage
from bridge.snapshots.lock import POLL_SECONDS, REGAIN_SECONDS, taken_over
from bridge.snapshots.model import Job, Offsets, Snapshot
from bridge.snapshots.presence import Presence

CALL_SECONDS = 10.0
STUCK_SECONDS = 30.0
TRANSACTION_MS: Final = 300_000
"""Enough for a million records on a slow cluster. The next run ends what a dead one left open."""
QUEUE_KBYTES: Final = 32_768
"""Buffer of the client, so that a snapshot is not in memory twice."""
MAX_RECORD_BYTES: Final = 1_000_000
"""The default limit of a topic, and far more than the names of one entity."""


class _JobLease:
    """The lock of a job, as the lease of its writer: it may be won back, and has a deadline."""

    def __init__(
        self,
        settings: Settings,
        job: Job,
        election: LeaderElection,
        stop: threading.Event,
        on_error: Callable[[str], None],
    ) -> None:
        self._settings = settings
        self._job = job
        self._election = election
        self._stop = stop
        self._on_error = on_error
        self._snapshots = topics.declare(settings).snapshots.name
        self._attempted = ""
        self._deadline = math.inf
        self.presence = Presence(settings, [])

    def start(self, attempted: str, patience: float | None, written: set[str]) -> None:
        """Set what is attempted, for `patience` seconds, and the topics that must exist."""
        self._attempted = attempted
        self._deadline = math.inf if patience is None else clock.now().monotonic + patience
        self.presence = Presence(self._settings, {self._snapshots, *written})

    def confirm(self) -> None:
        self._regain()
        if not self._election.confirm(self._is_over):
            raise KafkaUnavailable("nobody confirms that the lock is ours")

    def committed(self) -> bytes | None:
        return storage.last_value(self._settings, self._job)

    def check_marker(self, found: bytes | None, last: bytes | None) -> None:
        if found is None and last is not None:
            raise recreated(self._snapshots)
        if found != last:
            raise NotOwner(f"another `bridge {self._job}` has published meanwhile")

    def offsets(self) -> tuple[list[TopicPartition], Any]:
        if not self._election.owner:
            # Seen: with the membership of before an outage, the call that takes them does not return.
            raise KafkaUnavailable("the lock has to be won again")
        return self._election.offsets()

    def pause(self, reason: str, seconds: float) -> None:
        reason = f"{self._attempted}: {reason}"
        if self._is_late():
            raise KafkaUnavailable(reason)
        self._on_error(reason)
        self._stop.wait(seconds)
        self._must_go_on()

    def check(self) -> None:
        if self._is_late():
            raise KafkaUnavailable("Kafka has not taken all of it")
        self._must_go_on()

    def _regain(self) -> None:
        if self._election.owner:
            return
        admin.metadata(clients.admin(self._settings.kafka))
        deadline = clock.now().monotonic + REGAIN_SECONDS
        while not self._election.owner:
            self._election.check()
            self._must_go_on()
            if clock.now().monotonic > deadline:
                admin.metadata(clients.admin(self._settings.kafka))  # raises if Kafka is unavailable again
                raise taken_over(self._job)
            self._stop.wait(POLL_SECONDS)

    def _is_over(self) -> bool:
        if self._stop.is_set() or self._is_late():
            return True
        self._must_go_on()
        return False

    def _is_late(self) -> bool:
        return clock.now().monotonic > self._deadline

    def _must_go_on(self) -> None:
        if self._stop.is_set():
            raise NotCommitted(f"stopped before Kafka had taken the snapshot of {self._job}")
        with suppress(KafkaUnavailable):  # then no topic was deleted
            self.presence.check()


class Publisher:
    """Publishes the snapshots of one job, one after the other; a context manager. Its calls block.

    The caller must hold the job's lock, `election`. `on_error` receives what was attempted and Kafka's error
    whenever something failed and is tried again, until `stop` is set or `patience` seconds have passed.
    """

    def __init__(
        self,
        settings: Settings,
        job: Job,
        election: LeaderElection,
        stop: threading.Event,
        on_error: Callable[[str], None],
        patience: float | None = None,
    ) -> None:
        self.transactional_id = f"{settings.topics.prefix}.{job}"
        self._settings = settings
        self._patience = patience
        self._topic = storage.topic_of(settings, job)
        self._ends: Offsets = {}
        """The last known ends of the job's topic."""
        self._lease = _JobLease(settings, job, election, stop, on_error)
        self._writer = TransactionalWriter(
            self.transactional_id,
            lambda: clients.producer(
                settings.kafka,
                transactional_id=self.transactional_id,
                max_record_bytes=MAX_RECORD_BYTES,
                transaction_ms=TRANSACTION_MS,
                queue_kbytes=QUEUE_KBYTES,
            ),
            self._lease,
            call_seconds=CALL_SECONDS,
            stuck_seconds=STUCK_SECONDS,
            max_failures=1,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def open(self, patience: float | None = None) -> Snapshot | None:
        """End what an earlier run left open; return the last snapshot, which is final now.

        Call it after acquiring the lock, before reading anything. Raises as `publish`; KafkaUnavailable after
        `patience` seconds, None to retry for ever.
        """
        self._start("opening", patience)
        last, self._ends = self._writer.retry(
            lambda: (self._writer.reopen(), ends_of(self._settings, self._topic))
        )
        self._writer.last = last
        return None if last is None else storage.decode_snapshot(self._settings, last)

    def publish(self, records: Collection[Record], snapshot: Callable[[Offsets], Record]) -> Offsets:
        """Commit the records with the Snapshot record that `snapshot` makes of the ends; return the ends.

        Raises NotOwner when another run has the lock or has published meanwhile, SinkBroken when a person has
        to act, TopologyError when a right to read is missing or a topic is gone, NotCommitted when stopped
        first, KafkaUnavailable at the deadline. Nothing is readable then, nor will be, unless the answer to a
        commit was outstanding: KafkaUnavailable says so.
        """
        ends: Offsets = {}

        def fill() -> bytes | None:
            nonlocal ends
            self._write(records)
            ends = ends_of(self._settings, self._topic)
            given = sum(record.topic == self._topic for record in records)
            if sum(ends.values()) < sum(self._ends.values()) + given:
                raise recreated(self._topic)
            record = snapshot(ends)
            self._writer.deliver([record])
            return record.value

        self._start("publishing", self._patience, records)
        try:
            self._writer.commit(fill)
        except KafkaUnavailable as error:
            outcome = (
                "Nothing of it is published"
                if self._writer.asked is None
                else "Whether it is published is not known: the next run finds out"
            )
            raise KafkaUnavailable(f"{error}. {outcome}.") from None
        self._ends = ends
        return ends

    def save(self, records: Collection[Record]) -> None:
        """Commit records of the job's state without a snapshot. Raises as `publish`.

        They may be committed twice, which does no harm.
        """
        self._start("saving", self._patience, records)
        self._writer.commit(lambda: self._write(records))

    def close(self) -> None:
        """Abort what is open, which would hide later records until its time-out."""
        self._writer.close()

    def _start(self, verb: str, patience: float | None, records: Collection[Record] = ()) -> None:
        written = {self._topic, *(record.topic for record in records)}
        self._lease.start(f"{verb} as {self.transactional_id}", patience, written)

    def _write(self, records: Collection[Record]) -> None:
        self._lease.presence.must_be_there()  # or writing to a deleted topic could recreate it
        self._writer.begin()
        self._writer.deliver(records)


def recreated(topic: str) -> TopologyError:
    """Return the error for a topic that has lost the records that this run would not write."""
    return TopologyError(
        f"the topic {topic} was made anew meanwhile: it lacks what this run would not write. Nothing is "
        "published; the next run asks about everything."
    )

"""Publishes a snapshot: the changed records and a Snapshot record, in one transaction.

It is written exactly once (`bridge.kafka.transactions`), with the Snapshot record as its marker, and retried
until a deadline, if there is one. Before each new producer the lock must be ours, or is won back: an outage
may outlast a session. A missing right, a wrong clock, a topic that is gone or recreated end it.

Only the job writes to its topic. So the high watermarks read inside the transaction, once the broker has all
its records, are where the snapshot ends. A partition without a record of it ends where the last one left it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from typing import Final

from bridge.config import Settings
from bridge.kafka import admin, clients
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.outage import outage_of
from bridge.kafka.pace import KafkaPace
from bridge.kafka.reader import ends_of
from bridge.kafka.transactions import TransactionalWriter
from bridge.records import topics
from bridge.snapshots import storage
from bridge.snapshots.lock import Lock, recreated
from bridge.snapshots.model import MAX_RECORD_BYTES, Job, Offsets, Snapshot

CALL_SECONDS = 10.0
STUCK_SECONDS = 30.0
TRANSACTION_MS: Final = 300_000
"""Enough for a million records on a slow cluster. The next run ends what a dead one left open."""
QUEUE_KBYTES: Final = 32_768
"""Buffer of the client, so that a snapshot is not in memory twice."""


class Publisher:
    """Publishes the snapshots of one job, whose lock the caller holds, until `close`. Its calls block.

    What fails is tried again until the lock is stopped, or for `patience` seconds.
    """

    def __init__(self, settings: Settings, job: Job, lock: Lock, patience: float | None = None) -> None:
        self.transactional_id = f"{settings.topics.prefix}.{job}"
        self._settings, self._job = settings, job
        self._patience = patience
        self._topic = storage.topic_of(settings, job)
        self._state_topic = topics.declare(settings).snapshot_state.name
        self._state_topic_id: str | None = None
        """As the run found it: another topic of this name would lack all that the run does not change."""
        self._ends: Offsets = {}
        """The last known ends of the job's topic."""
        self.last: Snapshot | None = None
        """The last snapshot of an earlier run."""
        self._lock = lock
        pace = KafkaPace()
        self._writer = TransactionalWriter(
            self.transactional_id,
            lambda: clients.producer(
                settings.kafka,
                transactional_id=self.transactional_id,
                max_record_bytes=MAX_RECORD_BYTES,
                transaction_ms=TRANSACTION_MS,
                queue_kbytes=QUEUE_KBYTES,
                pace=pace,
            ),
            lock,
            pace,
            outage_of(settings.kafka),
            call_seconds=CALL_SECONDS,
            stuck_seconds=STUCK_SECONDS,
            max_failures=1,
        )

    def open(self, patience: float | None = None) -> Snapshot | None:
        """End what an earlier run left open; return the last snapshot, which is final now.

        Call it after acquiring the lock, before reading anything. Raises as `publish`; KafkaUnavailable after
        `patience` seconds, None to retry without limit.
        """
        with self._attempting("opening", patience):
            self._writer.last, self._ends, self._state_topic_id, self.last = self._writer.retry(
                lambda: (
                    self._writer.reopen(),
                    ends_of(self._settings, self._topic),
                    self._state_topic_id_now(),
                    storage.last_snapshot(self._settings, self._job),
                )
            )
        return self.last

    def publish(self, records: Collection[Record], snapshot: Callable[[Offsets], Record]) -> Offsets:
        """Commit the records with the Snapshot record that `snapshot` makes of the ends; return the ends.

        Raises NotOwner when another run has the lock or has published since, SinkBroken when a person has
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

        try:
            with self._attempting("publishing", self._patience, records):
                self._writer.commit(fill, check_generation=True)
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
        with self._attempting("saving", self._patience, records):
            self._writer.commit(lambda: self._write(records), check_generation=True)

    def is_reachable(self) -> bool:
        """Return whether a broker answers and has the topics. Blocks for up to 3 s."""
        try:
            self._lock.must_have_topics()
        except KafkaUnavailable:
            return False
        return True

    def close(self) -> None:
        """Abort what is open, which would hide later records until its time-out."""
        self._writer.close()

    def _attempting(
        self, verb: str, patience: float | None, records: Collection[Record] = ()
    ) -> AbstractContextManager[None]:
        written = {self._topic, *(record.topic for record in records)}
        return self._lock.attempting(f"{verb} as {self.transactional_id}", patience, written)

    def _write(self, records: Collection[Record]) -> None:
        self._lock.must_have_topics()  # or writing to a deleted topic could recreate it
        if self._state_topic_id_now() != self._state_topic_id:
            raise recreated(self._state_topic)
        self._writer.begin()
        self._writer.deliver(records)

    def _state_topic_id_now(self) -> str | None:
        return admin.topic_id(clients.admin(self._settings.kafka), self._state_topic)

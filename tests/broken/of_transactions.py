"""Faults in what is written in which transaction, and in what is read back."""

from __future__ import annotations

import itertools
import threading
import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

from confluent_kafka import Message, Producer

from bridge.kafka import clients
from bridge.kafka.batch import Batch, Record
from bridge.kafka.partitioner import partition_of
from bridge.kafka.reader import TopicScan
from bridge.kafka.transactions import TransactionalWriter, _Phase
from bridge.ownership.batch_writer import BatchWriter, _Term, transactional_id
from bridge.ownership.election import LeaderElection
from bridge.ownership.lost_record_guard import LostRecordGuard, _hash
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.pipeline import Pipeline
from tests.broken.fault import By, Fault, Rules
from tests.judge import Anomaly

_NUMBERS = itertools.count()
_NOT_EARLY: Rules = {BatchWriter.write: lambda _, self, batch: None}
"""Records are produced by `commit` alone, so that a fault can reorder the batch."""
_OWNS_FOR_EVER: Rules = {
    LeaderElection.holds: lambda _, self, term: True,
    LeaderElection.confirm: lambda _, self, give_up, on_error=None: True,
}
_ANY_SENTINEL: Rules = {_Term.check_sentinel: lambda _, self, found, last: None}


def _one_behind(
    start: By,
    self: Any,
    batch: Batch,
    complete: Any,
    *,
    check_generation: bool = False,
    divisible: bool = False,
) -> None:
    ready, self.held = getattr(self, "held", None) or Batch(), batch
    start(self, ready, complete, check_generation=check_generation)


def _outside(topic: str) -> By:
    """Records of a topic are written by a producer without transactions."""

    def made(producer: type[Producer]) -> type[Producer]:
        class Outside(producer):  # type: ignore[misc, valid-type]
            def __init__(self, properties: dict[str, Any], **options: Any) -> None:
                super().__init__(properties, **options)
                plain = {name: it for name, it in properties.items() if not name.startswith("transaction")}
                self.plain = Producer(plain, **options)

            def produce(self, name: str, *arguments: Any) -> None:
                if not name.endswith(topic):
                    super().produce(name, *arguments)
                else:
                    self.plain.produce(name, *arguments)
                    self.plain.flush()

        return Outside

    return made


def _succeeded(reopen: By, self: TransactionalWriter) -> bytes | None:
    found: bytes | None = reopen(self)
    return found if self.asked is None else self.asked


def _failed(reopen: By, self: TransactionalWriter) -> bytes | None:
    found: bytes | None = reopen(self)
    self.asked = None
    return found


def _not_again(abort: By, self: TransactionalWriter) -> None:
    written = self.written
    abort(self)
    self.written = written


def _committed(_: By, self: TransactionalWriter) -> None:
    self._left_open = True
    self._call(self._need().commit_transaction, self._seconds)
    self.asked = None
    self._reset(_Phase.EMPTY)


def _of_anybody(lost_of: By, self: LostRecordGuard, client: Any, topic: str, to_write: Any) -> list[Record]:
    def note(message: Message) -> None:
        self._hashes[topic].append(_hash(message.key(), message.value()))

    TopicScan(topic, note, start=self._starts[topic], committed=False).read(self._settings)
    found: list[Record] = lost_of(self, client, topic, to_write)
    return found


def _forgetting(collect: By, self: Checkpointer) -> bool:
    was_busy = self.committer.busy
    is_free: bool = collect(self)
    if was_busy and is_free:
        self.pipeline.take_batch()
    return is_free


def _sealed(change: Callable[[list[Record]], object]) -> Rules:
    """The records of a batch are changed in place."""

    def take(of: By, self: Pipeline) -> Batch:
        sealed: Batch = of(self)
        change(sealed.records)
        sealed._place_all()
        return sealed

    return {**_NOT_EARLY, Pipeline.take_batch: take}


def _skipping(topic: str, partitions: slice, last: int = 0) -> Rules:
    """All but the `last` records of these partitions of a topic are not read."""

    def skip(set_out: By, self: TopicScan, client: Any) -> Any:
        cursor = set_out(self, client)
        if self.topic.endswith(topic):
            for place in cursor.places[partitions]:
                place.offset = max(place.offset, int(cursor.ends[place.partition]) - last)
        return cursor

    return {TopicScan._set_out: skip}


def _with_key_in_capitals(add: By, self: Batch, record: Record) -> None:
    if record.topic.endswith(".bets"):
        assert record.key
        key = record.key.upper()
        record = Record(record.topic, key, record.value, record.timestamp, None, record.partition)
    add(self, record)


_LOST = {Anomaly.LOST_WRITE: ""}
_DUPLICATE = {Anomaly.DUPLICATE: ""}
_WRONG = {Anomaly.WRONG_FIELD: ""}
_TWO_OWNERS = {Anomaly.DUPLICATE: "", Anomaly.CHECKPOINT_BACK: "", Anomaly.COUNTERS: "falls from"}

_not_covered = partial(
    Fault, "kills", {Anomaly.LOST_WRITE: "", Anomaly.CHECKPOINT_AHEAD: "", Anomaly.COUNTERS: "the topic has"}
)
_doubled_by_kills = partial(Fault, "kills", _DUPLICATE)
_lost_by_abort = partial(Fault, "unanswered commits", _LOST)
_doubled_by_abort = partial(Fault, "unanswered commits", _DUPLICATE)
_lost = partial(Fault, "replay", _LOST)
_wrong = partial(Fault, "replay", _WRONG)

FAULTS = (
    _not_covered(
        "a checkpoint is committed one transaction before its records",
        {**_NOT_EARLY, Committer.start: _one_behind},
    ),
    _not_covered("checkpoints are written without a transaction", {Producer: _outside(".checkpoints")}),
    Fault(
        "kills",
        {
            Anomaly.ABORTED_READ: "without a transaction",
            Anomaly.DUPLICATE: "",
            Anomaly.COUNTERS: "deadLettered is",
        },
        "dead letters are written without a transaction",
        {**_NOT_EARLY, Producer: _outside(".deadletters")},
    ),
    Fault(
        "late notice",
        _TWO_OWNERS,
        "each process has a transactional id of its own",
        {transactional_id: lambda of, settings: f"{of(settings)}.{threading.get_native_id()}"},
    ),
    Fault(
        "unanswered commits",
        {Anomaly.LOST_WRITE: "", Anomaly.COUNTERS: "the topic has"},
        "an unknown outcome of a commit is taken for a success",
        {TransactionalWriter.reopen: _succeeded},
    ),
    _doubled_by_abort(
        "a commit of unknown outcome is repeated in any case",
        {**_ANY_SENTINEL, TransactionalWriter.reopen: _failed},
    ),
    _lost_by_abort("what an abort discards is not written again", {TransactionalWriter._abort: _not_again}),
    _doubled_by_abort(
        "where it should abort, it commits, and writes again", {TransactionalWriter._abort: _committed}
    ),
    _lost_by_abort(
        "nobody looks for what was acknowledged before an abort",
        {LostRecordGuard.find_lost: lambda _, self, kept: []},
    ),
    Fault(
        "unanswered commits",
        _DUPLICATE | _WRONG,
        "what another producer has aborted is published",
        {LostRecordGuard._lost_of: _of_anybody},
    ),
    # A busy machine commits for longer.
    _lost(
        "what is received during a commit is forgotten", {Checkpointer._collect: _forgetting}, records=0.25
    ),
    _lost("a batch is sealed without its last record", _sealed(lambda records: records and records.pop())),
    Fault("replay", {Anomaly.NON_MONOTONIC: ""}, "a batch is written backwards", _sealed(list.reverse)),
    _doubled_by_kills("partition 0 of the bets is not read back", _skipping(".bets", slice(1))),
    _doubled_by_kills(
        "only the last bets of each partition are read back", _skipping(".bets", slice(None), last=20)
    ),
    _doubled_by_kills("dead letters are not read back", _skipping(".deadletters", slice(None))),
    Fault(
        "kills",
        _LOST,
        "aborted bets are read back",
        {clients.reader: lambda of, *rest, committed=True, **named: of(*rest, committed=False, **named)},
    ),
    Fault(
        "stopped owner",
        {Anomaly.SECOND_CONNECTION: "", Anomaly.NON_MONOTONIC: "", **_TWO_OWNERS},
        "a process that was replaced goes on",
        {**_OWNS_FOR_EVER, **_ANY_SENTINEL},
    ),
    Fault(
        "standby",
        {Anomaly.SECOND_CONNECTION: ""},
        "a standby connects",
        {**_OWNS_FOR_EVER, LeaderElection.is_owner: lambda _, self: True},
    ),
    Fault(
        "replay",
        _WRONG | {Anomaly.NON_MONOTONIC: ""},
        "bets are in any partition",
        {partition_of: lambda _, key, partitions: next(_NUMBERS) % partitions},
    ),
    _wrong(
        "keys are hashed by CRC32, as librdkafka does by default",
        {partition_of: lambda _, key, partitions: zlib.crc32(key) % partitions},
    ),
    _wrong("keys are in capitals", {Batch.add: _with_key_in_capitals}),
)

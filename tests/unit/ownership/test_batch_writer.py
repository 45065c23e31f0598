"""The writer's answers to what a transactional producer may do, with a producer that does it on demand."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from bridge.config import KafkaSettings, Settings
from bridge.errors import BridgeError, NotOwner, SinkBroken, TopologyError
from bridge.kafka import clients, pace, transactions
from bridge.kafka.batch import Batch, Record
from bridge.kafka.errors import KafkaUnavailable, TooMuch
from bridge.kafka.outage import outage_of
from bridge.ownership import batch_writer as module
from bridge.ownership.batch_writer import MAX_FAILURES, BatchWriter
from bridge.ownership.lost_record_guard import LostRecordGuard
from tests.unit.kafka.fake_producer import (
    ABORT,
    FATAL,
    RETRY,
    FakeProducer,
    Owner,
    Topic,
    aborts_without_markers,
    commits_and_fails,
    fails,
    fails_without_markers,
    never_returns,
    raises_no_exception,
    refuses_all,
)


def checkpoint_record(number: int) -> Record:
    return Record("checkpoints", b"f", b"checkpoint %d" % number, 0)


CHECKPOINT = checkpoint_record(1)
PRODUCED = [*["produce"] * 3, "flush", "produce", "flush"]
"""The calls for three bets, and for the checkpoint that says where they lie."""
SETTINGS = Settings(kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"))
NOTHING = LostRecordGuard(SETTINGS, [])


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Iterator[Topic]:
    made = Topic()
    monkeypatch.setattr(clients, "producer", lambda *_, **__: FakeProducer(made))
    monkeypatch.setattr(clients, "admin", lambda _: None)
    monkeypatch.setattr(module, "STUCK_SECONDS", 0.1)
    monkeypatch.setattr(transactions, "backoff_seconds", lambda _: 0.01)
    yield made
    made.release.set()


@pytest.fixture
def owner() -> Owner:
    return Owner()


@pytest.fixture
def closed(topic: Topic, owner: Owner) -> Iterator[BatchWriter]:
    """A writer that is not open yet."""
    made = BatchWriter(SETTINGS, owner, topic.checkpoint, lambda _: None, NOTHING)  # type: ignore[arg-type]
    yield made
    made.close(abandon=True)


@pytest.fixture
def writer(closed: BatchWriter) -> BatchWriter:
    closed.run(closed.open).result(10)
    return closed


def test_a_slow_link_is_no_reason_to_replace_a_producer(topic: Topic, writer: BatchWriter) -> None:
    topic.per_flush, topic.undelivered = 1, 1 + 2 + 4  # time-outs grow
    commit(writer)
    assert topic.committed == [b"bet 0", b"bet 1", b"bet 2", CHECKPOINT.value]
    assert topic.producers == 2


def test_what_is_never_delivered_is_given_up_where_less_may_be_written(
    topic: Topic, writer: BatchWriter
) -> None:
    topic.fits = 3
    made = batch()
    with pytest.raises(TooMuch):
        commit(writer, made, divisible=True)
    assert topic.committed == []
    assert topic.producers == 1
    assert [record.value for record in made.records] == [b"bet 0", b"bet 1", b"bet 2"]
    topic.fits, topic.calls = 4, []
    part, less = Batch(), checkpoint_record(2)
    part.add(made.records[0])
    commit(writer, part, less)
    assert topic.committed == [b"bet 0", less.value]
    assert topic.producers == 2
    assert topic.calls.count("abort") == 1


def test_what_was_given_up_is_ended_by_one_record_a_partition(
    topic: Topic, writer: BatchWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "SIGN_SECONDS", 0.1)
    topic.fits, made = 10, Batch()
    for number in range(300):
        made.add(Record("bets", b"k", b"bet %d" % number, 0, partition=number % 6))
    with pytest.raises(TooMuch):
        commit(writer, made, divisible=True)
    part, topic.calls = Batch(), []
    part.add(made.records[0])
    commit(writer, part)
    assert topic.calls[: topic.calls.index("abort")].count("produce") == 6 + 1


def test_what_was_given_up_and_is_still_to_be_written_was_not_discarded(
    topic: Topic, writer: BatchWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[list[bytes | None]] = []

    def find_lost(records: Sequence[Record]) -> list[Record]:
        kept.append([record.value for record in records])
        return []

    monkeypatch.setattr(NOTHING, "find_lost", find_lost)
    topic.fits, made = 3, batch()
    with pytest.raises(TooMuch):
        commit(writer, made, divisible=True)
    topic.fits = 4
    for part in ([made.records[0]], made.records[1:]):
        topic.faults = {"commit": [ABORT]}
        each = Batch()
        for record in part:
            each.add(record)
        commit(writer, each, checkpoint_record(len(kept) + 2))
    assert {*kept[0]} == {b"bet 0", b"bet 1", b"bet 2"}
    assert {*kept[-1]} == {b"bet 1", b"bet 2"}


def test_a_batch_that_cannot_be_divided_is_written_until_it_is_delivered(
    topic: Topic, writer: BatchWriter
) -> None:
    topic.undelivered = 2 * MAX_FAILURES
    commit(writer)
    assert topic.committed == WHOLE


def test_a_broker_that_holds_back_its_answers_is_waited_for(topic: Topic, writer: BatchWriter) -> None:
    writer.pace.on_throttle(1, 1000.0, time.monotonic())
    topic.undelivered = 10 * MAX_FAILURES
    topic.faults = {"commit": [RETRY] * MAX_FAILURES}
    commit(writer)
    assert topic.committed == WHOLE
    assert topic.producers == 1


def test_a_throttled_transaction_that_outlives_its_time_out_is_given_up(
    topic: Topic, writer: BatchWriter
) -> None:
    writer.pace.on_throttle(1, 1000.0, time.monotonic())
    topic.undelivered = 3
    topic.faults = {"offsets": [FATAL], "flush": []}
    with pytest.raises(TooMuch):
        commit(writer, attempt=True, divisible=True)


def batch() -> Batch:
    made = Batch()
    for number in range(3):
        made.add(Record("bets", b"k", b"bet %d" % number, 0))
    return made


def commit(
    writer: BatchWriter,
    made: Batch | None = None,
    checkpoint: Record = CHECKPOINT,
    *,
    attempt: bool = False,
    divisible: bool = False,
) -> None:
    """Commit a batch of three bets, or this one, as that of an attempt to connect or of any other kind."""
    made = made or batch()
    options = {"check_generation": attempt, "divisible": divisible}
    writer.run(lambda: writer.commit(made, lambda _: checkpoint, **options)).result(20)


WHOLE = [b"bet 0", b"bet 1", b"bet 2", b"checkpoint 1"]


def full(_: FakeProducer) -> None:
    raise BufferError


def test_an_error_does_not_outlive_the_attempts(writer: BatchWriter, topic: Topic) -> None:
    client = Producer({"bootstrap.servers": "127.0.0.1:1", "transactional.id": "t", "log_level": 0})
    raised = list[weakref.ref[KafkaException]]()

    def fails_once(_: FakeProducer) -> None:
        error = KafkaException(KafkaError(KafkaError._STATE, "on purpose"))
        raised.append(weakref.ref(error))
        raise error

    topic.faults = {"flush": [fails_once], "begin": [lambda _: None, lambda _: client.begin_transaction()]}
    commit(writer)
    assert topic.committed == WHOLE
    gc.collect()
    [error] = raised
    assert error() is None


@pytest.mark.parametrize("attempt", [False, True])
@pytest.mark.parametrize(
    "faults",
    [
        {},
        {"flush": [RETRY, FATAL]},
        {"flush": [refuses_all]},
        {"flush": [raises_no_exception]},
        {"commit": [raises_no_exception]},
        {"commit": [RETRY, RETRY]},
        {"offsets": [RETRY, ABORT]},
        {"commit": [ABORT, ABORT]},
        {"produce": [lambda _: None, ABORT]},
        {"produce": [full, full]},
        {"begin": [FATAL]},
        {"commit": [FATAL]},
        {"commit": [commits_and_fails]},
        {"commit": [ABORT], "abort": [RETRY, FATAL]},
        {"commit": [ABORT], "abort": [ABORT] * 5},
        {"commit": [FATAL], "init": [RETRY, FATAL]},
        {"offsets": [never_returns]},
        {"commit": [never_returns]},
        {"commit": [ABORT], "abort": [never_returns]},
        {"commit": [FATAL], "init": [never_returns, never_returns]},
        {"commit": [lambda _: None, FATAL]},
        {"flush": [RETRY], "offsets": [fails_without_markers]},
        {"flush": [RETRY, lambda _: None, refuses_all], "offsets": [fails_without_markers]},
        {"flush": [RETRY], "offsets": [fails_without_markers], "init": [RETRY], "abort": [RETRY, FATAL]},
        {"commit": [ABORT], "abort": [aborts_without_markers], "flush": [lambda _: None, FATAL]},
        {"offsets": [ABORT], "abort": [aborts_without_markers]},
        {"offsets": [ABORT], "abort": [aborts_without_markers, FATAL]},
    ],
)
def test_whatever_fails_the_batch_is_committed_once(
    topic: Topic,
    writer: BatchWriter,
    faults: dict[str, list[Callable[[FakeProducer], None]]],
    attempt: bool,
) -> None:
    topic.faults = {name: list(given) for name, given in faults.items()}
    made = batch()
    writer.write(made)
    commit(writer, made, attempt=attempt)
    assert topic.committed == WHOLE
    topic.faults = {}
    commit(writer, Batch(), checkpoint_record(2))
    assert topic.committed == [*WHOLE, b"checkpoint 2"]


def test_what_a_commit_left_open_is_not_aborted(topic: Topic, writer: BatchWriter) -> None:
    def commits_the_checkpoint(producer: FakeProducer) -> None:
        *topic.left_open, checkpoint = producer.open
        topic.committed.append(checkpoint)
        FATAL(producer)

    topic.faults = {"commit": [commits_the_checkpoint]}
    commit(writer)
    commit(writer, Batch(), checkpoint_record(2))
    assert sorted(topic.committed) == sorted([*WHOLE, b"checkpoint 2"])


def test_a_hidden_checkpoint_that_may_be_committed_is_waited_for(topic: Topic, closed: BatchWriter) -> None:
    topic.left_open = [b"checkpoint 0"]
    with pytest.raises(AssertionError, match="wait for ever"):
        closed.run(closed.open).result(10)
    topic.left_open, topic.faults = [], {"commit": [fails_without_markers]}
    closed.run(closed.open).result(10)
    with pytest.raises(AssertionError, match="wait for ever"):
        commit(closed)


def test_only_an_error_of_the_connection_is_explained(topic: Topic, owner: Owner) -> None:
    reasons: list[str] = []
    writer = BatchWriter(SETTINGS, owner, topic.checkpoint, reasons.append, NOTHING)  # type: ignore[arg-type]
    writer.run(writer.open).result(10)
    topic.faults = {
        "commit": [fails(code) for code in (KafkaError._TRANSPORT, KafkaError.ILLEGAL_GENERATION)]
    }
    outage_of(SETTINGS.kafka).on_error(KafkaError(KafkaError._TRANSPORT, "connection refused"))
    commit(writer)
    writer.close()
    assert [": no connection; check" in reason for reason in reasons] == [True, False]


ABORTED = ["begin", *PRODUCED, "commit", "abort", "begin", *["produce"] * 4, "flush", "offsets", "abort"]


@pytest.mark.parametrize(
    ("attempt", "undelivered", "faults", "calls"),
    [
        (False, 0, [RETRY, RETRY], ["begin", *PRODUCED, *["commit"] * 3]),
        (True, 0, [RETRY, RETRY], ["begin", *PRODUCED, "offsets", *["commit"] * 3]),
        # The transaction still stands, as the checkpoint's delivery shows, unless that took more than one
        # attempt; then the offset does: a marker that is hidden could be of a commit.
        (False, 2, [], ["begin", *["produce"] * 3, *["flush"] * 3, "produce", "flush", "offsets", "commit"]),
        (False, 0, [ABORT, RETRY], [*ABORTED, "begin", *PRODUCED, "offsets", "commit", "commit"]),
    ],
    ids=["retry", "retry of an attempt", "late delivery", "abort"],
)
def test_a_commit_is_requested_once_all_records_are_delivered_and_again_by_the_same_producer(
    topic: Topic, writer: BatchWriter, attempt: bool, undelivered: int, faults: list[Any], calls: list[str]
) -> None:
    topic.undelivered, topic.faults, topic.calls = undelivered, {"commit": faults}, []
    commit(writer, attempt=attempt)
    assert (topic.calls, topic.producers) == (calls, 1)


def test_opening_outlives_a_producer_that_never_answers(topic: Topic, closed: BatchWriter) -> None:
    topic.faults = {"init": [never_returns, RETRY, FATAL]}
    topic.committed = [b"checkpoint 0"]
    assert closed.run(closed.open).result(10) == b"checkpoint 0"
    assert topic.producers == 4


def test_a_client_that_cannot_be_made_is_waited_for(
    topic: Topic, closed: BatchWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    makes, refusals = clients.producer, [KafkaUnavailable("a file is away")] * 3

    def refused(*arguments: Any, **named: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return makes(*arguments, **named)

    monkeypatch.setattr(clients, "producer", refused)
    closed.run(closed.open).result(10)
    refusals += [KafkaUnavailable("a file is away")] * 3
    topic.faults = {"commit": [FATAL]}
    commit(closed)
    assert (refusals, topic.committed) == ([], WHOLE)


def test_a_lost_leadership_ends_the_tries(topic: Topic, writer: BatchWriter, owner: Owner) -> None:
    def lose(producer: FakeProducer) -> None:
        owner.is_owner = False
        FATAL(producer)

    topic.faults = {"commit": [lose]}
    with pytest.raises(NotOwner, match=r"another process owns the feed.*; before: "):
        commit(writer)
    assert (topic.producers, topic.committed) == (1, [])


@pytest.mark.parametrize("confirms", [True, False])
def test_a_feed_that_is_lost_for_want_of_a_right_is_lost_to_nobody(
    topic: Topic, writer: BatchWriter, owner: Owner, confirms: bool
) -> None:
    def lose(producer: FakeProducer) -> None:
        owner.is_owner, owner.refused = confirms, "on purpose"
        FATAL(producer)

    topic.faults = {"commit": [lose]}
    if confirms:
        owner.confirm = lambda *_: False  # type: ignore[method-assign]
    with pytest.raises(TopologyError, match="on purpose"):
        commit(writer)
    assert (topic.producers, topic.committed) == (1, [])


@pytest.mark.parametrize(
    "code", [KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD]
)
def test_what_kafka_will_never_take_is_not_tried_for_ever(
    topic: Topic, writer: BatchWriter, code: int
) -> None:
    topic.faults = {"commit": [fails(code, txn_requires_abort=True)]}
    with pytest.raises(SinkBroken):
        commit(writer)


@pytest.mark.parametrize(
    ("code", "kind", "says"),
    [
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            SinkBroken,
            r"writes: on purpose\. .* no right to Write the topic ",
        ),
        (
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            TopologyError,
            r"no right to Read the group settlement\.settlement-v4\.owner; grant it",
        ),
        (KafkaError.INVALID_TIMESTAMP, SinkBroken, "clock of this machine"),
    ],
)
def test_a_state_that_is_wrong_is_asked_for_what_made_it_so(
    topic: Topic, writer: BatchWriter, code: int, kind: type[BridgeError], says: str
) -> None:
    topic.faults = {
        "begin": [lambda _: None, fails(code, txn_requires_abort=True)],
        "produce": [lambda _: None, fails(KafkaError._STATE)],
    }
    with pytest.raises(kind, match=says):
        commit(writer)


def test_what_does_not_fit_the_queue_of_the_client_is_left_to_the_commit(
    topic: Topic, writer: BatchWriter
) -> None:
    topic.faults, topic.calls = {"produce": [lambda _: None, full]}, []
    made = batch()
    writer.write(made)
    assert topic.calls == ["begin", "produce", "produce"]
    commit(writer, made)
    assert topic.committed == WHOLE


def test_delivery_reports_are_taken_from_the_producer_in_use(topic: Topic, writer: BatchWriter) -> None:
    before = topic.polls
    writer.poll()
    assert topic.polls == before + 1
    writer.close()
    writer.poll()
    assert topic.polls == before + 1


def test_a_feed_that_may_not_go_on_writes_nothing_again(topic: Topic, owner: Owner) -> None:
    others = [False]

    def committed(*given: Any, **options: Any) -> bytes | None:
        if others[0]:
            raise TopologyError("another feed uses the topics")
        return topic.checkpoint(*given, **options)

    writer = BatchWriter(SETTINGS, owner, committed, lambda _: None, NOTHING)  # type: ignore[arg-type]
    writer.run(writer.open).result(10)
    topic.faults, others[0] = {"commit": [FATAL]}, True
    with pytest.raises(TopologyError, match=r"^another feed"):
        commit(writer)
    writer.close(abandon=True)
    assert topic.committed == []


def test_nothing_is_begun_for_nothing(topic: Topic, writer: BatchWriter) -> None:
    topic.calls = []
    writer.write(Batch())
    assert topic.calls == []


def test_closed_writers_leave_no_thread(topic: Topic, owner: Owner) -> None:
    before = threading.active_count()
    for _ in range(5):
        made = BatchWriter(SETTINGS, owner, topic.checkpoint, lambda _: None, NOTHING)  # type: ignore[arg-type]
        made.run(made.open).result(10)
        made.close()
    for thread in threading.enumerate():
        if thread.name.startswith("kafka"):
            thread.join(5)
    assert threading.active_count() <= before

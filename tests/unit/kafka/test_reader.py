"""Each record once, from where to where: whatever interrupts it."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from math import inf
from operator import itemgetter
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message
from structlog.testing import capture_logs

from bridge.config import Settings
from bridge.errors import TopologyError
from bridge.kafka import clients, reader
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.open_transactions import RecordPlace
from bridge.kafka.outage import Outage
from bridge.kafka.reader import TopicScan, cursor_over, with_fresh_clients
from bridge.records.message import place_of
from tests.unit.stored.log import NEVER, Log

SETTINGS = Settings()
FIRST, OTHER = RecordPlace("t", 3, 7), RecordPlace("t", 4, 1)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    return Log().installed(monkeypatch)


def places(*partitions: range) -> list[tuple[int, int]]:
    return [(partition, offset) for partition, offsets in enumerate(partitions) for offset in offsets]


@pytest.mark.parametrize(
    ("asked", "expected", "position"),
    [
        ({}, places(range(5), range(5)), {0: 5, 1: 5}),
        ({"start": {0: 3, 1: 5}}, places(range(3, 5), range(0)), {0: 5, 1: 5}),
        ({"start": {0: 3}}, places(range(3, 5), range(5)), {0: 5, 1: 5}),
        ({"start": {0: 6, 1: 4}}, places(range(5), range(4, 5)), {0: 5, 1: 5}),
        ({"start": 2.5}, places(range(3, 5), range(3, 5)), {0: 5, 1: 5}),
        ({"start": 9.0}, [], {0: 5, 1: 5}),
        ({"start": 4.0, "visible": True}, [], {0: 3, 1: 3}),
        ({"ends": {0: 2, 1: 3}}, places(range(2), range(3)), {0: 2, 1: 3}),
        ({"ends": {0: 2}}, places(range(2), range(0)), {0: 2, 1: 0}),
        ({"visible": True}, places(range(3), range(3)), {0: 3, 1: 3}),
    ],
)
def test_what_is_read_and_how_far(
    log: Log, asked: dict[str, Any], expected: list[tuple[int, int]], position: dict[int, int]
) -> None:
    if "visible" in asked:
        log.stable = [3, 3]
    taken: list[tuple[int, int]] = []
    scan = TopicScan("t", lambda m: taken.append(place_of(m)), **asked)
    assert scan.read(SETTINGS) == position
    assert sorted(taken, key=itemgetter(0)) == expected
    assert log.prompt == [True]
    assert 0 <= log.longest_wait <= 0.05, "it waits for more than there are"


def test_what_was_read_before_an_outage_is_not_read_again_and_its_topic_is_not_missing(log: Log) -> None:
    def connected(number: int) -> None:
        log.there = number == 1

    log.connected, log.breaks = connected, 3
    taken: list[tuple[int, int]] = []
    TopicScan("t", lambda m: taken.append(place_of(m))).read(SETTINGS)
    assert sorted(taken, key=itemgetter(0)) == places(range(5), range(5))
    assert len(log.prompt) == 4


def test_a_client_that_cannot_be_made_is_waited_for(log: Log) -> None:
    def connected(number: int) -> None:
        if number < 3:
            raise KafkaUnavailable("a file is away")

    log.connected = connected
    reported: list[str] = []
    assert with_fresh_clients(SETTINGS, lambda *_: None, lambda: False, reported.append) == ""
    assert (reported, len(log.prompt)) == (["a file is away"] * 2, 3)


def got(offset: int, code: int | None = None, **flags: bool) -> Message:
    """A record, or an error, at an offset of the only partition."""
    error = None if code is None else KafkaError(code, "on purpose", **flags)
    return Message("t", 0, offset, error=error)


END = KafkaError._PARTITION_EOF


@pytest.mark.parametrize(
    ("end", "news", "taken", "next_offset"),
    [
        (6, [got(3), got(5), got(6)], [3, 5], 6),
        (6, [got(2), got(3)], [3], 4),
        (6, [got(6)], [], 6),
        (6, [got(5, END)], [], 5),
        (6, [got(9, END)], [], 6),
        (6, [got(4, KafkaError._TRANSPORT)], [], 3),
        (inf, [got(3), got(10**9)], [3, 10**9], 10**9 + 1),
        (inf, [got(5, END)], [], 5),
        (inf, [got(0), got(1)], [0, 1], 2),
    ],
)
def test_a_cursor_moves_to_its_end_or_follows(
    end: float, news: list[Message], taken: list[int], next_offset: int
) -> None:
    cursor = cursor_over("t", [3], [end])
    assert [message.offset() for message in cursor.records(news)] == taken
    assert (cursor.reached, bool(cursor.left)) == (next_offset, next_offset < end)


def test_a_record_that_its_reader_cannot_handle_is_read_again() -> None:
    cursor = cursor_over("t", [3], [6])
    news: list[Message] = [got(3), got(4)]
    for message in cursor.records(news):
        if message.offset() == 4:
            break
    assert cursor.reached == 4


def test_an_end_may_be_lowered_while_reading() -> None:
    """By a reader that has seen all it wants."""
    cursor = cursor_over("t", [3], [9])
    news: list[Message] = [got(3), got(4), got(5)]
    for _ in cursor.records(news):
        cursor.ends[0] = 4
    assert (cursor.reached, cursor.left) == (4, [])


@pytest.mark.parametrize(
    ("news", "says"),
    [
        (got(3, KafkaError.TOPIC_AUTHORIZATION_FAILED), r"\. .* no right to Read the topic p\.t; grant it"),
        (got(3, KafkaError.GROUP_AUTHORIZATION_FAILED), r"\. .* no right to Describe the group p\.reader;"),
        (got(3, KafkaError._FATAL, fatal=True), "$"),
    ],
)
def test_an_error_that_needs_a_person_ends_the_reading(news: Message, says: str) -> None:
    with pytest.raises(TopologyError, match=rf"^reading p\.t: on purpose{says}"):
        list(cursor_over("p.t", [3], [9]).records([news]))


def test_a_topic_that_is_not_there_has_no_records(log: Log) -> None:
    log.there = False
    assert TopicScan("t", lambda _: pytest.fail("there is none")).read(SETTINGS) == {}


@pytest.mark.parametrize(
    ("waits", "stable", "breaks", "reason"),
    [
        ([(NEVER,)], [5, 5], 0, "the broker has more of t than its client gets"),
        ([], [5, 3], 0, "an open transaction hides what is in t: partition 1 from offset 3"),
        ([], [5, 5], 10**9, ".*on purpose"),
    ],
)
def test_an_end_that_is_not_reached_is_reported(
    log: Log, waits: list[tuple[float]], stable: list[int], breaks: int, reason: str
) -> None:
    log.waits, log.stable, log.breaks = [*waits], stable, breaks
    with pytest.raises(KafkaUnavailable, match=rf"^t: nothing came for 0\.05s: {reason}"):
        TopicScan("t", lambda _: None, stall_seconds=0.05).read(SETTINGS)


def test_progress_is_reported_in_offsets(log: Log) -> None:
    reported: list[tuple[int, int]] = []

    def progress(passed: int, total: int) -> None:
        reported.append((passed, total))

    TopicScan("t", lambda _: None, start={0: 1}, progress=progress).read(SETTINGS)
    assert reported == [(2, 9), (4, 9), (6, 9), (8, 9), (9, 9)]
    reported.clear()
    log.stable = [3, 3]
    TopicScan("t", lambda _: None, start=4.0, visible=True, progress=progress).read(SETTINGS)
    assert reported == [(0, 0)]


# Clients that bring nothing, in virtual time.


def read_on(
    log: Log, taken: list[tuple[int, int]] | None = None, on_status: Callable[[str], None] = lambda _: None
) -> list[str]:
    """Read everything, whatever it takes, each record once; returns why new clients were called for."""
    taken = [] if taken is None else taken

    def take(message: Message) -> None:
        taken.append(place_of(message))

    scan = TopicScan("t", take, clock=log.clock)
    with capture_logs() as lines:
        with_fresh_clients(
            SETTINGS,
            lambda admin, consumer: scan.resume(admin, consumer, lambda: False),
            lambda: False,
            on_status,
        )
    assert sorted(taken, key=itemgetter(0)) == places(range(5), range(5))
    return [line["reason"] for line in lines if line["log_level"] == "warning"]


def test_clients_that_failed_are_not_kept(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    class Admin:
        pass

    made = weakref.WeakSet[Admin]()

    def admin(_: object) -> Admin:
        new = Admin()
        made.add(new)
        assert len(made) == 1, "a former one is still there"
        return new

    monkeypatch.setattr(clients, "admin", admin)
    log.breaks = 3
    gc.disable()
    try:
        assert read_on(log) == []
        assert not made
    finally:
        gc.enable()


def test_a_client_that_is_slow_is_kept(log: Log) -> None:
    log.waits = [(29,) * 6]
    assert read_on(log) == []
    assert log.now > 5 * 29


def test_a_client_that_a_quota_holds_up_is_kept(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Outage, "throttled", property(lambda _: log.now < 200))
    log.waits = [(200,)]
    assert read_on(log) == []
    assert log.now == pytest.approx(200, abs=1)


def test_what_is_skipped_for_long_is_passed_in_the_end(log: Log) -> None:
    log.waits = [(100,), (100,), (100,), (100, NEVER)]
    assert len(read_on(log)) == 4
    assert log.now == pytest.approx(30 + 60 + 90 + 100 + 30, abs=3)


def test_a_client_that_is_deaf_is_replaced_in_the_end_however_many_were(log: Log) -> None:
    log.waits = [(NEVER,)] * 12
    read_on(log)
    assert log.now == pytest.approx(sum(30 * n for n in range(1, 10)) + 3 * 300, abs=20)


def test_an_open_transaction_is_waited_for(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "explain_hidden", lambda _, places: f" ({places[0].offset} of {len(places)})")
    log.written, log.stable, log.unseen = [8, 5], [7, 5], range(5, 8)

    def connected(number: int) -> None:
        if number == 4:
            log.stable = log.written  # it was aborted

    log.connected = connected
    said: list[str] = []
    hidden = "an open transaction hides what is in t: partition 0 from offset 7 (7 of 1)"
    assert read_on(log, on_status=said.append) == said == [hidden] * 3
    assert log.now == pytest.approx(90, abs=2)


@pytest.mark.parametrize(
    ("times", "since", "partition"),
    [
        ({FIRST: 1_790_000_000.0, OTHER: 1_789_999_000.0}, ", since 2026-09-21T13:56:40Z. ", 4),
        ({OTHER: 1_790_000_000.0}, ", since 2026-09-21T14:13:20Z. ", 4),
        ({}, ". ", 3),
    ],
)
def test_what_is_said_of_an_open_transaction_is_of_the_oldest_one(
    monkeypatch: pytest.MonkeyPatch, times: dict[RecordPlace, float], since: str, partition: int
) -> None:
    monkeypatch.setattr(reader, "first_times", lambda *_: times)
    said = reader.explain_hidden(
        Settings.model_validate({"kafka": {"bootstrap_servers": "a:1"}}), [FIRST, OTHER]
    )
    assert said.startswith(f"{since}Its producer: `kafka-transactions.sh ")
    assert f"describe-producers --topic t --partition {partition}`" in said
    assert " abort --" not in said


def test_a_topic_that_has_lost_its_end_is_reported(log: Log) -> None:
    log.written, log.stable = [5], [5]
    log.waits = [(0, 0, 0, NEVER)]

    def connected(number: int) -> None:
        if number == 2:
            log.written, log.stable = [2], [2]

    log.connected = connected
    taken: list[tuple[int, int]] = []
    with pytest.raises(TopologyError, match="partition 0 ends at offset 2, and was to be read to 5"):
        read_on(log, taken)
    assert log.given == places(range(3)) + places(range(2))
    assert taken == places(range(3))


def test_a_broker_that_does_not_answer_is_waited_for(log: Log) -> None:
    log.waits, log.away = [(0, NEVER), (NEVER,)], range(1, 90)
    assert read_on(log) == ["no broker answered"] * 2
    assert log.now == pytest.approx(60, abs=2)

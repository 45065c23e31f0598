"""A new owner restores the deduplicator, whatever its clients do."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Never

import pytest
from confluent_kafka.admin import AdminClient
from structlog.testing import capture_logs

from bridge.avro.codec import Codec
from bridge.avro.schemas import Schema, load
from bridge.config import FeedSettings, Settings
from bridge.dedup.deduplicator import DedupResult, fingerprint
from bridge.errors import ForeignRecord, SchemaError, SchemaNotFound
from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.messages.parser import MessageParser
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, State, UnprovenReplay
from bridge.records.counters import Counters
from bridge.stored import restore
from bridge.stored.reach_reader import ReachReader
from bridge.stored.restore import PublishedReader
from tests.bets import BARE_BET
from tests.unit.stored.log import NEVER, Log, never, nobody
from tests.unit.stored.test_checkpoint_reader import CHECKPOINT, SCHEMAS

EXAMPLE = Path(__file__).parents[3] / "examples" / "settled-bet.message.json"

VALUE = Codec(SCHEMAS[7], 7).encode(BARE_BET | {"settlementVersion": 3})


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(restore, "KEPT", 0)
    monkeypatch.setattr(restore, "LETTERS", 0)
    return Log(content=VALUE).installed(monkeypatch)


def published_in(log: Log, by_id: Callable[[int], Schema] = SCHEMAS.__getitem__) -> PublishedReader:
    settings = Settings(feed=FeedSettings(name="f"))
    bets = Codec(load("settled-bet"), 7, by_id)
    return PublishedReader(settings, topics.declare(settings), bets, log.clock)


def test_a_deduplicator_is_restored_across_clients(log: Log) -> None:
    log.waits = [(0, 0, NEVER), (0, 0, 0, 0, 0, NEVER)]
    statuses: list[str] = []
    deduplicator = published_in(log).deduplicator(1.0, never, statuses.append)
    assert "reading settlement.bets: 100 % are done" in statuses
    assert sorted(log.given) == sorted([(p, o) for p in range(2) for o in range(1, 5)] * 2)
    deduplicator.connected()
    for place in log.given:
        key = b"%d-%d" % place
        content = fingerprint(VALUE)
        assert deduplicator.judge(key, 3, content, lambda _: None, replaying=True) is DedupResult.DUPLICATE
        assert deduplicator.dead_letter_time(key) == place[1]
    assert len(log.prompt) == 3


@pytest.mark.parametrize("schema_id", [7, 9])
@pytest.mark.parametrize(("received", "proves"), [(3.5, False), (1.5, True)])
def test_what_an_unproven_replay_has_brought_proves_nothing_and_what_is_redriven_since_does(
    log: Log, received: float, proves: bool, schema_id: int
) -> None:
    log.content, log.marks = VALUE[:4] + bytes([schema_id]) + VALUE[5:], {4: [("received", str(received))]}
    reader = published_in(log, {**SCHEMAS, 9: SCHEMAS[7]}.__getitem__)
    deduplicator = reader.deduplicator(0.0, never, nobody, UnprovenReplay(0, 3.0, 2.0))
    deduplicator.connected(replay_unproven=True)
    found = [deduplicator.proves_replay(b"1-%d" % offset) for offset in range(5)]
    assert found == [True, True, True, False, proves]
    letters = [deduplicator.letter_proves_replay(b"1-%d" % offset, since=0.0) for offset in range(4)]
    assert letters == found[:4]


def test_foreign_records_are_skipped_and_counted(log: Log) -> None:
    log.content = lambda offset: [VALUE, b"{" * 1_000_000, CHECKPOINT, VALUE, VALUE][offset]
    with capture_logs() as lines:
        deduplicator = published_in(log).deduplicator(0.0, never, nobody)
    deduplicator.connected()
    known = [
        deduplicator.judge(b"0-%d" % offset, 3, fingerprint(VALUE), lambda _: None, replaying=True)
        for offset in range(5)
    ]
    new, known_already = DedupResult.NEW, DedupResult.DUPLICATE
    assert known == [known_already, new, new, known_already, known_already]
    [warning] = [line for line in lines if line["log_level"] == "warning"]
    assert warning["count"] == 4
    assert warning["first"].startswith(
        "settlement.bets partition 0 offset 1 was not written by a bridge: not in"
    )
    assert len(warning["first"]) < 500


@pytest.mark.parametrize("value", [VALUE[:-1], b"\0\0\0\0\x09" + VALUE[5:]], ids=["cut", "unknown schema"])
def test_an_unreadable_bet_is_an_error(log: Log, value: bytes) -> None:
    def schema(schema_id: int) -> Schema:
        if schema_id not in SCHEMAS:
            raise SchemaError("unknown to the registry")
        return SCHEMAS[schema_id]

    log.content = lambda offset: value if offset == 3 else VALUE
    with pytest.raises(SchemaError, match=r"^settlement\.bets partition 0 offset 3 cannot be read: "):
        published_in(log, schema).deduplicator(0.0, never, nobody)


ORDER: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "lines", "type": {"type": "array", "items": "long"}},
    ],
}


@pytest.mark.parametrize(
    "given_to",
    [load("feed-gap"), ORDER, load("settled-bet") | {"name": "Copy", "namespace": "elsewhere"}, None],
    ids=["gap", "order", "copy", "no Avro"],
)
def test_a_bet_is_no_foreign_record_because_its_id_was_given_away(log: Log, given_to: Schema | None) -> None:
    def schema(schema_id: int) -> Schema:
        if schema_id == 7 and given_to is None:
            raise ForeignRecord("schema 7 is not an Avro schema")
        return given_to or load("settled-bet") if schema_id == 7 else SCHEMAS[schema_id]

    settings = Settings(feed=FeedSettings(name="f"))
    reader = PublishedReader(
        settings, topics.declare(settings), Codec(load("settled-bet"), 107, schema), log.clock
    )
    with pytest.raises(SchemaNotFound) as caught:
        reader.deduplicator(0.0, never, nobody)
    assert str(caught.value).startswith("settlement.bets partition 0 offset 0 cannot be read: ")
    assert "schema 7" in str(caught.value)
    assert "registry" in str(caught.value)


def test_without_a_bet_the_checkpoint_betrays_another_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    settings, asked = Settings(), []

    def seen(*_: object) -> Never:
        asked.append("the topics")
        raise KafkaUnavailable("not now")

    def compared(bets_schema: int | None) -> None:
        checkpoint = Checkpoint("f", 1, State.LIVE, (), Counters(), 2.0, "me", bets_schema=bets_schema)
        reader = ReachReader(settings, topics.declare(settings), {**SCHEMAS, 8: ORDER}.__getitem__)
        reader.check(AdminClient({}), Checkpoint.from_avro(checkpoint.to_avro()))

    monkeypatch.setattr(admin, "topics_seen", seen)
    with pytest.raises(SchemaNotFound, match=r"^schema 8 is something else .* \(a shop\.Order.* Restore the"):
        compared(8)
    assert not asked
    for known in (7, None):
        with pytest.raises(KafkaUnavailable):
            compared(known)


def test_what_somebody_else_wrote_stays_foreign(log: Log) -> None:
    def schema(schema_id: int) -> Schema:
        if schema_id == 9:
            raise ForeignRecord("schema 9 is not an Avro schema")
        return {**SCHEMAS, 10: ORDER}[schema_id]

    others = [b"\0\0\0\0\x0a\x02a\x02\x06\0", CHECKPOINT, b"\0\0\0\0\x09\x08\x96\x01"]
    log.content = lambda offset: [VALUE, *others, VALUE][offset]
    assert len(published_in(log, schema).deduplicator(0.0, never, nobody)) == 4 + 10
    log.content = lambda offset: others[0][:-1] if offset == 1 else VALUE
    with pytest.raises(SchemaError, match=r"partition 0 offset 1 cannot be read: .*a shop\.Order"):
        published_in(log, schema).deduplicator(0.0, never, nobody)


def test_a_bet_whose_receipt_cannot_be_read_was_received_when_it_was_written(log: Log) -> None:
    log.marks = {1: [("received", b"soon")], 2: [("received", b"nan")], 3: [("received", b"1.5")]}
    keys = {b"0-%d" % offset for offset in range(1, 5)}
    found = published_in(log).of_bets(keys, visible=False)
    assert found.received == {b"0-1": 1.0, b"0-2": 2.0, b"0-3": 1.5, b"0-4": 4.0}
    assert len(found.deduplicator) == 4


def test_the_last_bets_are_restored_however_old(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "KEPT", 3)
    monkeypatch.setattr(restore, "LETTERS", 1)
    published_in(log).deduplicator(4.5, never, nobody)
    bets, letters = log.given[:4], log.given[4:]
    assert sorted(bets) == [(0, 3), (0, 4), (1, 3), (1, 4)]
    assert sorted(letters) == [(0, 4), (1, 4)]


def test_records_hidden_by_an_open_transaction_are_waited_for(log: Log) -> None:
    log.stable = [2, 2]

    def connected(number: int) -> None:
        log.stable = [2, 2] if number == 1 else [5, 5]

    log.connected = connected
    statuses: list[str] = []
    deduplicator = published_in(log).deduplicator(3.0, never, statuses.append)
    assert [deduplicator.dead_letter_time(b"%d-%d" % (p, o)) for p in range(2) for o in (3, 4)] == [
        3,
        4,
        3,
        4,
    ]
    assert statuses[0] == (
        "an open transaction hides what is in settlement.bets: partition 0 from offset 2, partition 1 from "
        "offset 2"
    )
    assert "reading settlement.bets: 100 % are done" in statuses
    others = [status for status in statuses[1:] if not status.startswith("reading settlement.")]
    assert others == [], "it was reported after recovery"


def test_reading_ends_when_the_feed_is_lost(log: Log) -> None:
    log.waits = [(NEVER,)] * 9
    gone = 45.0
    assert len(published_in(log).deduplicator(0.0, lambda: log.now >= gone, nobody)) == 0
    assert log.now == pytest.approx(gone, abs=1)


def test_bets_of_a_later_version_are_recognised_after_it_was_rolled_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    later = copy.deepcopy(load("settled-bet"))
    [selections] = [field for field in later["fields"] if field["name"] == "selections"]
    for place in (later, selections["type"][1]["items"]):
        place["fields"].insert(
            1, {"name": "channel", "type": ["null", "string"], "default": None, "doc": "New."}
        )
    parsed = MessageParser(frozenset()).parse(EXAMPLE.read_bytes()).bet
    assert parsed is not None
    bet: dict[str, Any] = {**parsed, "settlementVersion": 3}
    items = [{**item, "channel": "retail"} for item in bet["selections"]]
    written = Codec(later, 9).encode({**bet, "channel": "web", "selections": items})
    log = Log(content=written).installed(monkeypatch)
    deduplicator = published_in(log, {**SCHEMAS, 9: later}.__getitem__).deduplicator(1.0, never, nobody)
    deduplicator.connected()
    content = fingerprint(Codec(SCHEMAS[7], 7).encode(bet))
    other = fingerprint(Codec(SCHEMAS[7], 7).encode({**bet, "payout": 0.5}))
    judge = partial(deduplicator.judge, b"0-1", 3, rewrite=lambda _: None, replaying=True)
    assert judge(content) is DedupResult.DUPLICATE
    assert judge(other) is DedupResult.CORRECTION

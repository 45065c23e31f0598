"""What people are shown of the checkpoint and of bets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from bridge.config import KafkaSettings, RegistrySettings, Settings
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import Attempt
from bridge.inspection import readers
from bridge.inspection.readers import (
    BET_HEAD,
    LATELY_SECONDS,
    Bet,
    amount_in_words,
    bet_as_json,
    bet_as_line,
    checkpoint_as_json,
    checkpoint_as_lines,
    leadership_as_json,
    leadership_as_lines,
    payout_in_words,
    read_checkpoint,
)
from bridge.kafka.batch import Record
from bridge.kafka.errors import KafkaUnavailable
from bridge.kafka.group import Group, Member
from bridge.state.checkpoint import Checkpoint, State
from bridge.state.counters import Counters
from tests.unit.state.log import NEVER, Log

CHECKPOINT = Checkpoint(
    feed="settlement-v4",
    revision=1_790_000_000,
    state=State.CATCHING_UP,
    ledger=(
        Attempt(1_790_000_000.0, 0, True),
        Attempt(1_790_000_100.5, 100, False, 1_790_000_101.0, True),
        Attempt(1_790_000_200.0, 200, False, 1_790_000_201.0),
    ),
    counters=Counters(received=1234, published=1200, corrections=3, duplicates=30, pings=4),
    updated_at=1_790_000_300.25,
    owner="host:1:abc",
)
DATUM: dict[str, Any] = {
    "betId": "b",
    "settlementTime": 1_790_000_000_000_000,
    "settlementVersion": 2,
    "betSettlement": "Win",
    "payout": 12.5,
    "amount": {"value": 1050, "precision": 2, "currency": "EUR"},
    "selections": [{}, {}],
}


def record(key: bytes | None) -> Record:
    return Record("settlement.bets", key, b"value", 1_790_000_001_000, partition=3)


RECORD = record(b"b")
KEY = "5f0c1d9e-7a3b-4c52-9d64-0b8a2f1e0e8d"
NOWHERE = Settings(
    kafka=KafkaSettings(bootstrap_servers="127.0.0.1:1"), registry=RegistrySettings(url="http://127.0.0.1:1")
)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(readers, "ANSWER_SECONDS", 0.05)
    return Log().installed(monkeypatch)


def test_a_checkpoint_that_cannot_be_reached_is_an_error(log: Log) -> None:
    """The command does not wait for ever, and reports the cause."""
    log.waits = [(NEVER,)]
    log.written, log.stable = [5], [5]
    with pytest.raises(KafkaUnavailable, match=r"^settlement\.checkpoints could not be .* no broker"):
        read_checkpoint(NOWHERE)


def test_a_checkpoint_as_json_has_its_times_in_words() -> None:
    """And the revision both ways."""
    shown = checkpoint_as_json(CHECKPOINT)
    assert (shown["revision"], shown["revisionTime"]) == (1_790_000_000, "2026-09-21T14:13:20Z")
    assert shown["updatedAt"] == "2026-09-21T14:18:20.250000Z"
    first, second, _ = shown["connections"]
    assert (first["at"], first["answeredAt"]) == ("2026-09-21T14:13:20Z", None)
    assert (second["at"], second["answeredAt"]) == ("2026-09-21T14:15:00.500000Z", "2026-09-21T14:15:01Z")
    assert orjson.loads(orjson.dumps(shown))["counters"]["received"] == 1234


def test_a_checkpoint_for_people() -> None:
    """Every counter, and what came of each connection attempt."""
    lines = checkpoint_as_lines(CHECKPOINT, 1_790_000_302.25).splitlines()
    assert "state       CatchingUp" in lines
    assert "committed   2026-09-21T14:18:20.250000Z (2s ago)" in lines
    assert "position    1790000000 (2026-09-21T14:13:20Z)" in lines
    assert "  published     1,200 (3 of them corrections)" in lines
    assert lines[-3:] == [
        "  2026-09-21T14:13:20Z  from the beginning, no answer",
        "  2026-09-21T14:15:00.500000Z  1m 40s of recovery, refused",
        "  2026-09-21T14:16:40Z  3m 20s of recovery, accepted",
    ]
    bare = replace(CHECKPOINT, ledger=())
    assert checkpoint_as_lines(bare, 1_790_000_302.25).splitlines()[-1] == "attempts"


def test_a_checkpoint_says_why_and_how_long() -> None:
    """The state with its reason and the end of a wait; how far a replay has come; the clocks."""
    waiting = replace(
        CHECKPOINT,
        state=State.WAITING_FOR_LIMIT,
        reason="5 large connection attempts in 30m",
        since=1_790_000_290.0,
        until=1_790_001_000.0,
        skew=-1.5,
        catch_up=CatchUp(1_789_996_400.0, 1234.5, 90.0),
    )
    lines = checkpoint_as_lines(waiting, 1_790_000_300.0).splitlines()
    assert lines[1:6] == [
        "state       WaitingForLimit since 2026-09-21T14:18:10Z",
        "reason      5 large connection attempts in 30m",
        "until       2026-09-21T14:30:00Z",
        "catching up: 1h 5m behind, at 2026-09-21T13:13:20Z, 1,234 messages/s, 1m 30s left",
        "clock       provider clock offset: -1.5s (max)",
    ]
    shown = checkpoint_as_json(waiting)
    assert (shown["since"], shown["until"]) == ("2026-09-21T14:18:10Z", "2026-09-21T14:30:00Z")
    assert shown["catchUp"]["position"] == "2026-09-21T13:13:20Z"
    nothing = replace(waiting, catch_up=CatchUp(None, 0.0, None))
    assert "no message with a plausible" in checkpoint_as_lines(nothing, 1_790_000_300.0)


def test_a_bet_as_json_is_the_whole_record() -> None:
    """Its place in the topic and its value; no value is a tombstone."""
    assert bet_as_json(Bet(RECORD, 9, DATUM)) == {
        "topic": "settlement.bets",
        "partition": 3,
        "offset": 9,
        "timestamp": 1_790_000_001_000,
        "key": "b",
        "value": DATUM,
    }
    assert bet_as_json(Bet(record(None), 9, None))["value"] is None


@pytest.mark.parametrize(
    ("changes", "payout", "stake", "items"),
    [
        ({}, "12.50", "10.50 EUR", "2"),
        ({"payout": 784.1062000000001}, "784.1062", "10.50 EUR", "2"),
        ({"payout": 149262000.17}, "149,262,000.17", "10.50 EUR", "2"),
        ({"amount": None, "selections": None}, "12.50", "—", "0"),
        ({"amount": {"value": 7, "precision": 0, "currency": None}}, "12.5", "7", "2"),
    ],
)
def test_a_bet_for_people(changes: dict[str, Any], payout: str, stake: str, items: str) -> None:
    """In columns, with or without its nullable parts."""
    line = bet_as_line(Bet(RECORD, 9, DATUM | changes), 120)
    assert line == f"2026-09-21 14:13:20  Win v2      {payout:>12} {stake:>16} {items:>5}  b"


@pytest.mark.parametrize(("width", "shown"), [(120, KEY), (100, "5f0c1d9e-7a3…b8a2f1e0e8d"), (80, "5f…d")])
def test_a_line_fits_the_terminal(width: int, shown: str) -> None:
    """The id of a bet gives way, with its head and its tail; what it is about never does."""
    line = bet_as_line(Bet(record(KEY.encode()), 9, DATUM | {"payout": 123_456_789_012.25}), width)
    assert line.endswith(f"  {shown}")
    assert "123,456,789,012.25" in line
    assert len(line) <= width
    assert len(BET_HEAD) <= width - len("bet")


def test_a_tombstone_for_people() -> None:
    """It says that the bet was removed."""
    assert bet_as_line(Bet(RECORD, 9, None), 80).split() == ["removed", "b"]


@pytest.mark.parametrize(
    ("value", "places", "shown"),
    [
        (784.1062000000001, 2, "784.1062"),
        (0.1 + 0.2, 2, "0.30"),
        (73863.0, 0, "73,863"),
        (-12.5, 2, "-12.50"),
        (0.0, 2, "0.00"),
        (-0.0, 2, "0.00"),
        (1e-8, 2, "0.00000001"),
        (149262000.17, 2, "149,262,000.17"),
        (999_999_999_999_999.9, 2, "999,999,999,999,999.9"),
        (1e13, 2, "10,000,000,000,000.0"),
        (1.7e308, 2, "1.7e+308"),
        (12.5, 2**31 - 1, "12.50000000"),
        (12.5, -1, "12.5"),
    ],
)
def test_a_payout_is_the_decimal_that_its_double_stands_for(value: float, places: int, shown: str) -> None:
    """Of the 15 digits that a double holds, at most eight decimals; beyond that, the double itself."""
    assert payout_in_words(value, {"precision": places}) == shown


def test_an_amount_is_exact_whatever_its_precision() -> None:
    amount = {"value": 2**63 - 1, "precision": 2, "currency": "EUR"}
    assert amount_in_words(amount) == "92,233,720,368,547,758.07 EUR"
    assert amount_in_words({"value": 7, "precision": 2**31 - 1, "currency": None}) == "7e-2147483647"


LAST = CHECKPOINT.updated_at
SEEN = "2026-09-21T14:18:31Z"
"""Ten seconds after the checkpoint, in whole seconds."""
DEAD = f"            if it is dead, its place is free by {SEEN}"


def member(name: str, holds: bool = False) -> Member:
    return Member(f"{name}-1", name, "10.0.0.1", holds)


@pytest.mark.parametrize(
    ("group", "lines"),
    [
        (None, "unknown: the right to describe the group is missing"),
        (Group(), "no owner, 0 standbys"),
        (
            Group((member("host:1:abc", True), member("b"))),
            "owned by host:1:abc from 10.0.0.1, 1 standby",
        ),
        (
            Group((member("host:1:abc"), member("b")), True),
            f"a rebalance waits for host:1:abc from 10.0.0.1, 1 standby\n{DEAD}",
        ),
        (
            Group((member("a"), member("b"))),
            "a rebalance waits for a from 10.0.0.1, b from 10.0.0.1, 0 standbys\n"
            f"            the places of those that are dead are free by {SEEN}",
        ),
    ],
)
def test_a_person_sees_who_owns_the_feed_or_is_waited_for(group: Group | None, lines: str) -> None:
    """And, where one is waited for, by when a dead one's place is free: a session from now."""
    assert leadership_as_lines(group, CHECKPOINT, 10.0, LAST) == f"leadership  {lines}"


def test_an_owner_that_has_not_committed_lately_may_be_dead() -> None:
    """The output then also has the time by which its place is free."""
    group, later = Group((member("a", True),)), CHECKPOINT.updated_at + LATELY_SECONDS
    assert leadership_as_lines(group, CHECKPOINT, 10.0, later) == (
        "leadership  owned by a from 10.0.0.1, 0 standbys\n"
        "            if it is dead, its place is free by 2026-09-21T14:18:41Z"
    )


def test_a_script_gets_the_same() -> None:
    """Null marks what Kafka does not report."""
    group = Group((member("a"), member("b")), True)
    assert leadership_as_json(group, CHECKPOINT, 10.0, LAST + 0.5) == {
        "owners": [],
        "standbys": 2,
        "awaited": ["a", "b"],
        "freeBy": "2026-09-21T14:18:41Z",
        "lastCommitAgeSeconds": 0.5,
    }
    nobody = {"owners": [], "standbys": 0, "awaited": [], "freeBy": None, "lastCommitAgeSeconds": 0.0}
    assert leadership_as_json(Group(), CHECKPOINT, 10.0, LAST) == nobody
    unknown = {"owners": None, "standbys": None, "awaited": None, "freeBy": None, "lastCommitAgeSeconds": 0.0}
    assert leadership_as_json(None, CHECKPOINT, 10.0, LAST) == unknown

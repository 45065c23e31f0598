"""What people are shown of the checkpoint and of bets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
import pytest

from bridge.feed.limits import Attempt
from bridge.readers import Bet, bet_as_json, bet_as_line, checkpoint_as_json, checkpoint_as_lines, utc
from bridge.sink.batch import Record
from bridge.sink.checkpoint import Checkpoint, Counters, State

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
RECORD = Record("settlement.bets", b"b", b"value", 1_790_000_001_000, partition=3)


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_790_000_000_250_000, "2026-09-21T14:13:20.250000Z"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00Z"),
        (-62_135_647_200_000_000, "-62135647200.000000s"),
    ],
)
def test_a_time_is_shown_in_utc(micros: int, text: str) -> None:
    """One that no calendar of Python's holds, by its distance from 1970."""
    assert utc(micros) == text


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
    """Every counter, and what came of each connection."""
    lines = checkpoint_as_lines(CHECKPOINT).splitlines()
    assert "state       CatchingUp at 2026-09-21T14:18:20.250000Z" in lines
    assert "revision    1790000000 (2026-09-21T14:13:20Z)" in lines
    assert "  published     1,200 (3 of them corrections)" in lines
    assert lines[-3:] == [
        "  2026-09-21T14:13:20Z  from the beginning, no answer",
        "  2026-09-21T14:15:00.500000Z  100 s of recovery, refused",
        "  2026-09-21T14:16:40Z  200 s of recovery, accepted",
    ]
    assert checkpoint_as_lines(replace(CHECKPOINT, ledger=())).splitlines()[-1] == "connections"


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
    assert bet_as_json(Bet(RECORD._replace(key=None), 9, None))["value"] is None


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({}, "2026-09-21T14:13:20Z  b  v2  Win        payout 12.5  stake 10.50 EUR  2 selections"),
        (
            {"amount": None, "selections": None},
            "2026-09-21T14:13:20Z  b  v2  Win        payout 12.5  stake —  0 selections",
        ),
        (
            {"amount": {"value": 7, "precision": 2**31 - 1, "currency": None}, "selections": [{}]},
            "2026-09-21T14:13:20Z  b  v2  Win        payout 12.5  stake 7e-2147483647  1 selection",
        ),
        (
            {"amount": {"value": 7, "precision": 0, "currency": None}},
            "2026-09-21T14:13:20Z  b  v2  Win        payout 12.5  stake 7  2 selections",
        ),
    ],
)
def test_a_bet_for_people(changes: dict[str, Any], line: str) -> None:
    """On one line, with or without its nullable parts."""
    assert bet_as_line(Bet(RECORD, 9, DATUM | changes)) == line


def test_a_tombstone_for_people() -> None:
    """It says that the bet was removed."""
    assert bet_as_line(Bet(RECORD, 9, None)) == "b  removed"

"""What the checkpoints of a feed tell about its owners."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import TopologyError
from bridge.inspection import explain
from bridge.inspection.explain import (
    BESIDE,
    _Commit,
    _committed,
    _hand_overs,
    _moves,
    _names_bet,
    _retirements,
    changes,
    nearby,
)
from bridge.reader import Bet
from bridge.records.checkpoint import Checkpoint, Move, State
from bridge.records.counters import Counters
from tests.bets import BARE_BET

MOVE = Move(20.0, "operator@host", 9, 3, "resent")


def commit(
    at: float, owner: str, received: int = 5, redriven: int = 0, moved: Move | None = None, **feeds: str
) -> _Commit:
    counters = Counters(received=received, redriven=redriven)
    return _Commit(Checkpoint("f", 1, State.LIVE, (), counters, at, owner, moved=moved), **feeds)


FIRST = commit(10.0, "one")


def test_a_command_is_not_an_owner() -> None:
    moved = commit(20.0, "command", moved=MOVE)
    redrive = commit(30.0, "redrive", redriven=2, moved=MOVE)
    [hand_over] = _hand_overs([FIRST, moved, redrive, commit(40.0, "two", 6, 2, MOVE)])
    assert (hand_over.at, hand_over.record) == (40.0, {"from": "one", "to": "two"})
    assert not [*_hand_overs([FIRST, moved, redrive, commit(40.0, "one", 6, 2, MOVE)])]


@pytest.mark.parametrize(
    ("body", "bet_id", "named"),
    [
        (b'{"data":{"betId":"ab\\u002Bc\\/d="}}', "ab+c/d=", True),
        (b'{"data":{"betId":"121","settlementTime":"2026-12-12"}}', "12", False),
        (b'{"data":{"betId":"12","selec', "12", True),
        (b'{"data":{"betId":"121","selec', "12", False),
        (b"", "12", False),
    ],
)
def test_a_dead_letter_is_of_the_bet_that_it_names(body: bytes, bet_id: str, named: bool) -> None:
    assert _names_bet(body, bet_id) is named


def test_a_retirement_is_told_as_such() -> None:
    begun, over = commit(10.0, "command", succeeds="old"), commit(30.0, "command", 6, retires="new")
    commits = [begun, commit(20.0, "two", 6), over]
    assert not [*_hand_overs(commits)]
    assert [(event.at, event.what, *event.details) for event in _retirements(commits)] == [
        (10.0, "another feed was retired", "the feed old is over, and this one uses its topics"),
        (30.0, "the feed was retired", "new uses the topics from then on"),
    ]


def test_a_bridge_behind_what_is_compacted_away_is_an_owner() -> None:
    second = commit(40.0, "two", 6, 2, MOVE)
    assert len([*_hand_overs([FIRST, second])]) == 1


def test_each_move_is_told_once_at_its_own_time() -> None:
    commits = [FIRST, commit(20.0, "command", moved=MOVE), commit(40.0, "two", 6, moved=MOVE)]
    [event] = _moves(commits)
    assert (event.at, event.what) == (20.0, "the position was moved")
    assert event.details == [
        "operator@host moved the position from 1970-01-01T00:00:09Z to 1970-01-01T00:00:03Z: resent"
    ]


def test_of_the_checkpoints_those_near_the_bet_are_read() -> None:
    end, hour, asked = 10_000_000, 3600, list[float]()

    def offset_at(moment: float) -> int:
        asked.append(moment)
        return min(max(0, round(moment)), end)  # one each second

    at = 1_000 * hour
    assert nearby([at + 10, at + 20], end, offset_at) == [
        (at - hour - BESIDE, at + 2 * hour + BESIDE),
        (end - BESIDE, end),
    ]
    assert len(asked) == 2
    assert nearby([at, end - hour, -1e9], end, offset_at)[0][0] == 0
    assert nearby([], 0, offset_at) == [(0, 0)]


@pytest.mark.parametrize(
    ("received", "told"),
    [
        (5, "commit time unknown"),
        (10, "in the checkpoint of 1970-01-01T00:00:10Z"),
        (11, "commit time unknown"),
        (20_001, "not yet covered"),
    ],
)
def test_a_bet_is_in_the_checkpoint_after_its_receipt(received: int, told: str) -> None:
    commits = [FIRST, commit(20_000.0, "one")]
    bet: Any = SimpleNamespace(timestamp=received * 1000)
    assert _committed(bet, commits).startswith(told)


def test_a_change_beyond_the_decimals_that_are_shown_is_shown_whole() -> None:
    [change] = changes({"payout": 0.123456789012}, {"payout": 0.123456789013})
    assert change == "payout: 0.123456789012 → 0.123456789013"


def test_versions_are_told_in_order_of_receipt_wherever_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    codec = Codec(load("settled-bet"), 7, lambda _: load("settled-bet"))

    def bet(partition: int, offset: int, received: int, version: int) -> Bet:
        value: Any = codec.decode(codec.encode(BARE_BET | {"settlementVersion": version}))
        place: Any = {"topic": "settlement.bets", "partition": partition, "offset": offset}
        return Bet(**place, timestamp=received, key="b", value=value)

    class Received:
        """What `Replay` yields: in order of receipt."""

        def __init__(self, *_: object, **__: object) -> None: ...

        def __enter__(self) -> Received:
            return self

        def changes(self) -> list[Bet]:
            return [bet(5, 10, 1_790_000_000_000, 1), bet(2, 0, 1_790_000_900_000, 2)]

        def __exit__(self, *_: object) -> None: ...

    def no_names(_: Settings) -> None:
        raise TopologyError("there are none")

    monkeypatch.setattr(explain, "Replay", Received)
    monkeypatch.setattr(explain, "Names", no_names)
    monkeypatch.setattr(explain, "_commits", lambda *_: [])
    monkeypatch.setattr(explain, "_marks", lambda *_: [])
    monkeypatch.setattr(explain, "read", lambda *_, **__: [])
    events = explain.explain(Settings(), "b", None).events
    assert [event.what for event in events] == [
        "first settlement: Win v1",
        "settled again: Win v2",
    ]

"""What the demo shows, on a terminal and elsewhere."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from bridge_sandbox.demo.display import Board
from bridge_sandbox.demo.verify import Tally


def datum(**changes: Any) -> dict[str, Any]:
    return {
        "betId": "7f9c2ba4-e88f-4b0d-9a41-2f0c5d3e6a18",
        "settlementVersion": 2,
        "betSettlement": "HalfWin",
        "amount": {"value": 105_000, "precision": 2, "currency": "EUR"},
        "payout": 2_467.5,
        "selections": [
            {"event": {"id": 7, "name": "a cup tie"}, "market": {"id": 70}, "selectionId": 700},
            {"event": None, "market": None, "selectionId": 1},
            {"event": {"id": 8, "name": None}, "market": None, "selectionId": 2},
        ],
    } | changes


def shown(board: Board) -> str:
    """The board as text."""
    console = Console(file=io.StringIO(), width=140)
    console.print(board)
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()


def test_a_bet_is_a_row_with_the_names_that_are_known() -> None:
    board = Board(Tally(list), lag=0.012)
    board.bets.append(bet := datum())
    assert board.row(bet) == ("7f9c2ba4…6a18\nHalfWin, v2", "1,050.00 EUR\n2,467.50", "a cup tie  +2\n")
    for key, text in (("event:7", "Cup tie"), ("market:7:70", "Total 2.5"), ("selection:700", "Over 2.5")):
        board.names.take(key, {"translations": {"en": text, "sv": "annat"}})
    assert board.row(bet)[2] == "Cup tie  +2\nTotal 2.5 · Over 2.5"
    text = shown(board)
    assert "12 ms" in text
    assert "Total 2.5 · Over 2.5" in text
    board.names.take("event:7", None)
    assert board.row(bet)[2].startswith("a cup tie")


def test_one_bet_that_is_named_will_do() -> None:
    board = Board(Tally(list))
    board.bets.extend([datum(selections=None), datum()])
    board.names.take("selection:1", {"translations": {"en": "Under 2.5"}})
    assert not board.has_names()
    board.names.take("selection:700", {"translations": {"en": "Over 2.5"}})
    assert board.has_names()


def test_the_first_bet_is_said_at_once(capsys: Any) -> None:
    board = Board(Tally(list))
    board.tick()
    board.tally.published = 3
    board.tick()
    board.tick()
    assert [line.partition(" of ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "starting: 0",
        "starting: 3",
    ]


def test_a_bet_without_its_nullable_parts_is_a_row() -> None:
    row = Board(Tally(list)).row(datum(amount=None, selections=None))
    assert row[1:] == ("—\n2,467.50", "—\n")


def test_elsewhere_than_on_a_terminal_there_are_lines(capsys: Any) -> None:
    board = Board(Tally(list), state="Live", revision=17)
    board.tally.sent, board.tally.published, board.tally.duplicates = 1234, 1200, 1
    board.tally.wrong += ["one", "two"]
    with board.shown():
        board.tick()
        board.tick()
    out, err = capsys.readouterr()
    assert err.startswith("Live: 1,200 of 1,234 bets in the topic, ")
    assert err.endswith("position 17, 1 duplicates, 2 wrong\n")
    assert err.count("Live") == 1
    assert "settlement bridge" in out

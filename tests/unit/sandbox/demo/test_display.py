"""What the demo shows, on a terminal and elsewhere."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from bridge.sandbox.demo.display import ROWS, Board, Display


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


NAMES: list[tuple[str, dict[str, Any]]] = [
    ("event:7", {"translations": {"en": "Cup tie"}, "competitorIds": [1, 2]}),
    ("competitor:1", {"translations": {"en": "Northgate", "sv": "Norrport"}, "competitorIds": None}),
    ("competitor:2", {"translations": {"en": "Harbour"}, "competitorIds": None}),
    ("market:7:70", {"translations": {"en": "Total 2.5"}, "competitorIds": None}),
    ("selection:700", {"translations": {"en": "Over 2.5"}, "competitorIds": None}),
]


def test_a_bet_is_a_row_with_the_names_that_are_known() -> None:
    """Teams, market and selection, as their records arrive, also after the bet; the bet's own word before."""
    board = Board(lag=0.012)
    board.bets.append(bet := datum())
    assert board.row(bet) == ("7f9c2ba4…6a18\nHalfWin, v2", "1,050.00 EUR\n2,467.50", "a cup tie  +2\n")
    for key, record in NAMES:
        board.names.take(key, record)
    assert board.row(bet)[2] == "Northgate – Harbour  +2\nTotal 2.5 · Over 2.5"
    text = shown(board)
    assert "7f9c2ba4…6a18" in text
    assert "12 ms" in text
    assert "Total 2.5 · Over 2.5" in text


def test_a_race_is_called_by_its_own_name() -> None:
    """Where more than two take part, or one of them has no name."""
    board = Board()
    for key, record in NAMES:
        board.names.take(key, record)
    board.names.take("competitor:2", None)
    assert board.row(datum())[2].startswith("Cup tie")
    board.names.take("event:7", {"translations": {"en": "12:15"}, "competitorIds": [1, 2, 3]})
    assert board.row(datum())[2].startswith("12:15")


def test_a_bet_without_its_nullable_parts_is_a_row() -> None:
    row = Board().row(datum(amount=None, selections=None))
    assert row[1:] == ("—\n2,467.50", "—\n")


def test_only_the_last_bets_are_shown() -> None:
    board = Board()
    for version in range(ROWS + 5):
        board.bets.append(datum(settlementVersion=version))
    assert [bet["settlementVersion"] for bet in board.bets] == list(range(5, ROWS + 5))


def test_the_figures_are_on_one_line() -> None:
    board = Board(state="Live", sent=1234, published=1200, revision=17, duplicates=1, wrong=2)
    assert board.line() == ("Live: 1,200 of 1,234 bets in the topic, 0/s, revision 17, 1 duplicates, 2 wrong")
    assert "revision —" in Board().line()


def test_kills_are_shown_only_after_the_first() -> None:
    board = Board()
    assert "killed" not in shown(board)
    board.kills = 2
    assert "2 times" in shown(board)


def test_elsewhere_than_on_a_terminal_there_are_lines(capsys: Any) -> None:
    """On stderr now and then, and the whole board on stdout at the end."""
    display = Display(Board(state="Live"))
    with display:
        display.tick()
        display.tick()
    out, err = capsys.readouterr()
    assert err.count("Live: 0 of 0 bets") == 1
    assert "settlement bridge" in out

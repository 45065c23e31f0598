"""Bets are a table on a terminal, and JSON lines elsewhere."""

from __future__ import annotations

import json
import sys

import pytest

from bridge.cli.output import print_bets
from bridge.inspection.readers import Bet
from tests.unit.inspection.test_readers import DATUM, RECORD

BETS = [Bet(RECORD, 9, DATUM | {"payout": 784.1062000000001}), Bet(RECORD, 10, None)]


@pytest.mark.parametrize("terminal", [False, True])
def test_bets_for_a_script_are_json_lines(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where stdout is no terminal, or --json asks for it: whole records, numbers as they are in Avro."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    print_bets(iter(BETS), json=terminal)
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert (first["offset"], first["value"]["payout"]) == (9, 784.1062000000001)
    assert (second["offset"], second["value"]) == (10, None)


@pytest.mark.parametrize("width", [80, 120])
def test_bets_on_a_terminal_are_a_table(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One head, one line for each bet, none wider than the terminal."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    print_bets(iter(BETS), json=False)
    head, bet, removed = capsys.readouterr().out.splitlines()
    assert head.split() == ["settled,", "UTC", "result", "payout", "stake", "items", "bet"]
    assert [head.index("payout") + 6, head.rindex("bet")] == [bet.index("784.1062") + 8, len(bet) - 1]
    assert removed.split() == ["removed", "b"]
    assert max(map(len, (head, bet, removed))) <= width

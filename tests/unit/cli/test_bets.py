"""Bets are a table on a terminal, and JSON lines elsewhere."""

from __future__ import annotations

import io
import json
import sys

import pytest
import typer

from bridge.cli.bets import _format, _print, _selection
from bridge.config import Settings
from bridge.inspection import gaps
from tests.unit.inspection.test_formats import NAMES, bet

BETS = [bet(payout=784.1062000000001), bet("c")]


def test_what_goes_elsewhere_is_json_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    stdout = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stdout)
    assert _print(iter(BETS), _format(None, False), None) == 2
    stdout.seek(0)
    first, second = map(json.loads, stdout)
    assert (first["offset"], first["value"]["payout"], second["key"]) == (9, "784.1062", "c")


@pytest.mark.parametrize("width", [80, 120])
def test_bets_on_a_terminal_are_a_table(
    width: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    assert _format(None, False) == "table"
    _print(iter(BETS[:1]), "table", lambda _: [NAMES])
    head, line, names = capsys.readouterr().out.splitlines()
    assert head.split() == ["settled,", "UTC", "result", "payout", "stake", "items", "bet"]
    assert [head.index("payout") + 6, head.rindex("bet")] == [line.index("784.1062") + 8, len(line) - 1]
    assert names == "  Malmö – Gent; Cup, Football; Winner: Malmö"
    assert max(map(len, (head, line, names))) <= width


def test_without_a_gap_nothing_is_read(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gaps, "read_gaps", lambda *_: [])
    with pytest.raises(typer.Exit) as ended:
        _selection(Settings(), None, None, None, None, None, False, True)
    assert ended.value.exit_code == 0
    said = "no gap of the feed settlement-v4 has been declared: no bet lies in one\n"
    assert capsys.readouterr().err == said

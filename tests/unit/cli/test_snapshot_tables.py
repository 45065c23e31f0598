"""What people see of a run: tables as wide as they are, bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType
from structlog.testing import capture_logs

from bridge.cli.snapshot_tables import LINE_SECONDS, Bars, plan_as_json, plan_as_table, report_as_table
from bridge.clock import Instant
from bridge.log import configure, get
from bridge.snapshots.report import Covered
from bridge.snapshots.wanted import Estimate
from tests.unit.snapshots.reports import AT, report

ROWS = [Estimate("/api/translations/{lang}/sports", 2, 2), Estimate("/api/x", 0, 10)]
OPEN = [*ROWS, Estimate("/api/translations/all/competitor/{competitorId}", 0, None)]


def shown(what: RenderableType, width: int = 80) -> str:
    """As text, each line without what fills it up."""
    file = io.StringIO()
    Console(file=file, width=width).print(what)
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    return "\n".join(line.rstrip() for line in lines)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_report_fits(width: int) -> None:
    text = shown(report_as_table(report(notes=("an oddity",))), width)
    assert "new ids fetched, 1,234 bets read, 56" in " ".join(text.split())
    assert "│ sport │      12 │       3 │       1 │       4 │ 100 %" in text
    assert "│ event │   2,000 │       – │       – │   2,000 │ en 100 %;" in text
    assert "sv 99.9 %" in " ".join(text.replace("│", " ").split())
    assert "- an oddity\n- event lacks a language: event:7" in text


def test_as_many_languages_as_there_may_be() -> None:
    named = {f"l{number:02}": 10 for number in range(30)} | {"xx": 0}
    rows = [Covered("event", 10, named, ["event:1"])]
    text = shown(report_as_table(report(coverage=rows, languages=tuple(named))))
    assert "2,000 │" in text
    assert " ".join(text.replace("│", " ").split()).count("l29 100 %; xx 0.0 %") == 1


def test_a_narrowed_run_covers_its_own_languages() -> None:
    text = shown(report_as_table(report(coverage=[Covered("sport", 4, {"sv": 2}, ["sport:1"])])))
    assert "│       4 │ 50.0 %" in text


def test_without_bets_there_is_nothing_to_cover() -> None:
    text = shown(report_as_table(report(coverage=[], complete=False)))
    assert "in bets" not in text
    assert "named" not in text
    assert ": new ids fetched, partial, 1,234 bets read" in " ".join(text.split())


def test_a_plan() -> None:
    assert shown(plan_as_table(ROWS, 4)).endswith("at 4 requests a second: 0.5s to 3s")
    assert shown(plan_as_table(ROWS[:1], 4)).endswith("at 4 requests a second: 0.5s")
    text = shown(plan_as_table(OPEN, 4))
    assert "│ /api/translations/all/competitor/{competitorId} │        0 │       ? │" in text
    assert text.endswith("at 4 requests a second: 0.5s or more")


def test_a_plan_has_null_for_what_is_not_known() -> None:
    assert plan_as_json(OPEN, 4)["atMost"] is plan_as_json(OPEN, 4)["secondsAtMost"] is None


def test_a_bar_for_each_thing_on_a_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=True, color_system=None)
    with Bars(lambda: Instant(AT, 0.0), console) as bars:
        bars("events", 1, 3)
        bars("markets", 1, 2)
        bars("events", 4, 5)
    last = file.getvalue().rpartition("events")[2]
    assert "4/5" in last
    assert "1/2" in last


def test_a_line_now_and_then_elsewhere() -> None:
    monotonic = [0.0]
    file = io.StringIO()
    with capture_logs() as lines, Bars(lambda: Instant(AT, monotonic[0]), Console(file=file)) as bars:
        for second in range(2 * int(LINE_SECONDS) + 1):
            monotonic[0] = float(second)
            bars("events", second, 100)
    assert file.getvalue() == ""
    assert [(line["doing"], line["done"], line["of"]) for line in lines] == [
        ("events", 15, 100),
        ("events", 30, 100),
    ]


def test_a_log_line_stands_above_the_bars() -> None:
    file = io.StringIO()
    configure(json=False)
    with Bars(lambda: Instant(AT, AT), Console(file=file, force_terminal=True)) as bars:
        bars("sports", 0, 2)
        get().warning("on purpose")
    assert "on purpose" in file.getvalue()

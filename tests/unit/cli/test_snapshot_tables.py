"""What people see of a run: tables as wide as they are, bars on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import io

from rich.console import Console
from structlog.testing import capture_logs

from bridge.cli.snapshot_tables import LINE_SECONDS, bars
from bridge.clock import Instant
from bridge.log import configure, get
from tests.unit.snapshots.reports import AT


def test_a_bar_for_each_thing_on_a_terminal() -> None:
    file = io.StringIO()
    console = Console(file=file, width=100, force_terminal=True, color_system=None)
    with bars(lambda: Instant(AT, 0.0), console) as show:
        show("events", 1, 3)
        show("markets", 1, 2)
        show("events", 4, 5)
    last = file.getvalue().rpartition("events")[2]
    assert "4/5" in last
    assert "1/2" in last


def test_a_line_now_and_then_elsewhere() -> None:
    monotonic = [0.0]
    file = io.StringIO()
    with capture_logs() as lines, bars(lambda: Instant(AT, monotonic[0]), Console(file=file)) as show:
        for second in range(2 * int(LINE_SECONDS) + 1):
            monotonic[0] = float(second)
            show("events", second, 100)
    assert file.getvalue() == ""
    assert [(line["doing"], line["done"], line["of"]) for line in lines] == [
        ("events", 15, 100),
        ("events", 30, 100),
    ]


def test_a_log_line_stands_above_the_bars() -> None:
    file = io.StringIO()
    configure(json=False)
    with bars(lambda: Instant(AT, AT), Console(file=file, force_terminal=True)) as show:
        show("sports", 0, 2)
        get().warning("on purpose")
    assert "on purpose" in file.getvalue()

"""The page with the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.figures import figure, summary
from benchmarks.latency import FIGURES, NAMES, Way, line
from benchmarks.process import BenchmarkFailed
from benchmarks.report import PAGE, replaced, spread, table, write

TEXT = "before\n<!-- micro -->\nold\n<!-- /micro -->\nafter\n"


def test_only_the_place_of_a_benchmark_is_renewed() -> None:
    """As often as one likes."""
    once = replaced(TEXT, "micro", "new\n")
    assert once == TEXT.replace("old", "new")
    assert replaced(once, "micro", "new\n") == once


def test_a_page_without_the_place_is_told_of() -> None:
    """The figures would be lost in silence."""
    with pytest.raises(BenchmarkFailed, match="no place for start"):
        replaced(TEXT, "start", "new")


def test_a_table_has_a_row_for_each_line() -> None:
    """Figures to the right."""
    assert table(["a", "b"], [["x", "1"]]) == "| a | b |\n| --- | ---: |\n| x | 1 |\n"


def test_a_figure_is_told_with_its_spread() -> None:
    """The median first."""
    assert spread(figure([1000.0, 3000.0, 2000.0]).as_json()) == "2,000 (1,000–3,000)"


def test_a_run_becomes_a_table_and_a_plot(tmp_path: Path) -> None:
    """With where it was measured."""
    page, plots = tmp_path / "page.md", tmp_path / "plots"
    page.write_text(TEXT.replace("micro", "catchup"))
    rates = {
        name: {"median": n, "min": n, "max": n} for name, n in (("messages_per_second", 5.0), ("cpu_us", 7.0))
    }
    extent = {"rounds": 5, "messages": 2000}
    line = {"bench": "catchup", "contender": "bridge", **extent, **rates, "peak_mb": rates["cpu_us"]}
    write("catchup", [line], "Measured here.", page, plots)
    text = page.read_text()
    assert "| bridge | 5 (5–5) | 7.0 | 7 | – | – |" in text
    assert "![catchup](plots/catchup.svg)" in text
    assert "\n5 rounds of 2,000 messages. Measured here.\n<!-- /catchup -->\nafter\n" in text
    assert (plots / "catchup.svg").read_text().startswith("<svg")


def rendered(tmp_path: Path, bench: str, lines: list[dict[str, Any]]) -> tuple[str, set[str]]:
    """What the page shows of these lines, and the names of the plots."""
    page = tmp_path / "page.md"
    page.write_text(TEXT.replace("micro", bench))
    write(bench, [{"rounds": 5, **line} for line in lines], "", page, tmp_path / "plots")
    return page.read_text(), {plot.name for plot in (tmp_path / "plots").iterdir()}


def test_a_step_has_a_row_for_all_that_it_is_held_against(tmp_path: Path) -> None:
    """Each with its ratio."""
    costs = summary([{"bridge_us": 10.0, "floor_us": 70.0, "compiled_us": 5.0}])
    ratios = summary([{"ratio_floor": 7.0, "ratio_compiled": 0.5}])
    text, _ = rendered(tmp_path, "micro", [{"bench": "micro", "step": "convert", **costs, **ratios}])
    assert "| convert | 10.0 (10.0–10.0) | floor 70.0 (70.0–70.0) | 7.00 |\n" in text
    assert "| convert | 10.0 (10.0–10.0) | compiled 5.0 (5.0–5.0) | 0.50 |\n" in text


def test_latency_is_shown_with_its_ratios(tmp_path: Path) -> None:
    """Those of the bridge, by rate and by what it is held against, and all that it was tried with."""
    slowness = {"bridge": 4, "bare": 1, "bare + checkpoint": 2}
    found = {
        Way(name, interval): [
            {figure: (10.0 + number) * interval * slowness[name] for number, figure in enumerate(FIGURES)}
        ]
        for name in NAMES
        for interval in (2, 1)
    }
    lines = [
        {"bench": "latency", "contender": name, "rate": rate, **line(found, name)}
        for rate in (100, 5000)
        for name in NAMES
    ]
    text, plots = rendered(tmp_path, "latency", lines)
    assert "| 5,000/s bridge | 40.0 (1) | 44.0 (1) | 48.0 (1) | 52.0 (1) | 56.0 (1) | 60.0 (1) |\n" in text
    assert "| 5,000/s bare + checkpoint | 20.0 (1) | 22.0 (1) |" in text
    assert f"| 100/s, bare | {' | '.join(['4.00'] * 6)} |\n" in text
    assert f"| 5,000/s, bare + checkpoint | {' | '.join(['2.00'] * 6)} |\n" in text
    assert "| 100/s, 2 | 80.0 | 88.0 | 96.0 | 104.0 | 112.0 | 120.0 |\n" in text
    assert plots == {"latency.svg"}


def test_growth_is_shown_by_what_grows(tmp_path: Path) -> None:
    """And memory over time as a plot."""
    cost = summary([{"cpu_us": 50.0, "peak_mb": 90.0, "ratio_smallest": 1.0}])
    known = summary([{"us": 4.0, "rss_mb": 60.0, "ratio_smallest": 1.1}])
    samples = [{"seconds": n, "committed": 1000 * n, "rss_mb": 80.0 + n} for n in range(5)]
    lines = [
        {"bench": "growth", "by": "partitions", "partitions": 48, **cost},
        {"bench": "growth", "by": "known", "known": 1_000_000, **known},
        {"bench": "growth", "by": "time", "messages": 4000, "samples": samples},
    ]
    text, plots = rendered(tmp_path, "growth", lines)
    assert "| 48 partitions | 50.0 (50.0–50.0) | 90 | 1.00 |\n" in text
    assert "| 1,000,000 bets known (guard alone) | 4.0 (4.0–4.0) | 60 | 1.10 |\n" in text
    assert plots == {"memory.svg"}


def test_start_and_snapshots_are_shown(tmp_path: Path) -> None:
    """By the size of the guard, and by the number of records."""
    start = {"guard": 1_000_000, **summary([{"seconds": 3.5, "cpu_seconds": 2.0, "peak_mb": 150.0}])}
    found = {"records_per_second": 30_000.0, "cpu_us": 14.0, "peak_mb": 520.0, "provider_cpu_us": 1.0}
    text, _ = rendered(tmp_path, "start", [start])
    assert "| 1,000,000 bets | 3.50 (3.50–3.50) | 2.00 | 150 |\n" in text
    text, _ = rendered(tmp_path, "snapshots", [{"records": 1_000_000, **summary([found])}])
    assert "| 1,000,000 | 30,000 (30,000–30,000) | 14.0 | 520 | 1.0 |\n" in text


def test_the_page_has_a_place_for_every_benchmark() -> None:
    """Each once."""
    text = PAGE.read_text("utf-8")
    for bench in ("catchup", "latency", "start", "growth", "snapshots", "micro"):
        assert text.count(f"<!-- {bench} -->\n") == text.count(f"<!-- /{bench} -->") == 1

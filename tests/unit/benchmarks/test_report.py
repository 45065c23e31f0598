"""The page with the figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.figures import summary
from benchmarks.latency import FIGURES, NAMES, Way, line
from benchmarks.report import write

TEXT = "before\n<!-- micro -->\nold\n<!-- /micro -->\nafter\n"


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

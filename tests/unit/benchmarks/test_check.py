"""Whether a ratio has fallen."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import Mock, call

import pytest

from benchmarks.check import check, fallen, ratios, read, report, write


def line(bench: str, **found: Any) -> dict[str, Any]:
    """A line as a benchmark yields it."""
    return {"bench": bench} | {k: {"median": v} if isinstance(v, float) else v for k, v in found.items()}


def test_only_ratios_of_the_bridge_are_compared() -> None:
    lines = [
        line("catchup", contender="bridge", messages_per_second=9e3, ratio_floor=6.1, ratio_ceiling=0.2),
        line("catchup", contender="bridge (unknown field)", ratio_bridge=0.9),
        line("catchup", contender="floor", messages_per_second=1.5e3, ratio_bridge=0.1),
        line("latency", contender="bridge", rate=100, ratio_bare_read_committed_p50=1.1),
        line("latency", contender="bridge", rate=500, ratio_bare_read_committed_p50=1.2),
        line("latency", contender="bridge", rate=500, ratio_redpanda_read_committed_p50=1.3),
        line("latency", contender="bridge", rate=500, ratio_bare_read_committed_p99_9=1.4),
        line("growth", by="selections", size="1 selections", cpu_us=10.0),
        line("growth", by="selections", size="50 selections", cpu_us=90.0, ratio_smallest=9.0),
        line("growth", by="time", seconds=3.0, samples=[]),
        line("micro", step="encode", bridge_us=11.0, fastavro_us=77.0, ratio_fastavro=7.0),
    ]
    assert ratios(lines) == {
        "catchup.bridge.floor": 6.1,
        "catchup.bridge.ceiling": 0.2,
        "catchup.bridge (unknown field).bridge": 0.9,
        "latency.500.bare_read_committed_p50": 1.2,
        "growth.50 selections.smallest": 9.0,
        "micro.encode.fastavro": 7.0,
    }


@pytest.mark.parametrize(
    ("name", "now", "falls"),
    [
        ("micro.encode.fastavro", 10.0, False),
        ("micro.encode.fastavro", 8.0, False),
        ("micro.encode.fastavro", 7.99, True),
        ("micro.encode.fastavro", 20.0, False),
        ("growth.50 selections.smallest", 12.0, False),
        ("growth.50 selections.smallest", 12.01, True),
        ("growth.50 selections.smallest", 5.0, False),
        ("latency.500.bare_read_committed_p50", 12.9, False),
        ("latency.500.bare_read_committed_p50", 13.1, True),
    ],
)
def test_a_fifth_is_tolerated_of_latency_three_tenths(name: str, now: float, falls: bool) -> None:
    [said] = report({name: 10.0}, {name: now})
    assert said.startswith("FELL") is falls


def test_the_report_has_what_was_measured_and_nothing_else() -> None:
    assert report(
        {"micro.encode.fastavro": 10.0, "learn.currencies.again": 3.0},
        {
            "micro.encode.fastavro": 5.0,
            "micro.parse.json": 4.0,
        },
    ) == [
        "FELL micro.encode.fastavro: 5, 50% worse than the baseline of 10",
        "     micro.parse.json: 4, not in the baseline",
    ]


def test_a_ratio_of_the_gate_that_is_not_measured_has_fallen() -> None:
    baseline = {"micro.deduplicate.dict": 0.2, "limit.all parts.bridge": 0.6}
    assert [change.name for change in fallen(baseline, {})] == ["micro.deduplicate.dict"]


BASELINE = {"catchup.bridge.floor": 6.0, "micro.encode.fastavro": 7.0, "micro.deduplicate.dict": 0.2}


def test_a_benchmark_whose_ratio_fell_runs_again_and_only_the_second_figure_counts() -> None:
    for again, expected in (
        ({"micro.encode.fastavro": 6.9, "micro.deduplicate.dict": 0.0}, []),
        ({"micro.encode.fastavro": 2.0}, [("micro.encode.fastavro", 7.0, 2.0)]),
    ):
        measure = Mock(side_effect=[{**BASELINE, "micro.encode.fastavro": 1.0}, again])
        assert check(BASELINE, measure) == expected
        assert measure.call_args_list == [call({"catchup", "micro"}), call({"micro"})]


def test_storing_leaves_what_was_not_measured(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    file.write_text('{"catchup.bridge.floor": 6.0, "micro.parse.json": 3.0}')
    write({"micro.parse.json": 4.0, "limit.all parts.bridge": 0.6}, file)
    assert read(file) == {
        "catchup.bridge.floor": 6.0,
        "micro.parse.json": 4.0,
        "limit.all parts.bridge": 0.6,
    }


def test_the_stored_baseline_has_ratios_of_every_benchmark() -> None:
    stored = read()
    benches = {name.partition(".")[0] for name in stored}
    assert benches == {"catchup", "latency", "start", "growth", "snapshots", "learn", "micro", "limit"}
    assert all(value > 0 for value in stored.values())

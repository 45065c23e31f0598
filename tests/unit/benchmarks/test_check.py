"""Whether a ratio has fallen."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock, call

import pytest

from benchmarks.check import check, fallen, ratios, read, report


def line(bench: str, **found: Any) -> dict[str, Any]:
    """A line as a benchmark yields it."""
    return {"bench": bench} | {k: {"median": v} if isinstance(v, float) else v for k, v in found.items()}


def test_only_ratios_of_the_bridge_are_compared() -> None:
    lines = [
        line("catchup", contender="bridge", messages_per_second=9e3, ratio_floor=6.1),
        line("catchup", contender="floor", messages_per_second=1.5e3, ratio_bridge=0.1),
        line("latency", contender="bridge", rate=100, ratio_bare_read_committed_p50=1.1),
        line("latency", contender="bridge", rate=500, ratio_bare_read_committed_p50=1.2),
        line("latency", contender="bridge", rate=500, ratio_redpanda_read_committed_p50=1.3),
        line("micro", step="encode", bridge_us=11.0, ratio_fastavro=7.0),
    ]
    assert ratios(lines) == {
        "catchup.bridge.floor": 6.1,
        "latency.500.bare_read_committed_p50": 1.2,
        "micro.encode.fastavro": 7.0,
    }


@pytest.mark.parametrize(
    ("name", "now", "falls"),
    [
        ("micro.encode.fastavro", 8.0, False),
        ("micro.encode.fastavro", 7.99, True),
        ("growth.50 selections.smallest", 12.01, True),
        ("growth.50 selections.smallest", 5.0, False),
        ("latency.500.bare_read_committed_p50", 12.9, False),
        ("latency.500.bare_read_committed_p50", 13.1, True),
    ],
)
def test_a_fifth_is_tolerated_of_latency_three_tenths(name: str, now: float, falls: bool) -> None:
    [said] = report({name: 10.0}, {name: now})
    assert said.startswith("FELL") is falls


def test_a_ratio_of_the_gate_that_is_not_measured_has_fallen() -> None:
    baseline = {"micro.deduplicate.dict": 0.2, "limit.all parts.bridge": 0.6}
    assert [change.name for change in fallen(baseline, {})] == ["micro.deduplicate.dict"]


def test_a_benchmark_whose_ratio_fell_runs_again_and_only_the_second_figure_counts() -> None:
    baseline = {"catchup.bridge.floor": 6.0, "micro.encode.fastavro": 7.0, "micro.deduplicate.dict": 0.2}
    for again, expected in (
        ({"micro.encode.fastavro": 6.9, "micro.deduplicate.dict": 0.0}, []),
        ({"micro.encode.fastavro": 2.0}, [("micro.encode.fastavro", 7.0, 2.0)]),
    ):
        measure = Mock(side_effect=[{**baseline, "micro.encode.fastavro": 1.0}, again])
        assert check(baseline, measure) == expected
        assert measure.call_args_list == [call({"catchup", "micro"}), call({"micro"})]


def test_the_stored_baseline_has_ratios_of_every_benchmark() -> None:
    benches = {name.partition(".")[0] for name in read()}
    assert benches == {"catchup", "latency", "start", "growth", "snapshots", "learn", "micro", "limit"}

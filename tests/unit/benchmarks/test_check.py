"""Whether a ratio has fallen."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock, call

import pytest

from benchmarks.check import check, fallen, ratios, read


def measured(name: str, contender: str = "bridge", **found: float) -> dict[str, Any]:
    """A line as a benchmark gives it."""
    return {"bench": name, "contender": contender, **{k: {"median": v} for k, v in found.items()}}


def test_the_baseline_is_made_of_ratios_only() -> None:
    """Those of the bridge, and of each step."""
    lines = [
        measured("catchup", messages_per_second=9000, ratio_floor=6.1, ratio_ceiling=0.2),
        measured("catchup", "bridge compiled", ratio_floor=8.0, ratio_ceiling=0.3),
        measured("catchup", "floor", messages_per_second=1500, ratio_floor=1.0, ratio_ceiling=0.03),
        {**measured("micro", bridge_us=11, fastavro_us=77, ratio_fastavro=7.0), "step": "encode"},
    ]
    assert ratios(lines) == {
        "catchup.floor": 6.1,
        "catchup.ceiling": 0.2,
        "catchup.compiled": 8.0,
        "micro.encode": 7.0,
    }


@pytest.mark.parametrize(("now", "falls"), [(10.0, 0), (8.0, 0), (7.99, 1), (20.0, 0)])
def test_a_fifth_is_tolerated(now: float, falls: int) -> None:
    """And nothing is said of what has risen."""
    assert len(fallen({"micro.encode": 10.0}, {"micro.encode": now})) == falls


def test_a_ratio_that_is_not_measured_has_fallen() -> None:
    """A benchmark that has lost a step must not pass."""
    assert [fall.name for fall in fallen({"micro.deduplicate": 0.2}, {})] == ["micro.deduplicate"]


BASELINE = {"catchup.floor": 6.0, "micro.encode": 7.0, "micro.deduplicate": 0.2}


def test_a_benchmark_whose_ratio_fell_runs_again_and_only_the_second_figure_counts() -> None:
    """Only the ratios that fell are judged by the second run: the first fall may have been noise."""
    for again, expected in (
        ({"micro.encode": 6.9, "micro.deduplicate": 0.0}, []),
        ({"micro.encode": 2.0}, [("micro.encode", 7.0, 2.0)]),
    ):
        measure = Mock(side_effect=[{**BASELINE, "micro.encode": 1.0}, again])
        assert check(BASELINE, measure) == expected
        assert measure.call_args_list == [call({"catchup", "micro"}), call({"micro"})]


def test_the_stored_baseline_knows_every_step() -> None:
    """So that no regression goes unnoticed."""
    steps = {
        f"micro.{step}" for step in ("receive", "validate", "encode", "convert", "deduplicate", "produce")
    }
    assert read().keys() == {"catchup.floor", "catchup.ceiling", "catchup.compiled"} | steps
    assert all(value > 0 for value in read().values())

"""Whether a ratio has fallen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.check import Ratios, check, fallen, ratios, read, write


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
    assert [fall.name for fall in fallen({"micro.guard": 0.2}, {})] == ["micro.guard"]


def test_a_fall_names_both_figures() -> None:
    """And the ratio."""
    [fall] = fallen({"catchup.floor": 6.0}, {"catchup.floor": 4.5})
    assert str(fall) == "catchup.floor fell by 25%: the baseline is 6, measured 4.5"


class Measurements:
    """What is measured, one time after the other, and what was asked for."""

    def __init__(self, *results: Ratios) -> None:
        self._results = iter(results)
        self.asked: list[set[str]] = []

    def __call__(self, benches: set[str]) -> Ratios:
        """The next result."""
        self.asked.append(benches)
        return next(self._results)


BASELINE = {"catchup.floor": 6.0, "micro.encode": 7.0, "micro.guard": 0.2}


def test_what_holds_is_measured_once() -> None:
    """Both benchmarks of it."""
    measurements = Measurements(BASELINE)
    assert check(BASELINE, measurements) == []
    assert measurements.asked == [{"catchup", "micro"}]


def test_what_fell_once_may_have_been_noise() -> None:
    """Only its own benchmark runs again, and only it is judged by that."""
    first, again = {**BASELINE, "micro.encode": 1.0}, {"micro.encode": 6.9, "micro.guard": 0.0}
    measurements = Measurements(first, again)
    assert check(BASELINE, measurements) == []
    assert measurements.asked[1:] == [{"micro"}]


def test_what_fell_twice_has_fallen() -> None:
    """The second figure is told."""
    first, again = {**BASELINE, "catchup.floor": 1.0}, {"catchup.floor": 2.0}
    assert check(BASELINE, Measurements(first, again)) == [("catchup.floor", 6.0, 2.0)]


def test_a_baseline_is_read_as_it_was_written(tmp_path: Path) -> None:
    """In a file that can be compared line by line."""
    write(BASELINE, tmp_path / "baseline.json")
    assert read(tmp_path / "baseline.json") == BASELINE
    assert (tmp_path / "baseline.json").read_text().count("\n") == len(BASELINE) + 2


def test_the_stored_baseline_knows_every_step() -> None:
    """So that no regression goes unnoticed."""
    steps = {
        "micro.receive",
        "micro.validate",
        "micro.encode",
        "micro.convert",
        "micro.guard",
        "micro.produce",
    }
    assert read().keys() == {"catchup.floor", "catchup.ceiling", "catchup.compiled"} | steps
    assert all(value > 0 for value in read().values())

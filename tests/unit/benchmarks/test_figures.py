"""Medians, percentiles and ratios, and which interval of a contender counts."""

from __future__ import annotations

from benchmarks.figures import figure, percentile, ratio
from benchmarks.latency import FIGURES, Delays, Way, best, line

P50, P99 = FIGURES[0], FIGURES[1]


def delays(p50: float, p99: float) -> Delays:
    return dict.fromkeys(FIGURES, 50.0) | {P50: p50, P99: p99}


def test_a_ratio_is_the_median_of_those_of_the_rounds() -> None:
    assert figure([4.0, 1.0, 2.0, 3.0]) == (2.5, 1.0, 4.0)
    assert ratio([10.0, 1.0, 30.0], [5.0, 0.5, 10.0]) == (2.0, 2.0, 3.0)


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(n) for n in range(100, 0, -1)]
    assert [percentile(values, share) for share in (0.0, 0.01, 0.5, 0.99, 0.999)] == [1, 1, 50, 99, 100]


def test_each_figure_has_the_interval_that_is_best_for_it() -> None:
    quick, slow = (Way("bridge", interval) for interval in (5, 40))
    found = {
        quick: [delays(10, 90), delays(11, 1), delays(12, 92)],
        slow: [delays(30, 40), delays(9, 41)] * 2,
    }
    assert best(found, "bridge", P50) == quick
    assert best(found, "bridge", P99) == slow


def test_the_bridge_is_divided_by_each_peer_at_its_best() -> None:
    found = {
        Way("bridge", 10): [delays(10, 90)],
        Way("bare", 10): [delays(5, 60)],
        Way("bare", 20): [delays(8, 30)],
    }
    told = line(found, "bridge")
    ratios = {name: it["median"] for name, it in told.items() if name.startswith("ratio_")}
    assert len(ratios) == len(FIGURES)
    assert (ratios["ratio_bare_read_committed_p50"], ratios["ratio_bare_read_committed_p99"]) == (2.0, 3.0)

"""A contender is reported with what it can reach, not with the luckiest of its runs."""

from __future__ import annotations

from benchmarks.latency import FIGURES, Delays, Way, best

P50, P99 = FIGURES[0], FIGURES[1]


def delays(p50: float, p99: float) -> Delays:
    return dict.fromkeys(FIGURES, 50.0) | {P50: p50, P99: p99}


def test_each_figure_has_the_interval_that_is_best_for_it() -> None:
    """By the median of the rounds: one lucky round does not choose."""
    quick, slow = (Way("bridge", interval) for interval in (5, 40))
    found = {
        quick: [delays(10, 90), delays(11, 1), delays(12, 92)],
        slow: [delays(30, 40), delays(9, 41)] * 2,
    }
    assert best(found, "bridge", P50) == quick
    assert best(found, "bridge", P99) == slow

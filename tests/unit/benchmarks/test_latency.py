"""What is told of a contender is what it can reach, not the luckiest of its runs."""

from __future__ import annotations

from benchmarks.latency import FIGURES, INTERVALS, NAMES, Delays, Way, best, line, ratio_name

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


def test_a_ratio_is_of_the_best_of_both() -> None:
    """Whatever the interval of either, round by round; all that was tried is told as well."""
    found = {Way(name, interval): [delays(20, 100)] * 3 for name in NAMES for interval in INTERVALS}
    found[Way("bare", 5)] = [delays(10, 200), delays(8, 200), delays(16, 200)]
    found[Way("bridge", 20)] = [delays(19, 300), delays(16, 300), delays(8, 300)]
    told = line(found, "bridge")
    assert told[ratio_name("bare", P50)] == {"median": 1.9, "min": 0.5, "max": 2.0}
    assert told[ratio_name("bare", P99)]["median"] == 1.0
    assert told[P50] == {"median": 16.0, "min": 8.0, "max": 19.0, "interval_ms": 20}
    bare = line(found, "bare")
    assert (bare[P50]["median"], bare[P50]["interval_ms"]) == (10.0, 5)
    assert {interval: figures[P50] for interval, figures in bare["intervals"].items()} == {
        "5": 10.0,
        "10": 20.0,
        "20": 20.0,
        "40": 20.0,
    }

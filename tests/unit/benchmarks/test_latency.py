"""A contender is reported with what it can reach, not with the luckiest of its runs."""

from __future__ import annotations

import pytest

from benchmarks.contenders import FLOOR
from benchmarks.latency import CONNECT_MS, FIGURES, Delays, Way, best, line, ways_at

P50, P99 = FIGURES[0], FIGURES[1]


def delays(p50: float, p99: float) -> Delays:
    return dict.fromkeys(FIGURES, 50.0) | {P50: p50, P99: p99}


def test_each_figure_has_the_interval_that_is_best_for_it() -> None:
    quick, slow = (Way("bridge", interval) for interval in (5, 40))
    found = {
        quick: [delays(10, 90), delays(11, 1), delays(12, 92)],
        slow: [delays(30, 40), delays(9, 41)] * 2,
    }
    assert best(found, "bridge", P50) == quick
    assert best(found, "bridge", P99) == slow


@pytest.mark.parametrize(("rate", "there"), [(100, False), (500, True), (1000, True), (5000, False)])
def test_relay_and_redpanda_connect_take_part_at_two_rates(rate: int, there: bool) -> None:
    connect = Way("redpanda-connect", CONNECT_MS)
    assert (connect in ways_at(rate, FLOOR)) is there
    assert ("relay" in {way.name for way in ways_at(rate, None)}) is there
    assert connect not in ways_at(rate, None)


def test_the_bridge_is_divided_by_each_peer_that_was_measured() -> None:
    found = {
        Way("bridge", 10): [delays(10, 90)],
        Way("bare", 10): [delays(5, 60)],
        Way("bare", 20): [delays(8, 30)],
    }
    ratios = {name: value for name, value in line(found, "bridge").items() if name.startswith("ratio_")}
    assert len(ratios) == len(FIGURES)
    assert ratios["ratio_bare_read_committed_p50"]["median"] == 2.0
    assert ratios["ratio_bare_read_committed_p99"]["median"] == 3.0

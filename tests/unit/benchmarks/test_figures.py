"""Medians, percentiles and ratios."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.figures import figure, in_turn, percentile, ratio


def test_a_figure_is_a_median_with_its_spread() -> None:
    assert figure([5.0, 1.0, 3.0]) == (3.0, 1.0, 5.0)
    assert figure([4.0, 1.0, 2.0, 3.0]).median == 2.5


def test_ratios_are_formed_round_by_round() -> None:
    assert ratio([10.0, 1.0, 30.0], [5.0, 0.5, 10.0]) == (2.0, 2.0, 3.0)


@pytest.mark.parametrize(
    ("share", "expected"), [(0.5, 50), (0.99, 99), (0.999, 100), (0.01, 1), (0.0, 1), (1.0, 100)]
)
def test_a_percentile_is_one_of_the_values(share: float, expected: float) -> None:
    assert percentile([float(n) for n in range(100, 0, -1)], share) == expected


def test_each_contender_is_in_each_place_once() -> None:
    names = ["a", "b", "c"]
    orders = [in_turn(names, number) for number in range(3)]
    assert all(sorted(order) == names for order in orders)
    for place in range(3):
        assert Counter(order[place] for order in orders) == Counter(names)

"""Figures of several rounds: medians with their spread, percentiles, ratios round by round. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple, TypeVar

T = TypeVar("T")

_DIGITS = 4


class Figure(NamedTuple):
    """A median, and the least and the most of what it is the median of."""

    median: float
    least: float
    most: float

    def as_json(self) -> dict[str, float]:
        """Rounded to four digits that say something."""
        return {name: significant(value) for name, value in zip(("median", "min", "max"), self, strict=True)}


def figure(values: Iterable[float]) -> Figure:
    """Of at least one value."""
    found = sorted(values)
    return Figure(median(found), found[0], found[-1])


def ratio(values: Sequence[float], others: Sequence[float]) -> Figure:
    """Of two contenders, from their ratio in each round: what slows down a round slows down both."""
    return figure(a / b for a, b in zip(values, others, strict=True))


def percentile(values: Sequence[float], share: float) -> float:
    """The least of the values that at least `share` (0–1) of them do not exceed."""
    found = sorted(values)
    rank = -int(-share * len(found) // 1)
    return found[max(rank, 1) - 1]


def significant(value: float) -> float:
    """Rounded to four significant digits."""
    return float(f"{value:.{_DIGITS}g}")


def in_turn(contenders: Sequence[T], number: int) -> list[T]:
    """The order of round `number` (from 0): whoever was first in the last is now the last."""
    start = number % len(contenders)
    return [*contenders[start:], *contenders[:start]]


def summary(rounds: Sequence[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Each figure of the rounds by its name, as JSON."""
    return {name: figure(r[name] for r in rounds).as_json() for name in rounds[0]}

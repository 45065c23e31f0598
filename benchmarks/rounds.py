"""Rounds: each way is measured once in every round, in turn, and each figure is the median of the rounds."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.figures import in_turn, ratio, summary
from benchmarks.process import OTHER

Line = dict[str, Any]
"""The figures of a way, as JSON."""
Result = dict[str, float]
"""Figures of one round, by name."""
Results = Sequence[Mapping[str, float]]
W = TypeVar("W")


@dataclass(frozen=True)
class Options:
    """What `make bench` was asked for; None and nothing are what a benchmark does by default."""

    rounds: int
    contenders: Sequence[str] = ()
    messages: int | None = None
    seconds: int | None = None
    rates: Sequence[int] = ()
    build: Path | None = None
    """Another checkout with its own `.venv`."""

    @property
    def builds(self) -> dict[str, Path | None]:
        """The builds to be measured in turn, by name: this one, and the other if one is given."""
        return {"bridge": None} | ({OTHER: self.build} if self.build else {})


def say(line: str) -> None:
    """Print to stderr; stdout is for the figures."""
    print(line, file=sys.stderr, flush=True)


def measured(what: str, ways: Sequence[W], rounds: int, once: Callable[[W], Result]) -> dict[W, list[Result]]:
    """Return the results of each way. Tells the first figure of each, for who waits; `what` names them."""
    found: dict[W, list[Result]] = {way: [] for way in ways}
    for number in range(rounds):
        for way in in_turn(ways, number):
            found[way].append(once(way))
            name, value = next(iter(found[way][-1].items()))
            say(f"{what}, round {number + 1} of {rounds}: {way}: {name} {value:,.6g}")
    return found


def line(bench: str, results: Results, **named: Any) -> Line:
    """Return the line of a way; `named` says which."""
    return {"bench": bench, **named, "rounds": len(results), **summary(results)}


def divided(results: Results, others: Results, figure: str, by: str = "") -> dict[str, float]:
    """Return a figure of one way divided by that of another, or its figure `by`, round by round."""
    return ratio([r[figure] for r in results], [r[by or figure] for r in others]).as_json()

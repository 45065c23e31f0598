"""`make bench-check`: has a ratio fallen since the baseline? Never a time: machines differ, ratios less.

A short catch-up and the steps alone. What has fallen is measured once more before it counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import catchup, micro
from benchmarks.arena import Arena
from benchmarks.contenders import BRIDGE, CEILING, COMPILED, FLOOR

BASELINE = Path(__file__).with_name("baseline.json")
TOLERATED = 0.2
"""A ratio may be lower than its baseline by that share of it."""
ROUNDS = 3
MESSAGES = 60_000

Ratios = dict[str, float]
"""Name, such as `catchup.floor` or `micro.encode`, → ratio. More is better."""


class Fall(NamedTuple):
    """A ratio that is too low."""

    name: str
    baseline: float
    measured: float

    def __str__(self) -> str:
        share = 1 - self.measured / self.baseline
        return (
            f"{self.name} fell by {share:.0%}: the baseline is {self.baseline:g}, measured {self.measured:g}"
        )


def ratios(lines: Iterable[Mapping[str, Any]]) -> Ratios:
    """What the baseline holds, of the lines of a catch-up and of the steps."""
    found: Ratios = {}
    for line in lines:
        if line["bench"] == "catchup" and line["contender"] == BRIDGE.name:
            for other in (FLOOR.name, CEILING.name):
                found[f"catchup.{other}"] = line[f"ratio_{other}"]["median"]
        elif line["bench"] == "catchup" and line["contender"] == COMPILED.name:
            found["catchup.compiled"] = line[f"ratio_{FLOOR.name}"]["median"]
        elif line["bench"] == "micro":
            found[f"micro.{line['step']}"] = next(
                v["median"] for k, v in line.items() if k.startswith("ratio_")
            )
    return found


def fallen(baseline: Mapping[str, float], measured: Mapping[str, float]) -> list[Fall]:
    """What lies more than a fifth below the baseline; what is not measured any more lies at nothing."""
    return [
        Fall(name, before, now)
        for name, before in baseline.items()
        if (now := measured.get(name, 0.0)) < before * (1 - TOLERATED)
    ]


def measure(arena: Arena, benches: Iterable[str], rounds: int, say: Callable[[str], None]) -> Ratios:
    """The ratios of `catchup`, of `micro`, or of both."""
    lines: list[dict[str, Any]] = []
    if "catchup" in benches:
        lines += catchup.compare(arena, (BRIDGE, COMPILED, FLOOR, CEILING), rounds, MESSAGES, say)
    if "micro" in benches:
        lines += micro.run(arena, rounds, say)
    return ratios(lines)


def check(baseline: Mapping[str, float], measured: Callable[[set[str]], Ratios]) -> list[Fall]:
    """What has fallen twice in a row; `measured` is given the benchmarks that are asked for."""
    first = fallen(baseline, measured({"catchup", "micro"}))
    if not first:
        return []
    again = measured({fall.name.partition(".")[0] for fall in first})
    return fallen({fall.name: fall.baseline for fall in first}, again)


def read(file: Path = BASELINE) -> Ratios:
    """The stored ratios."""
    stored: Ratios = json.loads(file.read_text("utf-8"))
    return stored


def write(measured: Mapping[str, float], file: Path = BASELINE) -> None:
    """Store these from now on."""
    file.write_text(json.dumps(dict(measured), indent=2) + "\n", "utf-8")

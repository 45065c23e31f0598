"""Compares ratios with the stored ones. Never times: they differ between machines, ratios less.

Each run of `make bench` is compared. `make bench-check` is the short gate: a catch-up and the steps alone.
There, what has fallen is measured once more before it counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import catchup, latency, micro
from benchmarks.arena import Arena
from benchmarks.contenders import BRIDGE, CEILING, FLOOR, UNKNOWN_FIELD
from benchmarks.process import OTHER
from benchmarks.rounds import Options

BASELINE = Path(__file__).with_name("baseline.json")
GATE = frozenset({"catchup", "micro"})
"""The benchmarks of `make bench-check`."""
ROUNDS = 3
MESSAGES = 60_000
_SUBJECTS = {
    "catchup": "contender",
    "latency": "rate",
    "start": "deduplicator",
    "growth": "size",
    "snapshots": "records",
    "learn": "job",
    "micro": "step",
    "limit": "part",
    "replay": "what",
}
"""What the lines of a benchmark differ in."""
_LESS_IS_BETTER = frozenset({"latency", "start", "growth", "snapshots", "learn"})
_TOLERATED, _TOLERATED_OF_LATENCY = 0.2, 0.3
"""A ratio may be worse by this share of its baseline. Latency varies more."""

Ratios = dict[str, float]
"""Name, such as `catchup.bridge.floor` or `micro.encode.fastavro`, → ratio."""


class Change(NamedTuple):
    """A ratio beside its baseline."""

    name: str
    baseline: float
    measured: float

    @property
    def worse(self) -> float:
        """By which share of the baseline it is worse; negative where it is better."""
        more = self.measured / self.baseline - 1
        return more if _bench(self.name) in _LESS_IS_BETTER else -more

    @property
    def has_fallen(self) -> bool:
        """Whether it is worse by more than is tolerated."""
        return self.worse > (_TOLERATED_OF_LATENCY if _bench(self.name) == "latency" else _TOLERATED)

    def __str__(self) -> str:
        change = f"{abs(self.worse):.0%} {'worse' if self.worse > 0 else 'better'}"
        return f"{self.name}: {self.measured:g}, {change} than the baseline of {self.baseline:g}"


def ratios(lines: Iterable[Mapping[str, Any]]) -> Ratios:
    """Return the ratios of these lines that are compared."""
    return {
        f"{line['bench']}.{line[_SUBJECTS[line['bench']]]}.{key.removeprefix('ratio_')}": value["median"]
        for line in lines
        for key, value in line.items()
        if key.startswith("ratio_") and line.get("build") != OTHER and _is_compared(line, key)
    }


def _is_compared(line: Mapping[str, Any], ratio: str) -> bool:
    if line["bench"] == "catchup":
        return line["contender"] in (BRIDGE.name, UNKNOWN_FIELD.name)
    return line["bench"] != "latency" or (
        line["rate"] in latency.COMPARED_RATES and ratio in latency.COMPARED
    )


def report(baseline: Mapping[str, float], measured: Mapping[str, float]) -> list[str]:
    """Return a line for each ratio; those of ratios that have fallen begin with FELL."""
    return [
        f"{'FELL' if (change := Change(name, baseline[name], now)).has_fallen else '    '} {change}"
        if name in baseline
        else f"     {name}: {now:g}, not in the baseline"
        for name, now in measured.items()
    ]


def fallen(baseline: Mapping[str, float], measured: Mapping[str, float]) -> list[Change]:
    """Return the ratios of the gate that have fallen. One that is not measured any more counts as 0."""
    changes = [
        Change(name, before, measured.get(name, 0.0))
        for name, before in baseline.items()
        if _bench(name) in GATE
    ]
    return [change for change in changes if change.has_fallen]


def check(baseline: Mapping[str, float], measured: Callable[[set[str]], Ratios]) -> list[Change]:
    """Return what has fallen twice in a row; `measured` takes the names of the benchmarks to run."""
    first = fallen(baseline, measured(set(GATE)))
    if not first:
        return []
    again = measured({_bench(change.name) for change in first})
    return fallen({change.name: change.baseline for change in first}, again)


def measure(arena: Arena, benches: Iterable[str]) -> Ratios:
    """Run `catchup`, `micro` or both, and return their ratios."""
    lines: list[dict[str, Any]] = []
    if "catchup" in benches:
        lines += catchup.compare(arena, (BRIDGE, UNKNOWN_FIELD, FLOOR, CEILING), ROUNDS, MESSAGES)
    if "micro" in benches:
        lines += micro.run(arena, Options(ROUNDS))
    return ratios(lines)


def read(file: Path = BASELINE) -> Ratios:
    """Return the stored ratios."""
    stored: Ratios = json.loads(file.read_text("utf-8"))
    return stored


def write(measured: Mapping[str, float], file: Path = BASELINE) -> None:
    """Store these ratios; others stay as they are."""
    file.write_text(json.dumps({**read(file), **measured}, indent=2) + "\n", "utf-8")


def _bench(name: str) -> str:
    return name.partition(".")[0]

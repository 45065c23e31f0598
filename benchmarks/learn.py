"""Learning what bets mention: the duration of the first run of a snapshot job and of the next one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.arena import Arena, Lane
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE
from benchmarks.figures import in_turn
from benchmarks.process import BenchmarkFailed, bridge_of, running
from benchmarks.rounds import Line, Options, Result, divided, line, say

BETS = 200_000
COMMANDS = {
    "currencies": ("currencies",),  # first: it reads no bets that translations have learnt from
    "translations": ("translations", "--kind", "sport"),  # few requests: not they are measured
}
_SECONDS = 600.0


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each job and build."""
    bets = options.messages or BETS
    builds = options.builds
    found: dict[tuple[str, str], list[Result]] = {(job, build): [] for build in builds for job in COMMANDS}
    for number in range(options.rounds):
        for name in in_turn([*builds], number):
            with arena.lane() as lane:
                catch_up(lane, BRIDGE, bets)
                for job in COMMANDS:
                    found[job, name].append(_learn(lane, job, bets, builds[name]))
        say(f"learn, round {number + 1} of {options.rounds}")
    for (job, build), results in found.items():
        first_by_again = divided(results, results, "first_seconds", "again_seconds")
        yield line("learn", results, job=job, bets=bets, build=build) | {"ratio_again": first_by_again}


def _learn(lane: Lane, job: str, bets: int, build: Path | None) -> Result:
    """Run a job twice: the first run reads all bets, the next one none."""
    first, again = (_run(lane, COMMANDS[job], build) for _ in range(2))
    if (first["bets"], again["bets"]) != (bets, 0):
        raise BenchmarkFailed(f"{job} read {first['bets']}, then {again['bets']} of {bets} bets")
    return {
        "first_seconds": first["took"],
        "again_seconds": again["took"],
        "bets_per_second": bets / (first["took"] - again["took"]),
    }


def _run(lane: Lane, command: tuple[str, ...], build: Path | None) -> dict[str, Any]:
    """Run a job; returns its report, and in `took` the seconds of its process."""
    with lane.names() as (_, settings):
        began, (typed, more) = time.monotonic(), bridge_of(build, *command, "--json")
        with running("job", typed, settings | more, lane.directory) as job:
            job.wait_until(lambda: not job.is_alive(), "does not end", _SECONDS)
        took = time.monotonic() - began
    said = job.text()
    try:
        report: dict[str, Any] = json.loads(said[said.index("{\n") if "{\n" in said else said.index("{") :])
    except ValueError:
        raise BenchmarkFailed(f"{command[0]} has failed\n{job.log_tail()}") from None
    return report | {"took": took}

"""Reading back: how fast `bridge replay` finds a bet among many, and exports all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.arena import Arena, Lane
from benchmarks.contenders import CEILING
from benchmarks.figures import summary
from benchmarks.process import BenchmarkFailed, python, running, usage

BETS = 1_000_000
FORMATS = ("json", "csv", "parquet")
_SECONDS = 900.0

Result = dict[str, float]


def run(arena: Arena, rounds: int, bets: int, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Yield a line for a bet in its partition, in all of them, and for each format of an export."""
    key = f"{bets // 2:036}"
    commands = {
        "a bet in its partition": ("--bet", key),
        "a bet in all partitions": ("--bet", key, "--all-partitions"),
        **{f"export to {name}": ("--output", f"bets.{name}") for name in FORMATS},
    }
    found: dict[str, list[Result]] = {name: [] for name in commands}
    with arena.lane() as lane:
        command = [*CEILING.command, "--messages", str(bets)]
        with running("producer", command, lane.environment(), lane.directory) as producer:
            producer.told("last", _SECONDS)
        for number in range(rounds):
            nothing = _replay(
                lane, ("--bet", key, "--from", "2100-01-01T00:00Z", "--to", "2101-01-01T00:00Z")
            )
            for name, arguments in commands.items():
                result = _replay(lane, arguments)
                read = bets if name != "a bet in its partition" else bets / 6
                seconds = result["seconds"] - nothing["seconds"]
                found[name].append(result | {"records_per_second": read / seconds})
            for name in FORMATS:
                (lane.directory / f"bets.{name}").unlink()
            say(f"replay, round {number + 1} of {rounds}")
    for name, results in found.items():
        yield {"bench": "replay", "what": name, "bets": bets, "rounds": rounds, **summary(results)}


def _replay(lane: Lane, arguments: tuple[str, ...]) -> Result:
    """Run the command; return its seconds and its peak memory."""
    peak, began = 0.0, time.monotonic()
    output = [str(lane.directory / a) if a.startswith("bets.") else a for a in arguments]
    command = python("bridge", "replay", *output)
    with running("replay", command, lane.environment(), lane.directory) as program:
        while program.is_alive():
            try:
                peak = usage(program.pid).peak
            except BenchmarkFailed:
                break
            if time.monotonic() > began + _SECONDS:
                raise BenchmarkFailed(f"bridge replay {arguments} does not end\n{program.log_tail()}")
            time.sleep(0.01)
        took = time.monotonic() - began
        if "error" in (text := program.text()):
            raise BenchmarkFailed(f"bridge replay {arguments}: {text[-500:]}")
    return {"seconds": took, "peak_mb": peak}

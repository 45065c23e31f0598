"""The first run of the names of a large feed: when the first are visible, its duration, requests and memory.

200,000 competitors, and 50,000 events in the bets of half an hour.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.arena import Arena, Lane
from benchmarks.contenders import BRIDGE
from benchmarks.process import BenchmarkFailed, bridge_of, running, usage
from benchmarks.rounds import Line, Options, Result, line, measured

BETS, SECONDS = 100_000, 1800
_WORLD = """
api.languages = ["en"]
[sizes]
leagues = 2_000
competitors = 200_000
events = 50_000
"""
REQUESTS = 400
"""A second, by the job; the provider answers twice as many."""
_LIMIT = 3600.0


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each build."""
    builds = dict(reversed(options.builds.items()))

    def once(name: str) -> Result:
        with arena.lane() as lane:
            return _first_run(lane, builds[name])

    for name, results in measured("first", list(builds), options.rounds, once).items():
        yield line("first", results, build=name, bets=BETS, requests_per_second=REQUESTS)


def _first_run(lane: Lane, build: Path | None) -> Result:
    world = lane.directory / "provider.toml"
    world.write_text(_WORLD, "utf-8")
    history = ("--history", f"{SECONDS}s", "--rate", BETS / SECONDS)
    with lane.names("--config", world, "--api-rate", 2 * REQUESTS, *history) as (_, settings):
        feed = settings["BRIDGE_API__BASE_URL"].replace("http", "ws", 1)
        given = {"FEED__BASE_URL": feed, "FEED__START": f"{SECONDS}s", "API__REQUESTS_PER_SECOND": REQUESTS}
        settings |= {f"BRIDGE_{name}": str(value) for name, value in given.items()}
        with running("bridge", BRIDGE.command, settings, lane.directory) as bridge:
            bridge.wait_until(lambda: lane.committed() >= 0.95 * BETS, "does not catch up", 600)
        command, more = bridge_of(build, "translations", "--json")
        began, first, peak = time.monotonic(), 0.0, 0.0
        with running("translations", command, settings | more, lane.directory) as job:
            while job.is_alive():
                if time.monotonic() > began + _LIMIT:
                    raise BenchmarkFailed(f"translations does not end\n{job.log_tail()}")
                time.sleep(0.25)
                peak = max(peak, _peak(job.pid))
                if not first and lane.arena.stable(f"{lane.prefix}.translations"):
                    first = time.monotonic() - began
        requests = float(re.findall(r'"requests": ?(\d+)', job.text())[-1])
    seconds = time.monotonic() - began
    return {"first_seconds": first, "seconds": seconds, "requests": requests, "peak_mb": peak}


def _peak(pid: int) -> float:
    try:
        return usage(pid).peak
    except BenchmarkFailed:  # it has just ended
        return 0.0

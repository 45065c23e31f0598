"""How fast `bridge audit` proves what is in the topics, and its memory; beside another build in turn."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.arena import Arena, Lane
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE
from benchmarks.process import OTHER, BenchmarkFailed, bridge_of, running
from benchmarks.rounds import Line, Options, Result, divided, line, measured, say

BETS = 200_000
_SECONDS = 600.0


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each build: the bridge publishes the bets once, and each round audits all of them."""
    bets = options.messages or BETS
    with arena.lane() as lane:
        say(f"audit: the bridge publishes {bets:,} bets")
        catch_up(lane, BRIDGE, bets)

        def once(build: str) -> Result:
            return _audit(lane, bets, options.builds[build])

        found = measured("audit", list(options.builds), options.rounds, once)
    for build, results in found.items():
        than = {"than_other": divided(results, found[OTHER], "records_per_second")} if OTHER in found else {}
        yield line("audit", results, bets=bets, build=build) | than


def _audit(lane: Lane, bets: int, build: Path | None) -> Result:
    began = time.monotonic()
    command, more = bridge_of(build, "audit", "--json")
    with running("audit", command, lane.environment() | more, lane.directory) as job:
        used = job.to_its_end(_SECONDS)
    seconds, said = time.monotonic() - began, job.text()
    try:
        audited: int = json.loads(said[said.index("{\n") :])["records"]["bets"]
    except ValueError:
        audited = 0
    if audited != bets:
        raise BenchmarkFailed(f"{audited} of {bets} bets were audited\n{job.log_tail()}")
    return {
        "records_per_second": bets / seconds,
        "seconds": seconds,
        "cpu_us": used.cpu * 1e6 / bets,
        "peak_mb": used.peak,
    }

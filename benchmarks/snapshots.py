"""The snapshot jobs: records a second, CPU and memory of `bridge translations`, by the number of records.

The provider is the simulator, in a separate process and measured separately.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.arena import Arena, Lane
from benchmarks.figures import in_turn, ratio, summary
from benchmarks.process import BenchmarkFailed, Program, Usage, python, running, usage

RECORDS = (10_000, 100_000, 1_000_000)
_FIFTHS = {"sports": 1, "regions": 1, "leagues": 1, "competitors": 2}
"""The shares of the lists in the records: no response may exceed 64 MiB, which is all that a job reads."""
_RATE = 100_000
"""Requests a second that the provider answers: more than the job sends."""
_SECONDS = 1800.0
_LOOK_SECONDS = 0.05


def run(arena: Arena, rounds: int, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Yield a line for each number of records."""
    found: dict[int, list[dict[str, float]]] = {size: [] for size in RECORDS}
    for number in range(rounds):
        for size in map(int, in_turn(list(map(str, RECORDS)), number)):
            with arena.lane() as lane:
                found[size].append(translate(lane, size))
            say(f"snapshots, round {number + 1} of {rounds}: {size:,} records")
    for size, results in found.items():
        line = {"bench": "snapshots", "records": size, "rounds": rounds, **summary(results)}
        if size != RECORDS[0]:  # the provider's CPU time for few records is too short to divide by
            ours, provider = ([result[name] for result in results] for name in ("cpu_us", "provider_cpu_us"))
            line["ratio_provider"] = ratio(ours, provider).as_json()
        yield line


def translate(lane: Lane, records: int) -> dict[str, float]:
    """Publish the first snapshot of a provider with this many names."""
    token = lane.directory / "provider.token"
    sizes = [f"{name} = {fifths * records // 5}" for name, fifths in _FIFTHS.items()]
    world = lane.directory / "provider.toml"
    world.write_text("\n".join(['api.languages = ["en"]', "[sizes]", "events = 10", *sizes]), "utf-8")
    api = ("--api-rate", _RATE, "--api-token-file", token)
    with running(
        "provider",
        python("bridge", "simulate", "--port", 0, "--config", world, *api),
        {},
        lane.directory,
    ) as provider:
        provider.wait_until(lambda: "provider at " in provider.text(), "does not listen")
        url = provider.text().split("provider at ")[1].split()[0]
        before = usage(provider.pid)
        settings = lane.environment(
            API__BASE_URL=url,
            API__TOKEN_FILE=token,
            API__REQUESTS_PER_SECOND=1000,
            API__PROXY="none",
            API__TIMEOUT_SECONDS=600,
        )
        command = python("bridge", "translations", "--json")
        began = time.monotonic()
        with running("translations", command, settings, lane.directory) as job:
            used = _to_its_end(job)
        seconds = time.monotonic() - began
        provider_cpu = usage(provider.pid).cpu - before.cpu
    said = re.search(r'"written": ?(\d+)', job.text())
    if said is None or (written := int(said[1])) < records:
        raise BenchmarkFailed(f"not all of {records} records were written\n{job.log_tail()}")
    return {
        "records_per_second": written / seconds,
        "seconds": seconds,
        "cpu_us": used.cpu * 1e6 / written,
        "peak_mb": used.peak,
        "provider_cpu_us": provider_cpu * 1e6 / written,
    }


def _to_its_end(job: Program) -> Usage:
    """Wait for a process to end; returns what it had used when it was last sampled."""
    used, deadline = usage(job.pid), time.monotonic() + _SECONDS
    while job.is_alive():
        if time.monotonic() > deadline:
            raise BenchmarkFailed(f"translations do not end\n{job.log_tail()}")
        try:
            used = usage(job.pid)
        except BenchmarkFailed:  # it has just ended
            break
        time.sleep(_LOOK_SECONDS)
    return used

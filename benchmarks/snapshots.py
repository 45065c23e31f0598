"""The snapshot jobs: records a second, CPU and memory of `bridge translations`, by the number of records.

The provider is the simulator, in a separate process and measured separately.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from benchmarks.arena import Arena, Lane
from benchmarks.process import BenchmarkFailed, python, running, usage
from benchmarks.rounds import Line, Options, Result, divided, line, measured

RECORDS = (10_000, 100_000, 1_000_000)
_FIFTHS = {"sports": 1, "regions": 1, "leagues": 1, "competitors": 2}
"""The shares of the lists in the records: no response may exceed 64 MiB, which is all that a job reads."""
_RATE = 100_000
"""Requests a second that the provider answers: more than the job sends."""
_SECONDS = 1800.0


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each number of records."""

    def once(size: int) -> Result:
        with arena.lane() as lane:
            return translate(lane, size)

    for size, results in measured("snapshots", RECORDS, options.rounds, once).items():
        of = line("snapshots", results, records=size)
        if size != RECORDS[0]:  # the provider's CPU time for few records is too short to divide by
            of["ratio_provider"] = divided(results, results, "cpu_us", "provider_cpu_us")
        yield of


def translate(lane: Lane, records: int) -> Result:
    """Publish the first snapshot of a provider with this many names."""
    sizes = [f"{name} = {fifths * records // 5}" for name, fifths in _FIFTHS.items()]
    world = lane.directory / "provider.toml"
    world.write_text("\n".join(['api.languages = ["en"]', "[sizes]", "events = 10", *sizes]), "utf-8")
    with lane.names("--config", world, "--api-rate", _RATE) as (provider, settings):
        before = usage(provider.pid)
        command = python("bridge", "translations", "--json")
        began = time.monotonic()
        with running("translations", command, settings, lane.directory) as job:
            used = job.to_its_end(_SECONDS)
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

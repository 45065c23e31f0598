"""Start: from the start of the process to the first commit, with an empty and a full deduplicator."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count

from benchmarks.arena import Arena, Lane
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE
from benchmarks.messages import BLOCK
from benchmarks.process import BenchmarkFailed, running, usage
from benchmarks.rounds import Line, Options, Result, divided, line, measured, say

ENTRIES = 1_000_000
_SPAN, _AGO = 40 * 3600, 24 * 3600
"""The bets in the deduplicator were settled within this many seconds, up to this many seconds ago.

So the feed is never live, the revision stays behind all bets received, and a restart needs all of them.
"""

_SECONDS = 300.0
"""Longest start."""
_QUIET_SECONDS = 1.0


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each size of the deduplicator."""
    entries, newest, restarts = options.messages or ENTRIES, time.time() - _AGO, count(1)
    with arena.lane() as full:
        say(f"start: the bridge publishes {entries:,} bets that its deduplicator will need")
        times = ("--span", _SPAN, "--newest", newest, "--total", entries)
        catch_up(full, BRIDGE, entries, *times)

        def once(size: int) -> Result:
            if not size:
                with arena.lane() as empty:
                    return _first_commit(empty, "--messages", BLOCK)
            number = next(restarts)
            first = entries + (number - 2) * BLOCK
            result = _first_commit(full, "--messages", 2 * BLOCK, "--first", first, *times)
            _check(full, number * BLOCK)
            return result

        found = measured("start", (0, entries), options.rounds, once)
    for size, results in found.items():
        of = line("start", results, deduplicator=size)
        if size:
            of["ratio_empty"] = divided(results, found[0], "cpu_seconds")
        yield of


def _first_commit(lane: Lane, *server: object) -> Result:
    """Start the bridge, and wait until a new bet is committed."""
    with lane.feed(*server) as (_, url):
        before, began = lane.committed(), time.monotonic()
        environment = lane.environment(FEED__BASE_URL=url)
        with running("bridge", BRIDGE.command, environment, lane.directory) as program:
            program.wait_until(lambda: lane.committed() > before, "has committed nothing", _SECONDS)
            seconds, used = time.monotonic() - began, usage(program.pid)
            while lane.committed() > before:  # the rest must be committed too
                before = lane.committed()
                time.sleep(_QUIET_SECONDS)
    return {"seconds": seconds, "cpu_seconds": used.cpu, "peak_mb": used.peak}


def _check(lane: Lane, duplicates: int) -> None:
    """Raise BenchmarkFailed unless each restart has dropped the thousand bets that were sent again."""
    counters = lane.counters()
    if counters["duplicates"] != duplicates:
        raise BenchmarkFailed(f"not the {duplicates} duplicates that were sent: {counters}")

"""Start: from the start of the process to the first commit, with an empty and a full deduplicator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.arena import Arena, Lane
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE
from benchmarks.figures import in_turn, ratio, summary
from benchmarks.messages import BLOCK
from benchmarks.process import BenchmarkFailed, running, usage

ENTRIES = 1_000_000
_SPAN, _AGO = 40 * 3600, 24 * 3600
"""The bets in the deduplicator were settled within this many seconds, up to this many seconds ago.

So the feed is never live, the revision stays behind all bets received, and a restart needs all of them.
"""

_SECONDS = 300.0
"""Longest start."""
_QUIET_SECONDS = 1.0


def run(arena: Arena, rounds: int, entries: int, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Yield a line for each size of the deduplicator."""
    newest = time.time() - _AGO
    with arena.lane() as full:
        say(f"start: the bridge publishes {entries:,} bets that its deduplicator will need")
        times = ("--span", _SPAN, "--newest", newest, "--total", entries)
        catch_up(full, BRIDGE, entries, *times)
        found: dict[int, list[dict[str, float]]] = {0: [], entries: []}
        for number in range(rounds):
            for size in map(int, in_turn(["0", str(entries)], number)):
                if size:
                    first = entries + (number - 1) * BLOCK
                    result = _first_commit(full, "--messages", 2 * BLOCK, "--first", first, *times)
                    _check(full, (number + 1) * BLOCK)
                else:
                    with arena.lane() as empty:
                        result = _first_commit(empty, "--messages", BLOCK)
                found[size].append(result)
            say(f"start, round {number + 1} of {rounds}")
    empty_cpu, full_cpu = ([result["cpu_seconds"] for result in found[size]] for size in (0, entries))
    for size, results in found.items():
        yield {
            "bench": "start",
            "deduplicator": size,
            "rounds": rounds,
            **summary(results),
            **({"ratio_empty": ratio(full_cpu, empty_cpu).as_json()} if size else {}),
        }


def _first_commit(lane: Lane, *server: object) -> dict[str, float]:
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

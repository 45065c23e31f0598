"""Growth: what a message costs with more selections, partitions and bets known; memory over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.arena import Arena, Sample
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE
from benchmarks.figures import significant
from benchmarks.process import python, running
from benchmarks.rounds import Line, Options, Result, divided, line, measured, say

MESSAGES = 3_000_000
"""Messages of the run that shows memory over time."""
SELECTIONS = {1: 40_000, 50: 8_000}
"""Selections of each bet → messages."""
PARTITIONS = (1, 48)
PARTITION_MESSAGES = 40_000
KNOWN = (100_000, 10_000_000)
_SAMPLES = 100
"""Samples of memory over time."""


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each number of selections, partitions and known bets, and one for memory over time."""

    def published(count: int, partitions: int, *server: object) -> Result:
        with arena.lane(partitions) as lane:
            return catch_up(lane, BRIDGE, count, *server)

    def known(bets: int) -> Result:
        with running(
            f"known-{bets}", python("benchmarks.known", "--bets", bets), {}, arena.directory
        ) as program:
            program.wait_until(lambda: program.said("us") is not None, "has not filled its deduplicator", 600)
            return {name: program.said(name) for name in ("us", "rss_mb", "bytes_a_bet")}

    def grow(by: str, sizes: Sequence[int], once: Callable[[int], Result], cost: str) -> Iterator[Line]:
        found = measured(f"growth by {by}", sizes, options.rounds, once)
        for size, results in found.items():
            of = line("growth", results, by=by, size=f"{size:,} {by}")
            if size != sizes[0]:
                of["ratio_smallest"] = divided(results, found[sizes[0]], cost)
            yield of

    yield from grow(
        "selections", list(SELECTIONS), lambda n: published(SELECTIONS[n], 6, "--selections", n), "cpu_us"
    )
    yield from grow("partitions", PARTITIONS, lambda n: published(PARTITION_MESSAGES, n), "cpu_us")
    yield from grow("bets known", KNOWN, known, "us")
    messages = options.messages or MESSAGES
    say(f"growth: memory over {messages:,} messages")
    yield over_time(arena, messages)


def over_time(arena: Arena, messages: int) -> Line:
    """Return the line of one long catch-up, with a sample of memory for each hundredth of it."""
    samples: list[Sample] = []

    def look(sample: Sample) -> None:
        if sample.committed >= len(samples) * messages / _SAMPLES:
            samples.append(sample)

    with arena.lane() as lane:
        result = catch_up(lane, BRIDGE, messages, look=look)
    begin = samples[0].at
    return {
        "bench": "growth",
        "by": "time",
        "messages": messages,
        **{name: significant(value) for name, value in result.items()},
        "samples": [
            {"seconds": round(s.at - begin, 1), "committed": s.committed, "rss_mb": round(s.rss, 1)}
            for s in samples
        ],
    }

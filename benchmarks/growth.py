"""Growth: what a message costs with more selections, partitions and bets known; memory over time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.arena import Arena, Sample
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE
from benchmarks.figures import in_turn, ratio, significant, summary
from benchmarks.process import python, running

MESSAGES = 3_000_000
"""Messages of the run that shows memory over time."""
SELECTIONS = {1: 40_000, 50: 8_000}
"""Selections of each bet → messages."""
PARTITIONS = (1, 48)
PARTITION_MESSAGES = 40_000
KNOWN = (100_000, 10_000_000)
_SAMPLES = 100
"""Samples of memory over time."""

Line = dict[str, Any]
Result = dict[str, float]


def run(arena: Arena, rounds: int, messages: int, say: Callable[[str], None]) -> Iterator[Line]:
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

    yield from _grow(
        "selections",
        list(SELECTIONS),
        lambda n: published(SELECTIONS[n], 6, "--selections", n),
        rounds,
        "cpu_us",
        say,
    )
    yield from _grow(
        "partitions", list(PARTITIONS), lambda n: published(PARTITION_MESSAGES, n), rounds, "cpu_us", say
    )
    yield from _grow("bets known", list(KNOWN), known, rounds, "us", say)
    say(f"growth: memory over {messages:,} messages")
    yield over_time(arena, messages)


def _grow(
    what: str,
    sizes: list[int],
    once: Callable[[int], Result],
    rounds: int,
    cost: str,
    say: Callable[[str], None],
) -> Iterator[Line]:
    found: dict[int, list[Result]] = {size: [] for size in sizes}
    for number in range(rounds):
        for size in map(int, in_turn(list(map(str, sizes)), number)):
            found[size].append(once(size))
        say(f"growth by {what}, round {number + 1} of {rounds}")
    smallest = [result[cost] for result in found[sizes[0]]]
    for size, results in found.items():
        yield {
            "bench": "growth",
            "by": what,
            "size": f"{size:,} {what}",
            "rounds": rounds,
            **summary(results),
            **(
                {"ratio_smallest": ratio([r[cost] for r in results], smallest).as_json()}
                if size != sizes[0]
                else {}
            ),
        }


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

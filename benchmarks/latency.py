"""Latency: from the moment a message is due to when a consumer sees its record, at several rates.

Beside the bridge a bare transactional producer sends the same bets at the same rate, once alone and once
with the checkpoint and the group's offset that a bridge commits with them. Each has the best interval
between commits out of a few, found in the same run.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from math import prod
from statistics import median
from typing import Any, NamedTuple

from benchmarks.arena import Arena, Lane
from benchmarks.contenders import BRIDGE
from benchmarks.figures import in_turn, percentile, ratio, summary
from benchmarks.process import Program, python, running

RATES = (100, 500, 1000, 5000)
WITH_CHECKPOINT = "bare + checkpoint"
PEERS = ("bare", WITH_CHECKPOINT)
"""What the bridge is held against."""
NAMES = (BRIDGE.name, *PEERS)
INTERVALS = (5, 10, 20, 40)
"""Milliseconds from one commit to the next: BRIDGE_BATCH__MAX_AGE_MS, and the bare producer's own."""
ISOLATIONS = ("read_committed", "read_uncommitted")
SHARES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
SECONDS = 15.0
_SWEEP_SHARE = 0.4
_FINALISTS = 2
_MORE_TRIES = 2
_WARM_UP_SECONDS = 2.0
"""At the beginning of each run, in which nothing counts."""

Delays = dict[str, float]
"""`read_committed_p50_ms` and so on."""


class Way(NamedTuple):
    """A contender with its interval."""

    name: str
    interval: int


def run(
    arena: Arena, rates: Sequence[int], rounds: int, seconds: float, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """A line for each rate and contender; each run lasts so many seconds, less where it finds an interval."""
    for rate in rates or RATES:

        def attempt(way: Way, rate: int = rate) -> Delays:
            say(f"latency, {rate}/s: trying {way.name}, every {way.interval} ms")
            return measure(arena, way, rate, seconds * _SWEEP_SHARE)

        tried = sweep(attempt)
        best = {name: ranked(tried, name)[0] for name in NAMES}
        say(f"latency, {rate}/s, intervals: " + ", ".join(f"{w.name} {w.interval} ms" for w in best.values()))
        found: dict[str, list[Delays]] = {name: [] for name in best}
        for number in range(rounds):
            for name in in_turn(list(best), number):
                found[name].append(measure(arena, best[name], rate, seconds))
            say(f"latency, {rate}/s, round {number + 1} of {rounds}")
        for name, measured in found.items():
            yield {
                "bench": "latency",
                "contender": name,
                "rate": rate,
                "rounds": rounds,
                "interval_ms": best[name].interval,
                **summary(measured),
                **(_ratios(found) if name == BRIDGE.name else {}),
                "tried": {
                    str(way.interval): _short(tries) for way, tries in tried.items() if way.name == name
                },
            }


def sweep(attempt: Callable[[Way], Delays]) -> dict[Way, list[Delays]]:
    """Each interval once, and the better ones again: a single try says little on a noisy machine."""
    tried: dict[Way, list[Delays]] = {Way(name, interval): [] for interval in INTERVALS for name in NAMES}
    for way, tries in tried.items():
        tries.append(attempt(way))
    finalists = [way for name in NAMES for way in ranked(tried, name)[:_FINALISTS]]
    for _ in range(_MORE_TRIES):
        for way in finalists:
            tried[way].append(attempt(way))
    return tried


def ranked(tried: dict[Way, list[Delays]], name: str) -> list[Way]:
    """The ways of a contender, the best first; of those tried equally often, and that most."""
    most = max(len(tries) for tries in tried.values())
    ways = [way for way, tries in tried.items() if way.name == name and len(tries) == most]
    return sorted(ways, key=lambda way: _badness(_medians(tried[way])))


def measure(arena: Arena, way: Way, rate: int, seconds: float) -> Delays:
    """Send for so long, and read with both kinds of consumers."""
    messages = int(rate * (seconds + _WARM_UP_SECONDS))
    with arena.lane() as lane, ExitStack() as stack:
        outputs = {isolation: lane.directory / f"{isolation}.bin" for isolation in ISOLATIONS}
        readers = [
            stack.enter_context(
                running(
                    isolation,
                    python(
                        "benchmarks.reader",
                        "--isolation",
                        isolation,
                        "--records",
                        messages,
                        "--output",
                        output,
                    ),
                    lane.environment(),
                    lane.directory,
                )
            )
            for isolation, output in outputs.items()
        ]
        for reader in readers:
            reader.told("ready")
        sender = _sender(stack, lane, way, messages, rate)
        for reader in readers:
            reader.told("done", seconds + 60)
        return {
            "sender_latest_ms": sender.told("latest_ms"),
            **{
                f"{isolation}_{name}_ms": percentile(delays, share)
                for isolation, output in outputs.items()
                for delays in (_delays(output.read_bytes()),)
                for name, share in SHARES.items()
            },
        }


def _medians(tries: list[Delays]) -> Delays:
    return {name: median(delays[name] for delays in tries) for name in tries[0]}


def _sender(stack: ExitStack, lane: Lane, way: Way, messages: int, rate: int) -> Program:
    """Start a contender; returns what paces it: the server of the bridge, the bare producer itself."""
    if way.name == BRIDGE.name:
        server, url = stack.enter_context(lane.feed("--messages", messages, "--rate", rate))
        settings = lane.environment(FEED__BASE_URL=url, FEED__START="10m", BATCH__MAX_AGE_MS=way.interval)
        stack.enter_context(running(way.name, BRIDGE.command(messages), settings, lane.directory))
        return server
    sealed = ("--checkpoint",) if way.name == WITH_CHECKPOINT else ()
    command = python(
        "benchmarks.paced", "--messages", messages, "--rate", rate, "--interval-ms", way.interval, *sealed
    )
    return stack.enter_context(running(way.name, command, lane.environment(), lane.directory))


def _delays(output: bytes) -> list[float]:
    """Milliseconds, without those of the warm-up."""
    pairs = array("q")
    pairs.frombytes(output)
    dues, delays = pairs[::2], pairs[1::2]
    begin = min(dues) + _WARM_UP_SECONDS * 1e9
    return [delay / 1e6 for due, delay in zip(dues, delays, strict=True) if due >= begin]


def _badness(delays: Delays) -> float:
    """What the best interval has the least of: the median and the 99th percentile count alike."""
    return prod(delays[f"{isolation}_{name}_ms"] for isolation in ISOLATIONS for name in ("p50", "p99"))


def _short(tries: list[Delays]) -> Delays:
    return {
        name: round(delay, 1)
        for name, delay in _medians(tries).items()
        if name.startswith("read_") and "p99_9" not in name
    }


def ratio_name(peer: str, figure: str) -> str:
    """Of the bridge's figure divided by the peer's."""
    return f"ratio_{peer.replace(' + ', '_')}_{figure.removesuffix('_ms')}"


def _ratios(found: dict[str, list[Delays]]) -> dict[str, dict[str, float]]:
    bridge = found[BRIDGE.name]
    return {
        ratio_name(peer, figure): ratio(
            [delays[figure] for delays in bridge], [delays[figure] for delays in found[peer]]
        ).as_json()
        for peer in PEERS
        for figure in bridge[0]
        if figure.startswith("read_")
    }

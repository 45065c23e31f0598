"""Latency: from the moment a message is due to when a consumer sees its record, at several rates.

The bridge is compared with a bare transactional producer that sends the same bets at the same rate, with the
checkpoint that a bridge commits with them. Each runs with two intervals between commits, equally often. For
every figure the best interval counts.

At some rates two more take part. `relay` is the bare producer behind the feed, which shows what a server, its
socket and one process more cost on the same cores. Redpanda Connect does if its binary is on PATH. It has no
transactions, so a record is visible to both kinds of consumers at the same time, and its interval is the
period of its batches.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from benchmarks.arena import Arena, Lane
from benchmarks.contenders import BRIDGE, CONNECT, RELAY, Contender, redpanda_connect
from benchmarks.figures import percentile, ratio, summary
from benchmarks.process import Program, python, running
from benchmarks.rounds import Line, Options, measured

RATES = (100, 500, 1000, 5000)
BARE = "bare"
PEERS = (BARE, RELAY.name, CONNECT)
"""The contenders that the bridge is compared with."""
INTERVALS = (10, 20)
"""Milliseconds from one commit to the next: BRIDGE_BATCH__MAX_AGE_MS, or that of a bare producer."""
CONNECT_MS = 5
"""The period of Redpanda Connect's batches in its configuration."""
ISOLATIONS = ("read_committed", "read_uncommitted")
SHARES = {"p50": 0.5, "p99": 0.99, "p99_9": 0.999}
FIGURES = [f"{isolation}_{name}_ms" for isolation in ISOLATIONS for name in SHARES]
COMPARED_RATES = (500, 1000)
"""The rates of `relay`, Redpanda Connect and the baseline."""
SECONDS = 5.0
_WARM_UP_SECONDS = 2.0
"""At the beginning of each run; its messages do not count."""

Delays = dict[str, float]
"""`read_committed_p50_ms` and so on."""


class Way(NamedTuple):
    """A contender with its interval."""

    name: str
    interval: int

    def __str__(self) -> str:
        return f"{self.name}, every {self.interval} ms"


Found = Mapping[Way, Sequence[Delays]]
"""The delays of each round."""


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each rate and contender. Each run lasts some seconds after its warm-up.

    The first run only warms the broker up.
    """
    seconds = options.seconds or SECONDS
    measure(arena, Way(BARE, INTERVALS[0]), COMPARED_RATES[-1], seconds)
    for rate in options.rates or RATES:
        ways, once = ways_at(rate, redpanda_connect()), partial(measure, arena, rate=rate, seconds=seconds)
        found = measured(f"latency, {rate}/s", ways, options.rounds, once)
        for name in dict.fromkeys(way.name for way in ways):
            of = {"bench": "latency", "contender": name, "rate": rate, "rounds": options.rounds}
            yield of | line(found, name)


def ways_at(rate: int, connect: Contender | None) -> list[Way]:
    """Return the contenders of a rate, with their intervals."""
    compared = rate in COMPARED_RATES
    names = (BRIDGE.name, BARE, *((RELAY.name,) if compared else ()))
    ways = [Way(name, interval) for interval in INTERVALS for name in names]
    return [*ways, Way(CONNECT, CONNECT_MS)] if connect and compared else ways


def line(found: Found, name: str) -> dict[str, Any]:
    """Return a contender's figures, each at its best interval, and the medians of all intervals."""
    of_all = {way.interval: summary(delays) for way, delays in found.items() if way.name == name}
    bests = {figure: best(found, name, figure).interval for figure in FIGURES}
    return {
        **{figure: of_all[at][figure] | {"interval_ms": at} for figure, at in bests.items()},
        **(_ratios(found) if name == BRIDGE.name else {}),
        "intervals": {
            str(interval): {figure: told["median"] for figure, told in figures.items()}
            for interval, figures in of_all.items()
        },
    }


def best(found: Found, name: str, figure: str) -> Way:
    """Return the interval at which a contender has the lowest median of a figure."""
    ways = [way for way in found if way.name == name]
    return min(ways, key=lambda way: median(delays[figure] for delays in found[way]))


def measure(arena: Arena, way: Way, rate: int, seconds: float) -> Delays:
    """Send for `seconds` after the warm-up, and read with both kinds of consumers."""
    messages = int(rate * (seconds + _WARM_UP_SECONDS))
    with arena.lane() as lane, ExitStack() as stack:
        outputs = {isolation: lane.directory / f"{isolation}.bin" for isolation in ISOLATIONS}
        readers = []
        for isolation, output in outputs.items():
            wanted = ("--isolation", isolation, "--records", messages, "--output", output)
            command = python("benchmarks.reader", *wanted)
            readers.append(
                stack.enter_context(running(isolation, command, lane.environment(), lane.directory))
            )
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


def _sender(stack: ExitStack, lane: Lane, way: Way, messages: int, rate: int) -> Program:
    """Start a contender; returns the program that keeps its rate: its server, or a bare producer itself."""
    contender = {BRIDGE.name: BRIDGE, RELAY.name: RELAY, CONNECT: redpanda_connect()}.get(way.name)
    if contender:
        server, url = stack.enter_context(lane.feed("--messages", messages, "--rate", rate))
        settings = lane.environment(FEED__BASE_URL=url, FEED__START="10m", BATCH__MAX_AGE_MS=way.interval)
        stack.enter_context(running(way.name, contender.command, settings, lane.directory))
        return server
    command = python(
        "benchmarks.paced", "--messages", messages, "--rate", rate, "--interval-ms", way.interval
    )
    return stack.enter_context(running(way.name, command, lane.environment(), lane.directory))


def _delays(output: bytes) -> list[float]:
    """Return the delays after the warm-up, in milliseconds."""
    pairs = array("q")
    pairs.frombytes(output)
    dues, delays = pairs[::2], pairs[1::2]
    begin = min(dues) + _WARM_UP_SECONDS * 1e9
    return [delay / 1e6 for due, delay in zip(dues, delays, strict=True) if due >= begin]


def ratio_name(peer: str, figure: str) -> str:
    """Return the name of the bridge's figure divided by the peer's."""
    return f"ratio_{peer}_{figure.removesuffix('_ms')}"


def _ratios(found: Found) -> dict[str, dict[str, float]]:
    return {
        ratio_name(peer, figure): ratio(
            *([delays[figure] for delays in found[best(found, name, figure)]] for name in (BRIDGE.name, peer))
        ).as_json()
        for peer in PEERS
        if any(way.name == peer for way in found)
        for figure in FIGURES
    }


COMPARED = [ratio_name(BARE, f"{isolation}_{share}") for isolation in ISOLATIONS for share in ("p50", "p99")]
"""The ratios of the baseline."""

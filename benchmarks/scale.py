"""Scale: what a bet costs the brokers and their disks, by rate, partitions, settings and replication.

CPU time, transactions and bytes are read from outside: from /proc of the brokers' processes, from the
offsets of the topic of checkpoints, which gets one record and one marker in each transaction, and from the
sizes of the log files.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from benchmarks.arena import Arena, Lane, Sample, opened
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE
from benchmarks.process import PATIENCE, BenchmarkFailed, running, usage
from benchmarks.rounds import Line, Options, Result, line, measured, say
from bridge_sandbox.cluster.servers import LOG_DIR

MESSAGES = 100_000
"""Of a catch-up."""
SECONDS = 8.0
_WARM_UP_SECONDS = 4.0
_MORE_SECONDS = 2.0
"""The feed goes on after the measurement, so that its end is not measured."""
_RECEIVED = re.compile(r"^rchar: (\d+)$", re.MULTILINE)


class Load(NamedTuple):
    """A feed of `rate` bets a second, or a catch-up if it is 0, with some settings of the bridge."""

    rate: int
    partitions: int = 6
    settings: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        changed = [f"{name.lower().replace('__', '.')} = {value}" for name, value in self.settings]
        return ", ".join([f"{self.rate:,}/s" if self.rate else "catch-up", *changed])


ZSTD = (("KAFKA__COMPRESSION_TYPE", "zstd"),)
LONG = (("BATCH__MAX_AGE_MS", "100"),)
LOADS = (
    *(Load(rate) for rate in (1, 100, 500, 1000, 5000, 0)),
    *(Load(rate, partitions) for rate in (500, 0) for partitions in (1, 24)),
    Load(500, settings=LONG),
    Load(500, settings=ZSTD),
    Load(0, settings=ZSTD),
)


@dataclass(frozen=True, slots=True)
class Used:
    """What all brokers have used so far: CPU seconds, bytes received, bytes in the log of bets."""

    at: float
    """Monotonic seconds."""
    cpu: float
    received: int
    log: int


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each load, on one broker and on three with as many copies of each record."""
    yield from _on(arena, 1, options)
    directory = arena.directory / "replicated"
    directory.mkdir()
    with opened(directory, say, brokers=3) as replicated:
        yield from _on(replicated, 3, options)


def _on(arena: Arena, brokers: int, options: Options) -> Iterator[Line]:
    seconds = options.seconds or SECONDS
    say(f"scale: {brokers} brokers warm up")
    measure(arena, Load(0), seconds)
    found = measured(
        f"scale, {brokers} brokers", LOADS, options.rounds, lambda load: measure(arena, load, seconds)
    )
    for load, results in found.items():
        if brokers > 1:  # sendfile counts what a leader sends to the others as received, too
            results = [{k: v for k, v in result.items() if k != "bytes_received"} for result in results]
        yield line("scale", results, brokers=brokers, load=str(load), partitions=load.partitions)


def measure(arena: Arena, load: Load, seconds: float) -> Result:
    """Run the bridge once under a load. Raises BenchmarkFailed unless every message became one record."""
    with arena.lane(load.partitions, **dict(load.settings)) as lane:
        return _paced(lane, load.rate, seconds) if load.rate else _caught_up(lane)


def _caught_up(lane: Lane) -> Result:
    looks = [(0, _used(lane))]

    def look(sample: Sample) -> None:
        if sample.committed == 0:
            looks[0] = 0, _used(lane)
        elif sample.committed > looks[-1][0]:
            looks.append((sample.committed, _used(lane)))

    result = catch_up(lane, BRIDGE, MESSAGES, look=look)
    return {"bridge_cpu_us": result["cpu_us"]} | costs(
        looks[0][1], looks[-1][1], MESSAGES, _transactions(lane)
    )


def _paced(lane: Lane, rate: int, seconds: float) -> Result:
    messages = int(rate * (_WARM_UP_SECONDS + seconds + _MORE_SECONDS))
    with lane.feed("--messages", messages, "--rate", rate) as (server, url):
        environment = lane.environment(FEED__BASE_URL=url, FEED__START="10m")
        with running(BRIDGE.name, BRIDGE.command, environment, lane.directory) as program:
            began = server.told("first")
            _sleep_until(began + _WARM_UP_SECONDS)
            first, bridge, transactions = _used(lane), usage(program.pid), _transactions(lane)
            _sleep_until(first.at + seconds)
            last, bridge_cpu = _used(lane), usage(program.pid).cpu - bridge.cpu
            transactions = _transactions(lane) - transactions
            late = server.told("latest_ms")
            deadline = time.monotonic() + PATIENCE
            while (published := lane.counters()["published"]) != messages:
                if time.monotonic() > deadline:
                    raise BenchmarkFailed(f"the bridge has published {published} of {messages} messages")
    sent = rate * (last.at - first.at)
    return {"bridge_cpu_us": bridge_cpu * 1e6 / sent, "sender_latest_ms": late} | costs(
        first, last, sent, transactions
    )


def costs(first: Used, last: Used, messages: float, transactions: float) -> Result:
    """Return the costs of a bet, and those of a second, between two readings."""
    seconds, cpu = last.at - first.at, last.cpu - first.cpu
    return {
        "broker_cpu_us": cpu * 1e6 / messages,
        "broker_cores": cpu / seconds,
        "transactions_per_second": transactions / seconds,
        "bytes_received": (last.received - first.received) / messages,
        "bytes_on_disk": (last.log - first.log) / messages,
    }


def _used(lane: Lane) -> Used:
    brokers = lane.arena.brokers()
    io = [Path(f"/proc/{server.identity.pid}/io").read_text() for server in brokers if server.identity]
    logs = [log for server in brokers for log in server.directory.glob(f"{LOG_DIR}/{lane.bets}-*/*.log")]
    return Used(
        time.monotonic(),
        lane.arena.broker_cpu(),
        sum(int(found[1]) for text in io if (found := _RECEIVED.search(text))),
        sum(log.stat().st_size for log in logs),
    )


def _transactions(lane: Lane) -> float:
    """A transaction adds a checkpoint and a marker to its topic."""
    return lane.arena.stable(f"{lane.prefix}.checkpoints") / 2


def _sleep_until(at: float) -> None:
    time.sleep(max(at - time.monotonic(), 0))

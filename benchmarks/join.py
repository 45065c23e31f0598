"""A join downstream: what a bet costs a Kafka Streams application, by partitions.

`benchmarks/peers/SelectionJoin.java` splits each bet into its selections and adds their names from a
GlobalKTable; with `count` it also counts them by selection, which needs a repartition topic, and a store and
a changelog for each partition. It is compiled and run on the JRE of the embedded Kafka.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import orjson
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from benchmarks.arena import Arena, Lane
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE, PEERS
from benchmarks.messages import BLOCK, Block
from benchmarks.process import PATIENCE, ROOT, BenchmarkFailed, Program, running, usage
from benchmarks.rounds import Line, Options, Result, line, measured, say
from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge_sandbox.cluster.downloads import class_path
from examples.jars import compiled, java, joined

BETS = 100_000
PARTITIONS = (1, 6, 24)
MODES = ("join", "count")
_SOURCE = PEERS / "SelectionJoin.java"
_LIBRARIES = (
    "org.apache.kafka:kafka-streams:4.3.0",
    "org.apache.avro:avro:1.12.1",
    "org.slf4j:slf4j-simple:1.7.36",
)
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
_WARM_UP = 0.3
"""Share of the bets after which the measurement begins."""
_LOOK_SECONDS = 0.5
_IDLE_CORES = 0.1


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each mode and number of partitions."""
    bets, command = options.messages or BETS, application(arena.directory / "join")
    ways = [(mode, partitions) for mode in MODES for partitions in PARTITIONS]
    found = measured("join", ways, options.rounds, lambda way: measure(arena, command, *way, bets))
    for (mode, partitions), results in found.items():
        yield line("join", results, mode=mode, partitions=partitions, bets=bets)


def application(directory: Path) -> list[str]:
    """Compile the application; returns its command. Raises BridgeError."""
    classes = compiled([_SOURCE], class_path(say, *_LIBRARIES), directory, say)
    return [java(), *_JVM, "-cp", joined(classes), _SOURCE.stem]


def measure(arena: Arena, command: list[str], mode: str, partitions: int, bets: int) -> Result:
    """Publish bets and names, then run the application until it has caught up and idles.

    `start_seconds` is the time until the first line is in Kafka.
    """
    selections = [orjson.loads(body)["data"].get("selections") or [] for body in Block().bodies()]
    lines = bets // BLOCK * sum(map(len, selections))
    with arena.lane(partitions) as lane:
        catch_up(lane, BRIDGE, bets)
        _publish_names(lane, {item["selectionId"] for items in selections for item in items})
        output, state = f"{lane.prefix}.selections", lane.directory / "state"
        arena.create(NewTopic(output, partitions))
        arguments = [str(state), str(ROOT / "schemas"), mode]
        with running("join", [*command, *arguments], lane.environment(), lane.directory) as program:
            return _watch(program, lane, output, lines, bets) | {
                "state_mb": sum(file.stat().st_blocks * 512 for file in state.rglob("*")) / 1e6
            }


def _watch(program: Program, lane: Lane, output: str, lines: int, bets: int) -> Result:
    started, ready = time.monotonic(), 0.0
    begun, first, seconds = None, 0, 0.0
    last, written = usage(program.pid), 0
    while True:
        time.sleep(_LOOK_SECONDS)
        used, now, written = usage(program.pid), time.monotonic(), lane.arena.stable(output)
        if written:
            ready = ready or now - started
        if begun is None and written >= lines * _WARM_UP:
            begun, first = (now, used.cpu, lane.arena.broker_cpu()), written
        if begun and written >= lines:
            seconds = seconds or now - begun[0]
            if used.cpu - last.cpu < _IDLE_CORES * _LOOK_SECONDS:
                break
        last = used
        if now - started > PATIENCE:
            raise BenchmarkFailed(f"{program.name}: {written} of {lines} lines\n{program.log_tail()}")
    if written != lines:
        raise BenchmarkFailed(f"{program.name} has written {written} lines instead of {lines}")
    counted = bets * (lines - first) / lines
    return {
        "bets_per_second": counted / seconds,
        "cpu_us": (used.cpu - begun[1]) * 1e6 / counted,
        "broker_cpu_us": (lane.arena.broker_cpu() - begun[2]) * 1e6 / counted,
        "start_seconds": ready,
        "peak_mb": used.peak,
    }


def _publish_names(lane: Lane, selections: set[int]) -> None:
    codec = Codec(load("translation"), 1)
    servers = lane.arena.cluster.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
    for number in selections:
        name = {
            "kind": "selection",
            "id": number,
            "translations": {"en": f"Name {number}"},
            "snapshotId": "1",
        }
        producer.produce(f"{lane.prefix}.translations", codec.encode(name), f"selection:{number}".encode())
    producer.flush()

"""Reading back: how fast `bridge replay` finds a bet among many, and exports all of them.

Beside it, in turn, other programs that read the topic: another build of the bridge (`--build`), and two that
write each bet as JSON: Kafka's console consumer with Apicurio's Avro deserializer on a JVM, and Redpanda
Connect with its registry decoder, if it is on PATH.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.arena import Arena, Lane
from benchmarks.contenders import CEILING, CONNECT, redpanda_connect
from benchmarks.figures import in_turn, ratio, summary
from benchmarks.process import OTHER, BenchmarkFailed, bridge_of, running, usage
from bridge_sandbox.cluster.downloads import class_path
from examples.jars import java, joined

BETS = 1_000_000
FORMATS = ("avro", "json", "csv", "parquet")
CONSOLE = "console consumer"
_JARS = (
    "org.apache.kafka:kafka-tools:4.1.1",
    "io.apicurio:apicurio-registry-avro-serde-kafka:3.1.7",
)
_SECONDS = 900.0

Result = dict[str, float]


def run(
    arena: Arena, rounds: int, bets: int, build: Path | None, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Yield a line for a bet in its partition, in all of them, and for each format of an export."""
    key = f"{bets // 2:036}"
    commands = {
        "a bet in its partition": ("--bet", key),
        "a bet in all partitions": ("--bet", key, "--all-partitions"),
        **{f"export to {name}": ("--output", f"bets.{name}") for name in FORMATS},
    }
    others = {f"{what}, {OTHER}": a for what, a in commands.items() if build and "avro" not in what}
    jars = joined(class_path(say, *_JARS))
    connect = redpanda_connect("redpanda-connect-read.yaml")
    if connect is None:
        say(f"replay: {CONNECT} is not on PATH, and left out")
    peers = [CONSOLE, CONNECT] if connect else [CONSOLE]
    found: dict[str, list[Result]] = {name: [] for name in [*commands, *others, *peers]}
    with arena.lane() as lane:
        command = [*CEILING.command, "--messages", str(bets)]
        with running("producer", command, lane.environment(), lane.directory) as producer:
            producer.told("last", _SECONDS)
        for number in range(rounds):
            nothing = _replay(lane, ("--from", "2100-01-01T00:00Z", "--to", "2101-01-01T00:00Z"))
            for name in in_turn([*found], number):
                if name == CONSOLE:
                    result = _console(lane, jars, bets)
                elif name == CONNECT and connect:
                    result = _connect(lane, connect.command, bets)
                else:
                    result = _replay(lane, (commands | others)[name], build if OTHER in name else None)
                read = bets / 6 if name.startswith("a bet in its partition") else bets
                seconds = result["seconds"] - nothing["seconds"]
                found[name].append(result | {"records_per_second": read / seconds})
                for file in lane.directory.glob("bets.*"):
                    file.unlink()
            say(f"replay, round {number + 1} of {rounds}")
    for name, results in found.items():
        line = {"bench": "replay", "what": name, "bets": bets, "rounds": rounds, **summary(results)}
        if f"{name}, {OTHER}" in found:
            rates, before = (
                [r["records_per_second"] for r in found[of]] for of in (name, f"{name}, {OTHER}")
            )
            line["than_other"] = ratio(rates, before).as_json()
        yield line


def _replay(lane: Lane, arguments: tuple[str, ...], build: Path | None = None) -> Result:
    """Run the command; return its seconds and its peak memory."""
    output = [str(lane.directory / a) if a.startswith("bets.") else a for a in arguments]
    command, more = bridge_of(build, "replay", *output)
    return _timed(lane, "replay", command, lane.environment() | more)


def _console(lane: Lane, jars: str, bets: int) -> Result:
    """Have Kafka's console consumer print all bets as JSON."""
    servers = lane.environment()["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"]
    registry = lane.environment()["BRIDGE_REGISTRY__URL"].replace("/apis/ccompat/v7", "/apis/registry/v3")
    properties = {
        "value.deserializer.apicurio.registry.url": registry,
        "value.deserializer.apicurio.registry.use-id": "contentId",
    }
    command = [
        *(java(), "-cp", jars, "org.apache.kafka.tools.consumer.ConsoleConsumer"),
        *("--bootstrap-server", servers, "--topic", lane.bets, "--from-beginning"),
        *("--isolation-level", "read_committed", "--max-messages", str(bets)),
        *("--value-deserializer", "io.apicurio.registry.serde.avro.AvroKafkaDeserializer"),
        *(part for name, value in properties.items() for part in ("--property", f"{name}={value}")),
    ]
    return _timed(lane, "console", command, lane.environment())


def _connect(lane: Lane, command: list[str], bets: int) -> Result:
    """Have Redpanda Connect write all bets as JSON; it has ended when it has written last."""
    began, output = lane.directory / "bets.began", lane.directory / "bets.json"
    environment = {"BENCH_OUTPUT": str(output), "BENCH_LAST_PARTITION": str(lane.partitions - 1)}
    began.touch()
    result = _timed(lane, CONNECT, command, lane.environment() | environment)
    with output.open("rb") as file:
        if (lines := sum(1 for _ in file)) != bets:
            raise BenchmarkFailed(f"{CONNECT} has written {lines} lines of {bets} bets")
    return result | {"seconds": output.stat().st_mtime - began.stat().st_mtime}


def _timed(lane: Lane, name: str, command: list[str], environment: dict[str, str]) -> Result:
    peak, began = 0.0, time.monotonic()
    with running(name, command, environment, lane.directory) as program:
        while program.is_alive():
            try:
                peak = usage(program.pid).peak
            except BenchmarkFailed:
                break
            if time.monotonic() > began + _SECONDS:
                raise BenchmarkFailed(f"{command} does not end\n{program.log_tail()}")
            time.sleep(0.01)
        took = time.monotonic() - began
        if name == "replay" and "error" in (text := program.text()):
            raise BenchmarkFailed(f"{command}: {text[-500:]}")
    return {"seconds": took, "peak_mb": peak}

"""Imports go one way: leaves ← pure cores ← drivers ← composition."""

from __future__ import annotations

from graphlib import TopologicalSorter

import pytest

from tests.repo.source import MODULES, imports, outside

LEAVES = [
    "__init__",
    "errors",
    "model",
    "scalars",
    "log",
    "config",
    "config.secrets",
    "config.api",
    "config.fields",
    "config.sections",
    "instant",
    "text",
]
CORES = [
    "avro.schemas",
    "avro.codec",
    "avro.encoder",
    "avro.misfit",
    "avro.transcoder",
    "avro.layout",
    "avro.projection",
    "avro.compatibility",
    "avro.check",
    "conversion",
    "convert",
    "transcoding",
    "feed.backoff",
    "feed.events",
    "feed.frames",
    "feed.session",
    "feed.skew",
    "feed.limits",
    "feed.position",
    "feed.progress",
    "sink.batch",
    "sink.checkpoint",
    "sink.deadletter",
    "sink.gap",
    "sink.group",
    "sink.guard",
    "sink.marks",
    "sink.table",
    "snapshots.answers",
    "snapshots.collected",
    "snapshots.coverage",
    "snapshots.difference",
    "snapshots.mentions",
    "snapshots.outcome",
    "snapshots.packed",
    "snapshots.pace",
    "snapshots.asking",
    "snapshots.reading",
    "snapshots.records",
    "snapshots.state",
    "snapshots.requests",
    "snapshots.token",
    "snapshots.verdict",
    "snapshots.wants",
    "view",
    "health",
]
DRIVERS = [
    "avro.registry",
    "feed.client",
    "feed.clock",
    "kafka",
    "sink.leadership",
    "sink.producer",
    "sink.reading",
    "sink.store",
    "sink.triage",
    "sink.watchdog",
    "sink.worker",
    "snapshots.client",
    "snapshots.lock",
    "snapshots.presence",
    "snapshots.present",
    "snapshots.publisher",
    "snapshots.transport",
    "tls",
    "topics",
    "wsgi",
]
PACKAGES = {"bridge.avro", "bridge.feed", "bridge.sink"}
"""Without code of their own."""
IO = {"asyncio", "confluent_kafka", "websockets", "socket", "ssl", "threading", "select", "subprocess"}
"""What a core must do without: it is given bytes and moments."""


def layer(module: str) -> int:
    """0 for a leaf, 1 for a core, 2 for a driver, 3 for composition."""
    name = module.removeprefix("bridge").removeprefix(".") or "__init__"
    return next((rank for rank, names in enumerate((LEAVES, CORES, DRIVERS)) if name in names), 3)


def within(name: str, *prefixes: str) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def test_the_layers_name_modules_that_exist() -> None:
    """And every module of the feed, the sink and Avro has a place below composition."""
    listed = {f"bridge.{name}" if name != "__init__" else "bridge" for name in [*LEAVES, *CORES, *DRIVERS]}
    assert listed <= MODULES.keys()
    assert {m for m in MODULES if within(m, *PACKAGES)} - PACKAGES <= listed


@pytest.mark.parametrize("module", sorted(set(MODULES) - PACKAGES))
def test_a_module_imports_from_its_own_layer_or_below(module: str) -> None:
    """Nothing knows what is built on top of it."""
    above = {name for name in imports(module) - PACKAGES if layer(name) > layer(module)}
    assert above == set()


@pytest.mark.parametrize("module", [m for m in sorted(MODULES) if layer(m) <= 1])
def test_leaves_and_cores_do_no_io(module: str) -> None:
    """No socket, no thread, no event loop, no Kafka."""
    assert {name for name in outside(module) if name.split(".")[0] in IO} == set()


def test_there_is_no_cycle() -> None:
    """Neither within a layer."""
    order = TopologicalSorter({module: imports(module) for module in MODULES}).static_order()
    assert set(order) == set(MODULES)


@pytest.mark.parametrize("module", [m for m in sorted(MODULES) if within(m, "bridge.simulator")])
def test_the_simulator_shares_nothing_with_the_bridge(module: str) -> None:
    """So that each checks the other."""
    foreign = {name for name in imports(module) if not within(name, "bridge.simulator")}
    assert foreign <= {"bridge", "bridge.errors", "bridge.log", "bridge.wsgi"}


def test_the_verification_shares_nothing_with_the_conversion() -> None:
    """What arrived is judged by other code than what wrote it."""
    assert imports("bridge.demo.verify") <= {"bridge", "bridge.demo"}


def test_the_clients_are_each_wrapped_once() -> None:
    """Outside the modules named here nobody talks to a library of Kafka or WebSocket by itself."""
    wrappers = {
        "websockets": ["bridge.feed.client", "bridge.simulator.bodies", "bridge.simulator.server"],
        "fastavro": ["bridge.avro", "bridge.demo.verify"],
        "httpx2": ["bridge.feed.clock", "bridge.snapshots.transport"],
        "prometheus_client": ["bridge.metrics"],
        "confluent_kafka": [
            "bridge.kafka",
            "bridge.topics",
            "bridge.avro.registry",
            "bridge.sink",
            "bridge.readers",
            "bridge.replay",
            "bridge.tail",
            "bridge.snapshots.present",
            "bridge.snapshots.publisher",
            "bridge.gaps",
            "bridge.demo",
            "bridge.dev",
            "bridge.doctor",
        ],
    }
    for library, users in wrappers.items():
        found = {m for m in MODULES if any(name.split(".")[0] == library for name in outside(m))}
        assert {m for m in found if not within(m, *users)} == set(), library

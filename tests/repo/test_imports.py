"""Imports go one way, by package."""

from __future__ import annotations

import ast
from graphlib import TopologicalSorter

from tests.repo.source import MODULES, PACKAGE, ROOT, dotted, imports, outside

LEVELS = [
    {"errors", "clock", "formatting", "masking"},
    {"clock_skew", "log", "avro"},
    {"messages"},
    {"config"},
    {"registry", "feed", "rest"},
    {"kafka", "dedup"},
    {"records"},
    {"stored", "ownership", "reader"},
    {"observability", "inspection", "audit"},
    {"service", "repair", "snapshots", "doctor"},
    {"cli"},
    {"__main__"},
    {"bridge_sandbox.provider"},
    {"bridge_sandbox.cluster"},
    {"bridge_sandbox.demo"},
    {"bridge_sandbox.commands"},
]
"""Loose modules and packages: each imports only from itself and from the levels before its own."""
FORBIDDEN = {
    "service": {"doctor", "inspection", "snapshots", "rest"},
    "repair": {"feed", "rest", "observability"},
    "snapshots": {"feed", "messages", "stored", "dedup"},
}
"""What a package must not know of, although its level may."""
HARMLESS = {"bridge.feed.provider_clock"}
"""It does not connect to the feed."""
MOST_LOOSE = 8
"""Modules at the top of the package."""
CORES = [
    "bridge.audit.bets",
    "bridge.audit.checkpoints",
    "bridge.audit.findings",
    "bridge.audit.letters",
    "bridge.audit.placement",
    "bridge.avro.codec",
    "bridge.avro.encoder",
    "bridge.avro.columns",
    "bridge.avro.decoder",
    "bridge.avro.mismatch",
    "bridge.clock_skew",
    "bridge.feed.backoff",
    "bridge.feed.catch_up",
    "bridge.feed.framing",
    "bridge.feed.position",
    "bridge.feed.protocol",
    "bridge.feed.rate_limits",
    "bridge.feed.received",
    "bridge.kafka.batch",
    "bridge.ownership.group",
    "bridge.kafka.pace",
    "bridge.kafka.partitioner",
    "bridge.messages",
    "bridge.observability.health",
    "bridge.observability.hosts",
    "bridge.observability.rates",
    "bridge.observability.status",
    "bridge.observability.view",
    "bridge.repair.redrive_rules",
    "bridge.repair.report",
    "bridge.rest.answers",
    "bridge.rest.endpoints",
    "bridge.rest.json_stream",
    "bridge.rest.pacing",
    "bridge.rest.token",
    "bridge.snapshots.currencies",
    "bridge.snapshots.forgotten",
    "bridge.snapshots.lists",
    "bridge.snapshots.model",
    "bridge.snapshots.published",
    "bridge.snapshots.report",
    "bridge.snapshots.state",
    "bridge.snapshots.status",
    "bridge.snapshots.texts",
    "bridge.snapshots.translations",
    "bridge.snapshots.usage",
    "bridge.snapshots.wanted",
    "bridge.records.checkpoint",
    "bridge.records.dead_letter",
    "bridge.dedup.deduplicator",
    "bridge.dedup.eviction_horizon",
    "bridge.records.gap",
    "bridge.dedup.hash_table",
]
"""Modules and packages that decide, and are given bytes and moments for it."""
IO = {"asyncio", "confluent_kafka", "websockets", "socket", "ssl", "threading", "select", "subprocess"}
"""What a core must do without."""


def room(module: str) -> str | None:
    """The loose module or the package that a module is in; None for a distribution's own face."""
    parts = module.removeprefix("bridge.").split(".")
    names = {".".join(parts[:count]) for count in (1, 2)}
    return next((name for level in LEVELS for name in level if name in names), None)


def level(name: str) -> int:
    """How far down the list."""
    return next(rank for rank, names in enumerate(LEVELS) if name in names)


def within(name: str, *prefixes: str) -> bool:
    return any(name == prefix or name.startswith(f"{prefix}.") for prefix in prefixes)


def test_every_module_has_a_place() -> None:
    usage = {room(module) for module in MODULES} - {None}
    assert usage == {name for names in LEVELS for name in names}
    assert {module for module in MODULES if room(module) is None} == {"bridge", "bridge_sandbox"}


def test_few_modules_are_loose() -> None:
    packages = {module.rpartition(".")[0] for module in MODULES}
    assert len({m for m in MODULES if within(m, "bridge") and m.count(".") == 1} - packages) + 1 <= MOST_LOOSE


def test_a_module_imports_only_from_lower_levels() -> None:
    wrong = []
    for module in set(MODULES) - {"bridge", "bridge_sandbox"}:
        own = room(module)
        assert own is not None
        for name in imports(module) - HARMLESS:
            found = room(name)
            if found not in (None, own) and (level(found) >= level(own) or found in FORBIDDEN.get(own, ())):
                wrong.append(f"{module}: {name}")
    assert wrong == []


def test_cores_do_no_io() -> None:
    cores = [module for module in MODULES if within(module, *CORES)]
    assert {m: found for m in cores if (found := {n for n in outside(m) if n.split(".")[0] in IO})} == {}


def test_there_is_no_cycle() -> None:
    order = TopologicalSorter({module: imports(module) for module in MODULES}).static_order()
    assert set(order) == set(MODULES)


def test_the_simulator_shares_nothing_with_the_bridge() -> None:
    own = [module for module in MODULES if within(module, "bridge_sandbox.provider")]
    foreign = {
        name for module in own for name in imports(module) if not within(name, "bridge_sandbox.provider")
    }
    assert foreign == set()


def test_the_bridge_does_not_name_the_sandbox() -> None:
    assert [file for file in PACKAGE.rglob("*.py") if "bridge_sandbox" in file.read_text("utf-8")] == []


def test_the_verification_shares_nothing_with_the_conversion() -> None:
    assert imports("bridge_sandbox.demo.verify") <= {"bridge", "bridge_sandbox.demo"}


def test_the_clients_are_each_wrapped_once() -> None:
    wrappers = {
        "websockets": [
            "bridge.feed.client",
            "bridge_sandbox.provider.server",
        ],
        "fastavro": ["bridge.avro", "bridge_sandbox.demo.verify", "bridge_sandbox.provider.avro_files"],
        "httpx2": ["bridge.feed.provider_clock", "bridge.registry.issuer", "bridge.rest.transport"],
        "prometheus_client": ["bridge.observability", "bridge.snapshots.status"],
        "confluent_kafka": [
            "bridge.ownership",
            "bridge.records.message",
            "bridge.records.rights",
            "bridge.records.topics",
            "bridge.registry.client",
            "bridge.config.librdkafka",
            "bridge.audit.run",
            "bridge.doctor",
            "bridge.inspection",
            "bridge.kafka",
            "bridge.reader",
            "bridge.repair.ownership",
            "bridge_sandbox",
            "bridge.snapshots",
            "bridge.stored",
        ],
    }
    for library, users in wrappers.items():
        found = {m for m in MODULES if any(name.split(".")[0] == library for name in outside(m))}
        assert {m for m in found if not within(m, *users)} == set(), library


def test_the_judge_knows_nothing_of_the_bridge() -> None:
    files = [*(ROOT / "tests" / "judge").glob("*.py"), ROOT / "tests" / "interface.py"]
    named = {file.stem: set(dotted(ast.parse(file.read_text("utf-8")))) for file in files}
    own = ("tests.judge", "tests.interface")
    foreign = {
        f"{module}: {name}"
        for module, names in named.items()
        for name in names
        if within(name, "bridge") or (within(name, "tests") and not within(name, *own))
    }
    assert len(files) > 10
    assert foreign == set()

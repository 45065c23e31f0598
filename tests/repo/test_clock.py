"""The clock is read in drivers only: everywhere else time is an argument."""

from __future__ import annotations

from tests.repo.source import MODULES, called

CLOCKS = {
    "time.time",
    "time.time_ns",
    "time.monotonic",
    "time.monotonic_ns",
    "time.perf_counter",
    "time.sleep",
    "asyncio.sleep",
    "datetime.datetime.now",
    "datetime.datetime.utcnow",
    "datetime.datetime.today",
    "datetime.date.today",
    "datetime.now",
    "datetime.utcnow",
    "bridge.clock.now",
    "time.clock_gettime",
}
ALLOWED = {
    "bridge": "cli clock",
    "bridge.audit": "run",
    "bridge.cli": "bets dead_letters inspection repair snapshots",
    "bridge.config": "loader",
    "bridge.doctor": "kafka_checks runner",
    "bridge.feed": "provider_clock",
    "bridge.inspection": "copying readers replay",
    "bridge.kafka": "clients errors msk outage reader transactions",
    "bridge.observability": "endpoints http_server status_page",
    "bridge.ownership": "election lost_record_guard signals",
    "bridge.reader": "names source",
    "bridge.records": "topics",
    "bridge.registry": "client issuer",
    "bridge.repair": "ownership position redrive retirement",
    "bridge.rest": "client transport",
    "bridge.service": "app feed_loop members startup transaction_monitor",
    "bridge.snapshots": "asking job lock translations",
    "bridge.stored": "checkpoint_reader reach_reader restore",
    "bridge_sandbox": "commands",
    "bridge_sandbox.cluster": "cluster maven supervisor",
    "bridge_sandbox.demo": "display run",
    "bridge_sandbox.provider": "server",
}
"""Package → modules that read it: they wait, say how old something is, or are given ages."""


def test_the_drivers_and_nobody_else_read_the_clock() -> None:
    read = {module: [found for found in called(module) if found[0] in CLOCKS] for module in MODULES}
    drivers = {f"{package}.{name}" for package, names in ALLOWED.items() for name in names.split()}
    assert {module: found for module, found in read.items() if found and module not in drivers} == {}
    assert {module for module in drivers if not read[module]} == set(), "listed without need"

"""The clock is read in drivers only: everywhere else time is an argument."""

from __future__ import annotations

import pytest

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
DRIVERS = {
    "bridge.config.loader": "no feed starts in the future",
    "bridge.service.app": "pauses between terms",
    "bridge.service.startup": "waits for Kafka and the registry",
    "bridge.service.members": "looks now and then",
    "bridge.service.transaction_monitor": "looks now and then",
    "bridge.snapshots.asking": "knows for how long an endpoint has been silent",
    "bridge.snapshots.translations": "knows how long ago it has published",
    "bridge.ownership.lost_record_guard": "waits for markers",
    "bridge.kafka.errors": "knows how long an answer takes",
    "bridge.kafka.msk": "knows how long a token lasts",
    "bridge.kafka.outage": "says again that one takes long",
    "bridge.registry.client": "tries again",
    "bridge.registry.issuer": "knows how long a token lasts",
    "bridge.stored.reach_reader": "names a revision that the provider can replay",
    "bridge.kafka.transactions": "knows how long Kafka takes",
    "bridge.records.topics": "compares feed.start with the last bet",
    "bridge.cli": "says how old what it shows is",
    "bridge.cli.inspection": "the same",
    "bridge.cli.bets": "understands ages",
    "bridge.cli.dead_letters": "ages count back from now",
    "bridge_sandbox.commands": "understands ages",
    "bridge_sandbox.demo.run": "plays for so many seconds",
    "bridge_sandbox.demo.display": "rates and ages on the screen",
    "bridge_sandbox.cluster.cluster": "waits for servers to answer",
    "bridge_sandbox.cluster.supervisor": "watches a process",
    "bridge_sandbox.cluster.maven": "tries again",
    "bridge.doctor.kafka_checks": "waits for a coordinator",
    "bridge.doctor.runner": "says how old the checkpoint is, and what has expired",
    "bridge.feed.provider_clock": "compares it with the provider's",
    "bridge.cli.repair": "the same",
    "bridge.repair.ownership": "waits for the feed",
    "bridge.repair.retirement": "says when a feed was retired",
    "bridge.repair.position": "says when the position was moved",
    "bridge.audit.run": "says how long it took, and what compaction has reached",
    "bridge.inspection.readers": "gives up waiting for a broker",
    "bridge.inspection.replay": "the same",
    "bridge.inspection.copying": "waits for a coordinator",
    "bridge.reader.names": "looks now and then for new names",
    "bridge.reader.source": "gives up waiting for a broker, and looks whether it is the same topic",
    "bridge.clock": "reads it for all others",
    "bridge_sandbox.provider.server": "drives the simulated provider",
    "bridge.kafka.clients": "knows how long ago a broker refused a client",
    "bridge.ownership.election": "waits for the coordinator",
    "bridge.repair.redrive": "says when it redrives",
    "bridge.service.feed_loop": "lets others have their turn",
    "bridge.cli.snapshots": "shows how far a run is",
    "bridge.kafka.reader": "waits for Kafka",
    "bridge.stored.checkpoint_reader": "the same",
    "bridge.stored.restore": "the same",
    "bridge.rest.client": "waits for its turn and between tries",
    "bridge.snapshots.job": "says when a snapshot was made",
    "bridge.snapshots.lock": "waits for its turn",
    "bridge.rest.transport": "lets others have their turn",
    "bridge.observability.endpoints": "answers as of the moment it is asked",
    "bridge.observability.status_page": "sends what has changed each second",
    "bridge.observability.http_server": "bounds the time of a request",
}
"""The modules that read it, and what for."""


@pytest.mark.parametrize("module", sorted(MODULES))
def test_only_drivers_read_the_clock(module: str) -> None:
    found = [f"{name} in line {line}" for name, line in called(module) if name in CLOCKS]
    assert not found or module in DRIVERS


@pytest.mark.parametrize("module", DRIVERS)
def test_no_driver_is_listed_without_need(module: str) -> None:
    assert any(name in CLOCKS for name, _ in called(module))

"""Whom faults hit, and whether they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from tests.storm import scene as storm
from tests.storm.cluster import BROKERS, PROVIDER, link
from tests.storm.faults import (
    FAULTS,
    Abort,
    BlackHole,
    Cut,
    Drop,
    Fault,
    HalfOpen,
    KillBridge,
    OneWayCut,
    Reset,
    StopBridge,
    Surge,
)
from tests.storm.plan import draw
from tests.storm.processes import CLOSING_SECONDS, EXCUSED_SECONDS
from tests.storm.scene import OWNER, History, Scene


class Network:
    """A network with some connections, by the name of the link."""

    def __init__(self, **connections: int) -> None:
        self.count = {link(name.replace("_", "-"), PROVIDER): count for name, count in connections.items()}

    def connections(self, name: str) -> int:
        return self.count.get(name, 0)

    reset = connections

    def begin(self, *_: object) -> None:
        """Do nothing."""

    end = begin


class Held:
    """A bridge that always runs."""

    def stop(self, _: str) -> bool:
        return True

    async def take_down(self, _: str, *, kill: bool) -> bool:
        return True

    def holds_until(self, _: float, resumed: float) -> float:
        return resumed + 3


def scene(directory: Path, **connections: int) -> Scene:
    network: Any = Network(**connections)
    bridges: Any = {"bridge-1": Held(), "bridge-2": Held()}
    return Scene("", "storm", "http://control", network, History(directory / "history"), bridges)


@pytest.mark.parametrize(("connections", "hit"), [({"bridge_2": 1}, "bridge-2"), ({}, "bridge-1")])
async def test_without_an_owner_another_bridge_is_hit_which_does_not_count(
    tmp_path: Path, connections: dict[str, int], hit: str
) -> None:
    """The owner is who has a connection."""
    of = scene(tmp_path, **connections)
    assert await StopBridge(OWNER).begin(of, "key")
    assert (of.aimed, of.stray) == ({"key": hit}, set() if connections else {"key"})


async def test_a_reset_hits_only_connections(tmp_path: Path) -> None:
    """A cut also hits those that are yet to come."""
    for connections, hit in (({"bridge_1": 1}, True), ({"bridge_2": 1}, False)):
        of = scene(tmp_path, **connections)
        assert await Reset((link("bridge-1", PROVIDER),)).begin(of, "key") is hit
        assert await Cut((link("bridge-1", PROVIDER),)).begin(of, "key")


@pytest.mark.parametrize("connections", [[], [{"client": "bridge-1"}]])
async def test_the_provider_can_drop_only_a_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, connections: list[Any]
) -> None:
    """What it publishes changes without one, too."""
    monkeypatch.setattr(storm, "ask", lambda _: connections)
    monkeypatch.setattr(storm, "post", lambda *_: {})
    of = scene(tmp_path)
    for fault in (Drop(), Abort(), HalfOpen()):
        assert await fault.begin(of, "key") is bool(connections)
    assert await Surge().begin(of, "key")


async def test_what_kafka_refuses_has_not_happened(tmp_path: Path) -> None:
    """It is noted, with the reason."""

    def refuse() -> None:
        raise KafkaException("no")

    of = scene(tmp_path)
    assert await of.attempt("no election", lambda: None)
    assert not await of.attempt("no election", refuse)
    assert "no election" in (tmp_path / "history").read_text()


OF_OWNER, OF_OTHER = link(OWNER, PROVIDER), link("bridge-1", PROVIDER)


@pytest.mark.parametrize(
    ("fault", "holder", "until"),
    [
        (KillBridge("bridge-1"), "bridge-1", 100 + CLOSING_SECONDS),  # however long it is down
        (KillBridge(OWNER), "bridge-2", 100 + CLOSING_SECONDS),
        (StopBridge(OWNER), "bridge-2", 130 + 3),  # until it has noticed
        (Cut((OF_OWNER,)), "bridge-2", 100 + CLOSING_SECONDS),
        (BlackHole((OF_OWNER,)), "bridge-2", 130 + EXCUSED_SECONDS),
        (BlackHole((OF_OTHER,)), "bridge-1", 130 + EXCUSED_SECONDS),
        (OneWayCut((OF_OTHER,), back=False), "bridge-1", 130 + EXCUSED_SECONDS),
    ],
)
async def test_an_excuse_is_for_the_holder_that_was_hit(
    tmp_path: Path, fault: Fault, holder: str, until: float
) -> None:
    """While it cannot close its connection."""
    of = scene(tmp_path, bridge_2=1)
    assert await fault.begin(of, "key")
    assert fault.excuses(of, "key", 100, 130) == [(100, until, holder)]


async def test_a_holder_that_can_close_its_connection_has_no_excuse(tmp_path: Path) -> None:
    """One that is cut off from Kafka, hears nothing from the provider, or is told to end."""
    hit = {"kill-bridge", "stop-bridge", "cut", "one-way-cut", "black-hole", "half-open"}
    others = [step.fault for seed in range(99) for step in draw(seed, 300, 200).steps if step.name not in hit]
    assert {type(it) for it in others} == {kind for name, kind in FAULTS.items() if name not in hit}
    of_kafka = tuple(link("bridge-1", broker) for broker in BROKERS)
    for fault in (*others, BlackHole(of_kafka), Cut(of_kafka), OneWayCut((OF_OTHER,), back=True)):
        assert fault.excuses(scene(tmp_path), "key", 100, 130) == []


async def test_a_half_open_connection_excuses_its_holder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that the provider names."""
    monkeypatch.setattr(storm, "ask", lambda _: [{"client": "bridge-1"}])
    monkeypatch.setattr(storm, "post", lambda *_: {})
    of = scene(tmp_path, bridge_2=1)
    assert await HalfOpen().begin(of, "key")
    assert HalfOpen().excuses(of, "key", 100, 130) == [(100, 130 + EXCUSED_SECONDS, "bridge-1")]

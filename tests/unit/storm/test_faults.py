"""Whom faults hit, and whether they do."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from tests.storm.cluster import BROKERS, PROVIDER, link
from tests.storm.faults import (
    Abort,
    BlackHole,
    Cut,
    Drop,
    Fault,
    Forget,
    HalfOpen,
    KillBridge,
    OneWayCut,
    Reset,
    StopBridge,
    Surge,
)
from tests.storm.kinds import FAULTS
from tests.storm.plan import draw
from tests.storm.processes import CLOSING_SECONDS, EXCUSED_SECONDS
from tests.storm.scene import OWNER, History, Scene


def scene(directory: Path, *clients: str, **connections: int) -> Scene:
    """Two bridges that always run, and have so many connections; these clients have one by the provider."""
    count = {link(name.replace("_", "-"), PROVIDER): number for name, number in connections.items()}

    def of_link(name: str, _: str = "") -> int:
        return count.get(name, 0)

    network = Mock(connections=of_link, reset=of_link, end=of_link)
    provider = AsyncMock(**{"get.return_value": [{"client": name} for name in clients]})
    hit = {"stop.return_value": True, "take_down.return_value": True}
    held = Mock(holds_until=lambda _, resumed: resumed + 3, **hit)
    bridges: Any = {"bridge-1": held, "bridge-2": held}
    return Scene("", "storm", provider, network, History(directory / "history"), bridges)


@pytest.mark.parametrize(("connections", "hit"), [({"bridge_2": 1}, "bridge-2"), ({}, "bridge-1")])
async def test_without_an_owner_another_bridge_is_hit_which_does_not_count(
    tmp_path: Path, connections: dict[str, int], hit: str
) -> None:
    of = scene(tmp_path, **connections)
    assert await StopBridge(OWNER).begin(of, "key")
    assert (of.aimed, of.stray) == ({"key": hit}, set() if connections else {"key"})


async def test_faults_of_a_link_hit_only_connections(tmp_path: Path) -> None:
    for connections, hit in (({"bridge_1": 1}, True), ({"bridge_2": 1}, False)):
        of = scene(tmp_path, **connections)
        assert await Reset((link("bridge-1", PROVIDER),)).begin(of, "reset") is hit
        cut = Cut((link("bridge-1", PROVIDER),))
        assert not await cut.begin(of, "cut")
        await cut.end(of, "cut")
        assert of.felt == ({"cut"} if hit else set())


@pytest.mark.parametrize("clients", [[], ["bridge-1"]])
async def test_the_provider_can_drop_only_a_connection(tmp_path: Path, clients: list[str]) -> None:
    of = scene(tmp_path, *clients)
    for fault in (Drop(), Abort(), HalfOpen(), Forget()):
        assert await fault.begin(of, "key") is bool(clients)
    assert await Surge().begin(of, "key")


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
        (HalfOpen(), "bridge-1", 130 + EXCUSED_SECONDS),
    ],
)
async def test_an_excuse_is_for_the_holder_that_was_hit(
    tmp_path: Path, fault: Fault, holder: str, until: float
) -> None:
    of = scene(tmp_path, "bridge-1", bridge_1=1, bridge_2=2)
    hit = await fault.begin(of, "key")
    if not hit:
        await fault.end(of, "key")
    assert hit or of.felt
    assert fault.excuses(of, "key", 100, 130) == [(100, until, holder)]


async def test_a_holder_that_can_close_its_connection_has_no_excuse(tmp_path: Path) -> None:
    hit = {"kill-bridge", "stop-bridge", "cut", "one-way-cut", "black-hole", "half-open"}
    others = [step.fault for seed in range(40) for step in draw(seed, 300, 200).steps if step.name not in hit]
    assert {type(it) for it in others} == {kind for name, kind in FAULTS.items() if name not in hit}
    of_kafka = tuple(link("bridge-1", broker) for broker in BROKERS)
    of = scene(tmp_path)
    for fault in (*others, BlackHole(of_kafka), Cut(of_kafka), OneWayCut((OF_OTHER,), back=True)):
        assert fault.excuses(of, "key", 100, 130) == []

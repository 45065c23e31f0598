"""The judge on a real Kafka: what a real bridge leaves is clean, and each fault planted on it is seen."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from urllib.request import Request, urlopen

from bridge.sandbox.provider.server import Simulator
from bridge.sandbox.provider.settings import SimulatorSettings
from tests.harness import PATIENCE, Place, until
from tests.judge import Case, judge, missing

SCALE = 100


def post(feed: Simulator, path: str, **parameters: object) -> None:
    """Change the provider, from a thread."""
    request = Request(f"{feed.control_url}{path}", json.dumps(parameters).encode(), method="POST")
    with urlopen(request, timeout=30) as answer:
        answer.read()


async def test_a_bridge_that_is_killed_is_clean_and_planted_faults_are_seen(
    place: Place, tmp_path: Path
) -> None:
    """Kills, drops and garbage leave nothing to find."""
    settings = SimulatorSettings(
        port=0, control_port=0, rate=100, history_seconds=20, resettle=0.3, odd=0.05, limits_scale=SCALE
    )
    polled, work = tmp_path / "missing", tmp_path / "work"
    work.mkdir()
    async with Simulator(settings) as feed:
        assert feed.control_url is not None
        case = Case(
            place.cluster.bootstrap_servers,
            place.cluster.registry_url,
            place.prefix,
            feed.control_url,
            seed=7,
            limits_scale=SCALE,
        )
        chosen = {"FEED__BASE_URL": feed.url, "LIMITS__SCALE": str(SCALE)}
        for _ in range(2):
            bridge = place.bridge(**chosen)
            await until(lambda: "Live" in bridge.states(), "live")  # noqa: B023
            await asyncio.to_thread(post, feed, "/faults/garbage", count=6)
            await asyncio.to_thread(post, feed, "/faults/drop", abort=True)
            await asyncio.sleep(1)
            bridge.kill()
        bridge = place.bridge(**chosen)
        await until(lambda: "Live" in bridge.states(), "live")
        await asyncio.to_thread(post, feed, "/stop")
        await asyncio.to_thread(until_nothing_is_missing, case, polled)
        assert await bridge.end() == 0
        began = time.monotonic()
        report = await asyncio.to_thread(judge, case, work)
        print(report, time.monotonic() - began)
        assert report, str(report)


def until_nothing_is_missing(case: Case, work: Path) -> None:
    """Wait until every bet is visible. Fails after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while left := missing(case, work):
        assert time.monotonic() < deadline, f"{left} bets are missing"
        time.sleep(0.5)

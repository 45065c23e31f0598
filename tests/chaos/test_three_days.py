"""A replay of three days, killed again and again, on a real broker.

Time in the limits, the three days among them, runs `SCALE` times faster at both ends: as many messages as
of three days come from a memory of six hours, and twenty kills stay within the limits.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from functools import partial
from random import Random

from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Audit, Bridge, Place, assert_exact, until

MESSAGES = int(os.environ.get("MESSAGES", "1000000"))
KILLS = int(os.environ.get("KILLS", "20"))
SEED = int(os.environ.get("SEED", "1"))
SCALE = 12
HISTORY_SECONDS = 345 * 60
START_SECONDS = HISTORY_SECONDS + 300
"""Before the first message when the first bridge begins, and within the memory of six hours."""
LONGEST_LIFE_SECONDS = 20.0
PATIENCE = 3600.0


def connected(feed: Simulator, bridge: Bridge, times: int) -> bool:
    """Whether the provider was connected to this often; fails the campaign if the bridge has ended."""
    assert bridge.process.poll() is None, bridge.text()
    return len(feed.connections) >= times


async def test_three_days_killed_at_random(place: Place) -> None:
    random = Random(SEED)
    began, killed = time.monotonic(), Counter[str]()
    settings = {
        "LIMITS__SCALE": str(SCALE),
        "FEED__START": f"{START_SECONDS}s",
    }
    async with Simulator(
        SimulatorSettings(
            port=0,
            seed=SEED,
            rate=MESSAGES / HISTORY_SECONDS,
            history_seconds=HISTORY_SECONDS,
            limits_scale=SCALE,
            max_out_of_orderness_seconds=20,
        )
    ) as feed:
        settings["FEED__BASE_URL"] = feed.url
        for kill in range(KILLS):
            before = len(feed.connections)
            bridge = place.bridge(**settings)
            await until(partial(connected, feed, bridge, before + 1), f"connection {kill + 1}", 600)
            await asyncio.sleep(random.uniform(0, LONGEST_LIFE_SECONDS))
            assert bridge.process.poll() is None, bridge.text()
            bridge.kill()
            killed[bridge.states()[-1]] += 1
        bridge = place.bridge(**settings)
        await until(lambda: "Live" in bridge.states(), "live", PATIENCE)
        live_after = time.monotonic() - began
        feed.stop_publishing()
        await asyncio.sleep(10)
        assert await bridge.end() == 0
        tally = await asyncio.to_thread(Audit(place, feed).go_on)  # minutes, for a million
        breaches, connections = len(feed.breaches), len(feed.connections)
    counters = place.checkpoint()["counters"]
    figures = {
        "campaign": "three-days",
        "messages": tally.sent,
        "kills": dict(killed),
        "connections": connections,
        "received": counters["received"],
        "published": tally.published,
        "lost": tally.missing,
        "duplicates": tally.duplicates,
        "wrong": len(tally.wrong),
        "breaches": breaches,
        "seconds_to_live": round(live_after),
    }
    print(json.dumps(figures), flush=True)
    assert_exact(tally)
    assert breaches == 0
    assert killed["CatchingUp"] > KILLS / 2 or not KILLS
    assert tally.sent >= MESSAGES

"""The campaigns of `tests/virtual`, longer and with more seeds: a line of JSON with the figures of each."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from tests.virtual.campaigns import disconnections, everything, restarts
from tests.virtual.world import HOUR, World, play

SEED = int(os.environ.get("SEED", "1"))
SEEDS = int(os.environ.get("SEEDS", "3"))
"""The first of them, and how many."""

CAMPAIGNS: dict[str, tuple[Callable[[World], Awaitable[int]], dict[str, Any]]] = {
    "restarts": (partial(restarts, count=1000), {"rate": 0.2}),
    "restarts_scaled": (partial(restarts, count=5000), {"rate": 0.5, "scale": 10}),
    "disconnections_26": (partial(disconnections, count=26, seconds=4 * HOUR), {"rate": 2.0}),
    "disconnections_260": (partial(disconnections, count=260, seconds=4 * HOUR), {"rate": 0.5}),
    "everything": (partial(everything, seconds=48 * HOUR), {"rate": 0.1}),
    "everything_ahead": (partial(everything, seconds=24 * HOUR), {"rate": 0.1, "ahead": 5}),
    "everything_behind": (partial(everything, seconds=24 * HOUR), {"rate": 0.1, "ahead": -5}),
}


@pytest.mark.parametrize("seed", range(SEED, SEED + SEEDS))
@pytest.mark.parametrize("name", CAMPAIGNS)
def test_campaign(name: str, seed: int) -> None:
    story, settings = CAMPAIGNS[name]

    async def measured(world: World) -> dict[str, Any]:
        messages = await story(world)
        counters = world.last.counters
        return {
            "hours": round(world.clock().monotonic / HOUR, 1),
            "messages": messages,
            "published": counters.published,
            "duplicates": counters.duplicates,
            "dead_lettered": counters.dead_lettered,
            "processes": world.processes,
            "attempts": len(world.provider.attempts),
            "transactions": world.kafka.transactions,
            "gaps": len(world.kafka.gaps),
            "breaches": len(world.provider.breaches),
            "states": dict(Counter(state.value for state in world.states)),
        }

    began = time.monotonic()
    figures = play(measured, seed=seed, **settings)
    took = round(time.monotonic() - began, 1)
    print(json.dumps({"campaign": name, "seed": seed, **figures, "took_seconds": took}), flush=True)

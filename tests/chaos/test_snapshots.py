"""Snapshot jobs killed at random moments, and against a provider of full size: a line of figures for each."""

from __future__ import annotations

import json
import os
from typing import Any, get_args

import pytest

from bridge_sandbox.provider.rest.routes import ENDPOINTS, Currencies
from tests.harness import Place, finished
from tests.integration.snapshots import Jobs, Topics, expected, simulated, without_ids
from tests.integration.test_translations import FIVE, LARGE
from tests.integration.test_translations_kills import killed_at_random
from tests.integration.test_translations_size import MOST_MEGABYTES

KILLS = int(os.environ.get("KILLS", "50"))
SEED = int(os.environ.get("SEED", "1"))
BETS = 5_000
"""Enough to mention all but a few of the events."""

# Clients of the registry are left to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


async def test_snapshots_killed_at_random(place: Place) -> None:
    figures = await killed_at_random(place, KILLS, SEED)
    print(json.dumps({"campaign": "snapshots-killed", "seed": SEED, **figures}), flush=True)


async def test_snapshots_of_full_size(place: Place) -> None:
    lacking: dict[str, Any] = {"only_in_lists": {"ja"}, "only_in_all": {"el"}, "event_members": "ids"}
    async with simulated(LARGE, bets=BETS, languages=FIVE, **lacking) as provider:
        jobs = Jobs(place, provider, languages=FIVE, concurrency=8)
        wanted = expected(provider, await jobs.fill())
        report, megabytes = await finished(jobs.start("translations", "--json"))
        asked = {exchange.endpoint for exchange in provider.rest.requests}
        statuses = {exchange.status for exchange in provider.rest.requests}
    assert without_ids(Topics(place).present("translations")) == wanted
    assert report["kinds"]["event"]["records"] > 0.99 * LARGE.events
    assert (asked, statuses) == (set(ENDPOINTS) - set(get_args(Currencies)), {200})
    assert megabytes < MOST_MEGABYTES
    figures = {name: report[name] for name in ("bets", "requests", "written", "seconds")}
    print(
        json.dumps({"campaign": "snapshots-full-size", **figures, "megabytes": round(megabytes)}), flush=True
    )

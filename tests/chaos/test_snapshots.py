"""Snapshot jobs killed at random moments, and against a provider of full size: a line of figures for each."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from random import Random
from typing import Any, get_args

import pytest

from bridge_sandbox.provider.rest.routes import ENDPOINTS, Currencies
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.world.entities import Sizes
from tests.harness import Bridge, Place, finished, until
from tests.integration.snapshots import Datum, Jobs, Topics, expected, simulated, without_ids
from tests.integration.test_translations_size import MOST_MEGABYTES

KILLS = int(os.environ.get("KILLS", "50"))
SEED = int(os.environ.get("SEED", "1"))
BETS = 5_000
"""Enough to mention all but a few of the events."""

LARGE = Sizes(sports=40, regions=60, leagues=1_000, competitors=4_000, events=400)
FIVE = ("en", "sv", "de", "el", "ja")
SIZES = Sizes(sports=3, regions=4, leagues=60, competitors=1_500, events=15)
LONGEST_SECONDS = 4.0
"""A whole run takes less on an idle machine, its turn after one that was killed included."""
LAST_SECONDS = 0.4
"""From the last answer to the end of the process."""

# Clients of the registry are left to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


def change(provider: Simulator, number: int, bets: Sequence[Datum]) -> None:
    """Rename each competitor, and remove a league that no bet refers to."""
    catalogue = provider.rest.catalogue
    for competitor in catalogue.entries("competitor"):
        catalogue.rename("competitor", competitor.id, f"{competitor.id} in state {number}")
    used = {item["competitionId"] for bet in bets for item in bet["selections"] or ()}
    catalogue.remove("league", [x.id for x in catalogue.entries("league") if x.id not in used][-1])


async def until_all_is_asked(provider: Simulator, bridge: Bridge) -> None:
    """Wait for the last request of a run, or for its end."""

    def is_asked() -> bool:
        asked = [exchange.endpoint for exchange in provider.rest.requests]
        return asked[-1:] == ["market-type-templates"] or bridge.process.poll() is not None

    await until(is_asked, "the last question")


async def killed_at_random(place: Place, kills: int, seed: int) -> Datum:
    """Kill this many runs, half of them after the last request; names change in between. Returns figures."""
    random, began = Random(seed), time.monotonic()
    async with simulated(SIZES, bets=20, rate=5000) as provider:
        # Where few runs reach their end, a list lacks the leagues of many changes at once.
        jobs = Jobs(place, provider, requests_per_second=5000, max_shrink_share=1)
        topics, bets = Topics(place), await jobs.fill()
        first = await jobs.run()
        states = {first.snapshot.id: topics.present("translations")}
        hidden = torn = 0
        for kill in range(kills):
            change(provider, kill, bets)
            provider.rest.requests.clear()
            bridge = jobs.start("translations", "--full")
            if kill % 2:
                await until_all_is_asked(provider, bridge)
                await asyncio.sleep(random.uniform(0, LAST_SECONDS))
            else:
                await asyncio.sleep(random.uniform(0, LONGEST_SECONDS))
            bridge.kill()
            jobs.must_not_tell(bridge.text())
            last = topics.snapshots("translations")[-1]
            found = topics.at_ends("translations", last)
            if last["id"] not in states:
                assert without_ids(found) == expected(provider, bets), f"kill {kill}"
                states[last["id"]] = found
            assert found == states[last["id"]], f"kill {kill}"
            assert {record["snapshotId"] for record in topics.all("translations")} <= states.keys()
            torn += (now_hidden := topics.hidden("translations")) > hidden
            hidden = now_hidden
        change(provider, kills, bets)
        final = await jobs.run(full=True)
        assert without_ids(topics.present("translations")) == expected(provider, bets)
        assert topics.snapshots("translations")[-1]["id"] == final.snapshot.id
        seen = {record["snapshotId"] for record in topics.all("translations")}
        assert seen == {*states, final.snapshot.id}
    return {
        "kills": kills,
        "committed_before_the_kill": len(states) - 1,
        "killed_in_the_transaction": torn,
        "seconds": round(time.monotonic() - began),
    }


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

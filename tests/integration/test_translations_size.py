"""A large snapshot is committed, with little memory."""

from __future__ import annotations

import pytest

from bridge_sandbox.provider.world.entities import Sizes
from tests.harness import Place, finished
from tests.integration.snapshots import Jobs, Topics, simulated
from tests.processes import start_cold

pytestmark = pytest.mark.long

RECORDS = 100_000
MOST_MEGABYTES = 270
SIZES = Sizes(sports=12, regions=20, leagues=5_000, competitors=RECORDS, events=10)


@pytest.fixture
def place(place: Place) -> Place:
    """A place whose processes have separate memory: a fork shares its server's."""
    place.start = start_cold
    return place


async def test_a_large_snapshot_takes_little_memory(place: Place) -> None:
    async with simulated(SIZES, bets=0) as provider:
        jobs = Jobs(place, provider, timeout_seconds=120)
        first, most_at_first = await finished(jobs.start("translations", "--json"))
        again, most_then = await finished(jobs.start("translations", "--json", "--full"))
    assert first["written"] > RECORDS
    assert (again["written"], again["removed"]) == (0, 0)
    _, last = Topics(place).snapshots("translations")
    assert sum(counts["records"] for counts in last["counts"].values()) == first["written"]
    assert max(most_at_first, most_then) < MOST_MEGABYTES, (most_at_first, most_then)

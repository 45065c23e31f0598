"""Hours of faults: nothing is lost, doubled or out of order, no limit is broken, a gap has its reason."""

from __future__ import annotations

from functools import partial

import pytest

from bridge.records.checkpoint import State
from tests.virtual.campaigns import disconnections, everything, forgetful, restarts
from tests.virtual.world import HOUR, World, play


@pytest.mark.long
def test_a_thousand_restarts_at_random_moments() -> None:
    assert play(partial(restarts, count=1000), rate=0.2, scale=10) > 1000


def test_restarts_with_the_limits_as_they_are() -> None:
    assert play(partial(restarts, count=100), rate=0.1, seed=2) > 500


@pytest.mark.parametrize("count", [26, pytest.param(260, marks=pytest.mark.long)])
def test_faults_of_all_kinds_in_four_hours(count: int) -> None:
    assert play(partial(disconnections, count=count, seconds=4 * HOUR), rate=0.1) > 1400


@pytest.mark.parametrize("seed", [2, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 11))])
def test_whatever_a_provider_forgets_is_a_gap(seed: int) -> None:
    assert play(partial(forgetful, seconds=6 * HOUR), rate=0.1, seed=seed) > 1000


@pytest.mark.parametrize("ahead", [-5, 0, 5])
def test_everything_at_once(ahead: float) -> None:
    assert play(partial(everything, seconds=2 * HOUR), rate=0.1, odd=0.1, ahead=ahead, seed=7) > 680


def test_each_fault_has_its_state() -> None:
    async def story(world: World) -> set[State]:
        await disconnections(world, 26, 4 * HOUR)
        return set(world.states)

    assert play(story, rate=0.02) == set(State) - {State.STANDBY, State.STOPPED_ON_GAP, State.QUIET}

"""LOST, undeclared. Rule broken: a position that turns out to lie in the future is a gap (0011: waiting until it is past
would lose, in silence).

`Reign._certain` knows at the start that the position lies in the future, but `Dialler._look_back` only looks at the
moment of the dial. While the provider is away, or a limit holds the dial up, it passes, and all is forgotten.
"""

from __future__ import annotations

import asyncio

import pytest

from bridge.simulator.faults import Pause
from tests.virtual.world import HOUR, World, play


async def promise_an_hour_too_far(world: World) -> int:
    """A provider that shows no Date, a clock an hour ahead, an hour of pings; then it is killed, and set right."""
    world.network.shows_date = False
    world.set_by = HOUR
    world.start()
    await asyncio.sleep(300)
    world.inflict(Pause(seconds=2 * HOUR))
    await asyncio.sleep(HOUR * 1.5)
    await world.kill()
    world.set_by = 0
    world.inflict(Pause(seconds=0))
    await asyncio.sleep(60)
    assert world.last.revision > world.feed.moment() + HOUR / 2
    return world.last.revision


@pytest.mark.parametrize("shows_date", [False, True])
def test_a_position_in_the_future_is_a_gap_also_where_it_passes_before_the_dial(shows_date: bool) -> None:
    """The provider cannot be reached for an hour after the start; what came meanwhile is there or declared."""

    async def story(world: World) -> None:
        await promise_an_hour_too_far(world)
        world.network.shows_date = shows_date
        world.unreachable(1.1 * HOUR)
        world.start()
        await asyncio.sleep(1.5 * HOUR)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, rate=0.5)

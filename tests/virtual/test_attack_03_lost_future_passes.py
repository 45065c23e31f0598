"""LOST, undeclared. Rule broken: a position that turns out to lie in the future is a gap (0011: waiting until it is past
would lose, in silence).

`Reign._certain` knows at the start that the position lies in the future, but `Dialler._look_back` only looks at the
moment of the dial. While the provider is away, or a limit holds the dial up, it passes, and all is forgotten.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.virtual.world import EPOCH, HOUR, World, play


BURST = {"rate": 60 / 7200, "burst": 60}
"""Sixty bets at once every two hours, and pings in between."""


@pytest.mark.parametrize("shows_date", [False, True])
def test_a_position_in_the_future_is_a_gap_also_where_it_passes_before_the_dial(shows_date: bool) -> None:
    """The provider cannot be reached for an hour after the start; what came meanwhile is there or declared."""

    async def story(world: World) -> None:
        world.network.shows_date = False
        await asyncio.sleep(100)
        world.set_by = HOUR
        world.start()
        await asyncio.sleep(5400)
        await world.kill()
        assert world.last.revision > 9000 + EPOCH - 120
        world.set_by = 0
        await asyncio.sleep(60)
        world.network.shows_date = shows_date
        world.unreachable(1.1 * HOUR)  # a burst is published meanwhile
        world.start()
        await asyncio.sleep(1.5 * HOUR)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, **BURST)

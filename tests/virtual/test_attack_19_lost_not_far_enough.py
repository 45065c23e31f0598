"""LOST, undeclared. Rule broken: a position that turns out to lie in the future is a gap.

A promise trails the clock by 90 s, so a position of 10 s ahead was made by a clock that was wrong by more than 100 s. Yet
`Dialler._in_future` and `Reign._certain` only look for more than max_skew_seconds ahead of now; neither does anybody
look at `updated_at`, which lies in the future as well.
"""

from __future__ import annotations

import asyncio

from bridge.simulator.faults import Pause
from tests.virtual.world import HOUR, World, play


def test_a_position_that_only_a_wrong_clock_can_have_promised_is_a_gap() -> None:
    """No Date, a clock 150 s ahead for hours; killed, set right, started again after 50 s."""

    async def story(world: World) -> None:
        world.network.shows_date = False
        world.set_by = 150
        world.start()
        await asyncio.sleep(300)
        world.inflict(Pause(seconds=2 * HOUR))
        await asyncio.sleep(1.5 * HOUR)
        await world.kill()
        assert world.last.revision > world.feed.moment() + 45
        assert world.last.updated_at > world.feed.moment() + 100
        world.set_by = 0
        world.inflict(Pause(seconds=0))
        await asyncio.sleep(50)
        world.start()
        await asyncio.sleep(600)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, rate=0.5)

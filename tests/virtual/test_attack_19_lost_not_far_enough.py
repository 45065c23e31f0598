"""LOST, undeclared. Rule broken: a position that turns out to lie in the future is a gap.

A promise trails the clock by 90 s, so a position of 10 s ahead was made by a clock that was wrong by more than 100 s. Yet
`Dialler._in_future` and `Reign._certain` only look for more than max_skew_seconds ahead of now; neither does anybody
look at `updated_at`, which lies in the future as well.
"""

from __future__ import annotations

import asyncio

from tests.virtual.world import EPOCH, World, play


def test_a_position_that_only_a_wrong_clock_can_have_promised_is_a_gap() -> None:
    """No Date, a clock 150 s ahead for two hours; killed, set right, started again after a minute and a burst."""

    async def story(world: World) -> None:
        world.network.shows_date = False
        await asyncio.sleep(100)
        world.set_by = 150
        world.start()
        await asyncio.sleep(7060)
        await world.kill()
        assert world.last.revision > EPOCH + 7205
        assert world.last.updated_at > world.feed.moment() + 100
        world.set_by = 0
        await asyncio.sleep(58)
        assert world.last.revision > world.feed.moment() - 30
        world.start()
        await asyncio.sleep(600)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, rate=60 / 7200, burst=60)

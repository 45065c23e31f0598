"""STUCK for the life of the connection; after three days a false gap. Rule broken: the position follows the feed.

While live the last three settlementTimes must be near; fifty far ones in a row would end being live, but one near one
sets that count back. Where each near bet has a far one beside it (a twin dated 0001-01-01, or a late resettlement) the
position neither moves nor falls back to catching up, where it would move.
"""

from __future__ import annotations

import asyncio
import re

import pytest

from bridge.simulator.faults import Garbage
from bridge.sink.checkpoint import State
from tests.virtual.world import HOUR, World, play, settled


@pytest.mark.parametrize("far", ["0001-01-01", "an hour ago"])
def test_far_and_near_bets_in_turn_do_not_hold_the_position(far: str) -> None:
    """For five hours and a half."""

    async def story(world: World) -> None:
        world.start()
        await world.until(State.CATCHING_UP)
        for number in range(10):  # near now: it goes live
            world.inflict(Garbage(body=settled(10_000 + number, world.feed.moment()).decode()))
            await asyncio.sleep(1)
        await world.until(State.LIVE)
        for number in range(2000):
            moment = world.feed.moment()
            body = settled(2 * number, moment - HOUR)
            if far == "0001-01-01":
                body = re.sub(rb'"settlementTime":"[^"]*"', b'"settlementTime":"0001-01-01T00:00:00"', body)
            world.inflict(Garbage(body=body.decode()))
            world.inflict(Garbage(body=settled(2 * number + 1, moment).decode()))
            await asyncio.sleep(10)
        assert world.feed.moment() - world.last.revision < HOUR

    play(story, rate=0.00001)

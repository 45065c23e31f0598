"""LOST, undeclared. Rule broken: the revision goes back to what is certain.

A clock an hour ahead takes a settlementTime half an hour ahead for past, so it becomes `newest`. At the restart
`Reign._certain` believes it (or cuts it to now where it lies in the future: a time that is known to be wrong proves
nothing): what was published between the end of the process and there lies before the gap, and is never asked for.
"""

from __future__ import annotations

import asyncio

import pytest

from bridge.simulator.faults import Garbage
from tests.virtual.world import HOUR, World, play, settled


@pytest.mark.parametrize(("shows_date", "ahead"), [(False, 0.5), (True, 0.5), (True, 0.9)])
def test_a_settlement_time_from_the_future_is_not_what_is_certain(shows_date: bool, ahead: float) -> None:
    """One bet in local time without a zone, a wrong clock, half an hour down, in which a burst is published."""

    async def story(world: World) -> None:
        world.network.shows_date = False
        await asyncio.sleep(100)
        world.set_by = HOUR
        world.start()
        await asyncio.sleep(5600)
        world.inflict(Garbage(body=settled(1, world.feed.moment() + ahead * HOUR).decode()))
        await asyncio.sleep(10)
        await world.kill()
        world.set_by = 0
        await asyncio.sleep(1900)
        world.network.shows_date = shows_date
        world.start()
        await asyncio.sleep(600)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, rate=60 / 7200, burst=60)

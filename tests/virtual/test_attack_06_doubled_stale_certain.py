"""DOUBLED by thousands, and a false gap of hours. Rule broken: the revision never goes back; the guard is restored from there.

`Dialler._certain` is of the start of the reign, and is never taken back. A second position in the future in the same
reign goes back to it, hours or days, when the guard has long forgotten what came since.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

from bridge.errors import ClockError
from bridge.simulator.faults import Drop, Pause
from tests.virtual.world import HOUR, World, play


def doubled(world: World) -> int:
    """How many records of the topic are there once more than once."""
    records = world.kafka.records(world.kafka.topics.bets.name)
    return sum(count - 1 for count in Counter(record.value for record in records).values())


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


def test_a_second_position_in_the_future_does_not_go_back_to_the_first() -> None:
    """A provider without Date, a clock that is wrong for an hour twice in one reign."""

    async def story(world: World) -> None:
        await promise_an_hour_too_far(world)
        world.start()
        await asyncio.sleep(6 * HOUR)
        world.set_by = HOUR
        world.inflict(Drop())
        await asyncio.sleep(60)
        world.inflict(Pause(seconds=1.2 * HOUR))
        await asyncio.sleep(1.2 * HOUR)
        world.set_by = 0
        world.inflict(Drop())
        with suppress(ClockError):
            await asyncio.sleep(HOUR)
            await world.kill()
        world.start()
        await asyncio.sleep(HOUR)
        assert doubled(world) == 0

    play(story, rate=0.5)

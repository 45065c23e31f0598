"""DOUBLED, and a false gap `Unwitnessed`. Rule broken: entries younger than what a replay can reach are never evicted.

Between the end of a pause and the answer that sets the clock right, bets are stamped by a clock that is behind. Then
the position moves with the right clock, and `Guard.evict` (or the restoration by `offsets_for_times`, after a kill)
takes these bets for older than they are. The connection breaks, and they are published again.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from bridge.simulator.faults import Drop
from tests.virtual.world import World, play


def doubled(world: World) -> int:
    """How many records of the topic are there once more than once."""
    records = world.kafka.records(world.kafka.topics.bets.name)
    return sum(count - 1 for count in Counter(record.value for record in records).values())


@pytest.mark.parametrize("cut", ["drop", "kill"])
def test_what_came_before_the_clock_was_set_right_is_known_in_the_replay(cut: str) -> None:
    """Paused for ten minutes, set right at once, connected all the time; it breaks 40 s later."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(300)
        world.pause(600)
        await asyncio.sleep(40)
        if cut == "drop":
            world.inflict(Drop())
        else:
            await world.kill()
            world.start()
        await asyncio.sleep(100)
        assert (doubled(world), world.kafka.gaps) == (0, [])

    play(story, rate=0.5)

"""PROCESS DOWN (ClockError) with every clock right. Rule broken: no clock takes it down.

`Timekeeper.watch` keeps a question that was asked on a connection that ended. Its answer is read on the next one; if the
machine was paused in between, it is wrong by as much.
"""

from __future__ import annotations

import asyncio

from bridge.simulator.faults import Drop
from bridge.sink.checkpoint import State
from tests.virtual.world import HOUR, World, play


def test_an_answer_from_before_a_pause_is_not_believed_after_it() -> None:
    """A step of 3 s, a question, a drop, a pause of two minutes, a new connection."""

    async def story(world: World) -> None:
        world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(100)
        world.network.there = 5.0
        world.set_by = 3
        await asyncio.sleep(1.5)
        world.set_by = 0
        world.inflict(Drop())
        world.unreachable(7)
        await asyncio.sleep(6)
        world.pause(120)
        await asyncio.sleep(HOUR)
        await world.check()

    play(story, rate=0.5)

"""LOST, undeclared. Rule broken: the revision is a promise; a step of a clock moves none.

A machine is paused while Kafka keeps the bridge waiting, and its clock is set right (`Timekeeper.watch`, then
`Position.stalled`) before the queue is handled. What is in the queue carries times of the old clock: its bets make
the position live again, and the first ping with a time of the new one promises everything of the pause.
"""

from __future__ import annotations

import asyncio

from bridge.simulator.faults import Clear, Slow
from bridge.sink.checkpoint import State
from tests.virtual.world import HOUR, World, play


def test_a_queue_from_before_the_clock_was_set_right_promises_nothing() -> None:
    """What was published while the machine was paused is still on its way, and the process dies."""

    async def story(world: World) -> None:
        world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(300)
        world.kafka.away(45)
        await asyncio.sleep(12)
        world.inflict(Slow(per_second=1 / 400))
        await asyncio.sleep(15)
        world.pause(2 * HOUR)
        await asyncio.sleep(30)
        await world.kill()
        world.inflict(Clear())
        world.start()
        await asyncio.sleep(600)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, rate=0.5, max_records=1)

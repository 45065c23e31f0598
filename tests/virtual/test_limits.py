"""A bridge that comes close to the limits, as in the interface's own example ("Limits")."""

from __future__ import annotations

import asyncio

from bridge_sandbox.provider.faults import Drop, Slow
from tests.virtual.world import HOUR, World, in_world


@in_world(rate=0.1)
async def test_a_bridge_that_needs_half_an_hour_every_five_minutes_is_never_refused(world: World) -> None:
    world.start()
    await asyncio.sleep(600)
    await world.kill()
    await asyncio.sleep(HOUR / 2)
    world.inflict(Slow(per_second=0.1))  # as fast as it is published: it stays behind
    world.start()
    for _ in range(36):
        await asyncio.sleep(300)
        world.inflict(Drop())
    asked = [a.at - a.revision for a in world.provider.attempts if a.revision]
    assert sum(length > HOUR / 2 for length in asked) >= 20
    reasons = {checkpoint.reason for checkpoint in world.kafka.checkpoints}
    assert "1h of small recovery in the leaky bucket" in reasons
    world.inflict(Slow(seconds=0))
    await world.check()

"""LOST, undeclared. Rule broken: a skew above the limit stops the bridge rather than lose a bet (Two clocks).

The clocks are compared with each handshake, and again only when ours was set or data come from the future. On a quiet
connection pings go on to promise ten minutes ahead of the provider's clock; what it publishes then has times (and a
place in its replay) before the position. The process dies, the provider's clock is set right, the bets are skipped.
"""

from __future__ import annotations

import asyncio

from bridge.simulator.faults import ClockJump
from tests.virtual.world import World, play


def test_pings_promise_nothing_ahead_of_a_provider_whose_clock_stepped_back() -> None:
    """By ten minutes, between two bursts; killed just before the next one, started again when it is right."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(1300)
        world.inflict(ClockJump(by=-600))
        await asyncio.sleep(490)
        await world.kill()
        await asyncio.sleep(60)
        world.inflict(ClockJump(by=600))
        world.start()
        await asyncio.sleep(600)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, rate=0.05, burst=30)

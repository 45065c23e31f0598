"""LOST, undeclared. Rule broken: a gap is declared when the position is older than three days at the dial.

The anchored clock stood still with the machine, so `Dialler._look_back` takes a position that is four days old for a
minute old, though the wall clock is right by then. The handshake sets the clock right (`note`), and nobody looks again
whether what was asked for was within the feed's memory.
"""

from __future__ import annotations

import asyncio

import pytest

from bridge.simulator.faults import Drop
from bridge.sink.checkpoint import State
from tests.virtual.world import DAY, HOUR, World, play


@pytest.mark.parametrize("quiet", [False, True])
def test_a_machine_that_was_paused_for_four_days_declares_the_gap(quiet: bool) -> None:
    """Its wall clock is right again before the dial; the provider shows its Date."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(HOUR)
        if quiet:
            await world.until(State.QUIET)
        world.inflict(Drop(abort=True))
        world.pause(4 * DAY)
        await asyncio.sleep(3 * HOUR)
        await world.check(*[gap.cause for gap in world.kafka.gaps])

    play(story, rate=0.006)

"""LIMIT BROKEN (bucket, large, initial). Rule broken: the limits are law; an attempt counts in every class it could belong to.

The age of a revision is taken by the anchored clock, which stood still with the machine, though the wall clock is
right by then. No refusal and no lost answer sets it right, so each attempt is entered as a small recovery of seconds.
Also where the first is let in: its entry keeps the age that it seemed to have.
"""

from __future__ import annotations

import asyncio

import pytest

from bridge.simulator.faults import Drop, Refuse
from bridge.simulator.provider import Policy
from tests.virtual.world import DAY, HOUR, World, play


@pytest.mark.parametrize("pause", [HOUR / 2, 2 * HOUR, 4 * DAY])
def test_a_machine_that_was_paused_and_is_refused_breaks_no_limit(pause: float) -> None:
    """The provider refuses with 503 for an hour after the pause."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(HOUR)
        world.inflict(Refuse(seconds=HOUR + pause))
        world.inflict(Drop(abort=True))
        world.pause(pause)
        await asyncio.sleep(HOUR)
        assert [breach.reason for breach in world.provider.breaches] == []

    play(story, rate=0.05)


def test_a_machine_that_was_paused_and_loses_its_next_connection_breaks_no_limit() -> None:
    """Nothing is refused: the replay is cut after some seconds, and asked for again."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(HOUR)
        world.inflict(Drop(abort=True))
        world.pause(50 * 60)
        await asyncio.sleep(10)
        world.inflict(Drop(abort=True))
        await asyncio.sleep(60)
        assert [breach.reason for breach in world.provider.breaches] == []

    play(story, rate=0.5, policy=Policy(replay_rate=1))

"""FALSE PROMISE, and revision=0 is never asked. Rules broken: the provider is asked for the time before the first
checkpoint; a first start asks revision=0 once.

On SIGTERM during the question `Reign.run` goes on to commit `Stopped` with a position by a clock that nobody has
confirmed, and without an attempt. An attempt that was withdrawn because Kafka took long spends the 0 as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from bridge.ports import GiveUp
from bridge.simulator.provider import Policy
from bridge.sink.guard import Guard
from tests.virtual.world import HOUR, World, play

EVERYTHING = Policy(zero="everything", replay_rate=5)


@pytest.mark.parametrize("off", [0, HOUR])
def test_a_first_start_that_is_stopped_during_the_question(off: float) -> None:
    """Nothing was dialled: nothing is promised, and the next start is the first."""

    async def story(world: World) -> None:
        world.network.there = 5.0
        world.set_by = off
        world.start()
        await asyncio.sleep(2)
        await world.stop()
        assert world.provider.attempts == []
        assert world.kafka.transactions == 0 or world.last.revision < world.feed.moment()
        world.set_by = 0
        world.network.there = 0.02
        world.start()
        await asyncio.sleep(60)
        assert [attempt.revision for attempt in world.provider.attempts] == [0]

    play(story, rate=0.2, history=HOUR / 2, policy=EVERYTHING)


def test_a_first_attempt_that_is_withdrawn_was_none() -> None:
    """Kafka takes 15 s for the first checkpoint: the dial is not made, and the next one is the first."""

    async def story(world: World) -> None:
        restored = world.kafka.guard

        def guard(since: float, give_up: GiveUp, told: Callable[[str], None]) -> Guard:
            world.kafka.away(15)
            return restored(since, give_up, told)

        world.kafka.guard = guard  # type: ignore[method-assign]
        world.start()
        await asyncio.sleep(60)
        assert [attempt.revision for attempt in world.provider.attempts] == [0]

    play(story, rate=0.2, history=HOUR / 2, policy=EVERYTHING)

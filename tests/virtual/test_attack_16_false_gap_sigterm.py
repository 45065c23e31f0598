"""FALSE GAP, and the position skips days that the provider still has. Rule broken: before anything is skipped the provider
is asked for the time (0011).

`Dialler._look_back` does not look, after `answer(...)`, whether it was answered or the process told to stop. With
on_gap = stop it then skips by a clock that nobody has confirmed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from bridge.errors import GapError
from tests.virtual.world import DAY, HOUR, World, play


def test_a_stop_during_the_question_declares_no_gap() -> None:
    """A clock four days ahead; the first question fails, the second is under way."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(HOUR)
        await world.kill()
        world.set_by = 4 * DAY
        world.network.there = 5.0
        world.unreachable(0.5)
        world.start(on_gap="stop")
        await asyncio.sleep(3)
        with suppress(GapError):
            await world.stop()
        assert world.kafka.gaps == []
        assert world.last.revision < world.feed.moment()

    play(story, rate=0.05)

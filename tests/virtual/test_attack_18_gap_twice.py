"""FALSE GAP (the same interval twice). Rule broken: what is lost is declared, once.

Where nothing was published, what is certain is the edge of the feed's memory at the start. By the time of the dial the
edge has moved on, and what the first gap has already is declared as `TooOld` as well.
"""

from __future__ import annotations

from bridge.sink.checkpoint import State
from bridge.sink.gap import Cause
from tests.virtual.world import HOUR, World, play


def test_what_is_certain_is_within_memory_at_the_dial() -> None:
    """The provider is away for a minute after the start."""

    async def story(world: World) -> None:
        world.network.shows_date = False
        world.set_by = 12 * HOUR
        world.start()
        await world.until(State.CATCHING_UP)
        await world.kill()
        world.set_by = 0
        world.unreachable(60)
        world.start()
        await world.check(Cause.POSITION_IN_FUTURE)

    play(story, rate=0.05)

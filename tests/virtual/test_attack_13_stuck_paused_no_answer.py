"""STUCK for the life of the connection; after three days a false gap. Rule broken: the position follows the feed.

The handshake has a Date, the answer at the root has none (or an Age, or nobody answers). After a pause every bet comes
from the future: not near, not plausible. `watch` asks once a minute in vain; neither the wall clock, which is right, nor
a new handshake, which would tell, is tried.
"""

from __future__ import annotations

import asyncio

import pytest

from bridge.config import FeedSettings
from bridge.errors import FeedLost
from bridge.sink.checkpoint import State
from tests.virtual.world import HOUR, World, play


@pytest.mark.parametrize("root", ["no date", "no answer"])
def test_a_paused_machine_is_set_right_though_the_root_says_nothing(root: str) -> None:
    """Paused for ten minutes; six hours later the position has not moved by a second."""

    async def story(world: World) -> None:
        async def ask_time(_settings: FeedSettings) -> None:
            if root == "no answer":
                raise FeedLost("the provider cannot be reached")

        world.feed.ask_time = ask_time  # type: ignore[method-assign,assignment]
        world.start()
        await world.until(State.LIVE)
        world.pause(600)
        await asyncio.sleep(6 * HOUR)
        assert world.feed.moment() - world.last.revision < HOUR

    play(story, rate=0.5)

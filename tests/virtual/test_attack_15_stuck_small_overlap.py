"""STUCK for ever. Rule broken: settings that are accepted work (feed.overlap_seconds takes 0).

The socket counts as not read after half the overlap, but `breathe` comes once a second: with less than 2 s every message
is `stalled`, clears the window, and the position never moves.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.virtual.world import HOUR, World, play


@pytest.mark.parametrize("overlap", [0.0, 1.0, 1.9])
def test_a_small_overlap_does_not_hold_the_position(overlap: float) -> None:
    """Six hours of an ordinary feed."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(6 * HOUR)
        assert world.feed.moment() - world.last.revision < HOUR

    play(story, rate=0.2, feed={"overlap_seconds": overlap, "max_skew_seconds": 0.0})

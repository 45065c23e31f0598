"""STUCK, then a FALSE GAP and exit 5. Rule broken: the position follows the feed; no gap that is none.

A ping with an unknown field moves nothing and takes the trust in others away, for ever where all pings have it. Decided so
(0001), but nothing bounds it: each reconnection asks for hours, and three days without a bet end the bridge.
"""

from __future__ import annotations

import asyncio

import pytest

from bridge.simulator.connection import Connection
from bridge.simulator.faults import Drop, Pause
from bridge.sink.checkpoint import State
from tests.virtual.world import DAY, World, play


def test_pings_that_all_have_an_unknown_field_hold_the_position_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A feed without a bet for three days, connected all the time, then one drop."""
    ping = Connection._ping
    monkeypatch.setattr(Connection, "_ping", lambda self: ping(self)[:-1] + b',"at":1}')

    async def story(world: World) -> None:
        world.start(on_gap="stop")
        await world.until(State.LIVE)
        world.inflict(Pause(seconds=4 * DAY))
        await asyncio.sleep(3.1 * DAY)
        world.inflict(Drop())
        await asyncio.sleep(100)
        assert (world.kafka.gaps, world.last.state is State.STOPPED_ON_GAP) == ([], False)

    play(story, rate=0.5)

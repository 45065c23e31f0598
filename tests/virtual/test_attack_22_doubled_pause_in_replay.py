"""DOUBLED, and a false gap `Unwitnessed`, with all clocks right. Rule broken: what a replay can bring back is not evicted.

After an hour of pings alone the position moves to now (0001), the guard forgets all that was received before, and then
the replay of *this* connection goes on. What it may bring back reaches from the revision that it asked for, whatever
has been promised since.
"""

from __future__ import annotations

import asyncio
from collections import Counter

from bridge.simulator.faults import Drop, Pause
from bridge.simulator.provider import Policy
from bridge.sink.checkpoint import State
from tests.virtual.world import HOUR, World, play


def doubled(world: World) -> int:
    """How many records of the topic are there once more than once."""
    records = world.kafka.records(world.kafka.topics.bets.name)
    return sum(count - 1 for count in Counter(record.value for record in records).values())


def test_a_replay_that_pauses_for_more_than_an_hour_doubles_nothing() -> None:
    """Connected all the time, and pinged; the provider shows its Date."""

    async def story(world: World) -> None:
        world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(300)
        world.inflict(Drop())
        world.inflict(Pause(seconds=1.2 * HOUR))
        await asyncio.sleep(1.5 * HOUR)
        assert (doubled(world), world.kafka.gaps) == (0, [])

    play(story, rate=0.5)


def test_a_replay_that_pauses_near_its_end_for_ten_minutes_doubles_nothing() -> None:
    """Its first bets were near now, so pings count after two minutes; the rest of what is known comes later."""

    async def story(world: World) -> None:
        world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(300)
        world.inflict(Drop())
        await asyncio.sleep(36)
        world.inflict(Pause(seconds=600))
        await asyncio.sleep(900)
        assert (doubled(world), world.kafka.gaps) == (0, [])

    play(story, rate=0.5, policy=Policy(replay_rate=1))

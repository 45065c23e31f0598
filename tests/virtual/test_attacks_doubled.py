"""Found by attack: bets published twice because the deduplicator evicted by a wrong time."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from bridge.errors import ClockError
from bridge.sandbox.provider.faults import Drop, Pause
from bridge.sandbox.provider.feed import Policy
from bridge.state.checkpoint import State
from tests.virtual.world import HOUR, World, in_world


def doubled(world: World) -> int:
    """Return how many records of the topic occur more than once."""
    records = world.kafka.records(world.kafka.topics.bets.name)
    return sum(count - 1 for count in Counter(record.value for record in records).values())


# Entries younger than what a replay can reach are never evicted. Between the end of a pause and the answer
# that sets the clock right, bets are stamped by a clock that is behind. Then the position moves with the
# right clock, and `Deduplicator.evict` (or the restoration by `offsets_for_times`, after a kill) takes these
# bets for older than they are. The connection breaks, and they are published again.
@pytest.mark.parametrize("cut", ["drop", "kill"])
@in_world(rate=0.5)
async def test_bets_received_before_a_clock_step_are_known_in_the_replay(world: World, cut: str) -> None:
    """Paused for ten minutes, set right at once, connected all the time; the connection breaks 40 s later."""
    world.start()
    await asyncio.sleep(300)
    world.pause(600)
    await asyncio.sleep(40)
    if cut == "drop":
        world.inflict(Drop())
    else:
        await world.kill()
        world.start()
    await asyncio.sleep(100)
    assert (doubled(world), world.kafka.gaps) == (0, [])


async def promise_an_hour_too_far(world: World) -> int:
    """No Date, a clock an hour ahead, an hour of pings; then kill the process and set the clock right."""
    world.network.shows_date = False
    world.set_by = HOUR
    world.start()
    await asyncio.sleep(300)
    world.inflict(Pause(seconds=2 * HOUR))
    await asyncio.sleep(HOUR * 1.5)
    await world.kill()
    world.set_by = 0
    world.inflict(Pause(seconds=0))
    await asyncio.sleep(60)
    assert world.last.revision > world.feed.moment() + HOUR / 2
    return world.last.revision


# The revision never goes back; the deduplicator is restored from there. `Connector._certain` is of the start
# of the term and is never taken back. A second position in the future in the same term goes back to it, by
# hours or days, when the deduplicator has long evicted the bets since.
@in_world(rate=0.2)
async def test_a_second_position_in_the_future_does_not_go_back_to_the_first(world: World) -> None:
    """A provider without Date, and a clock that is wrong for an hour twice in one term."""
    await promise_an_hour_too_far(world)
    world.start()
    await asyncio.sleep(2 * HOUR)
    world.set_by = HOUR
    world.inflict(Drop())
    await asyncio.sleep(60)
    world.inflict(Pause(seconds=1.2 * HOUR))
    await asyncio.sleep(1.2 * HOUR)
    world.set_by = 0
    world.inflict(Drop())
    with suppress(ClockError):
        await asyncio.sleep(HOUR)
        await world.kill()
    world.start()
    await asyncio.sleep(HOUR)
    assert doubled(world) == 0


# Bets that a replay can repeat are not evicted. After an hour of pings alone the position moves to now
# (0001), the deduplicator evicts all bets received before, and then the replay of *this* connection goes on.
# It may repeat everything from the revision that it requested, however far the position has advanced.
@in_world(rate=0.5)
async def test_a_replay_that_pauses_for_more_than_an_hour_doubles_nothing(world: World) -> None:
    """Connected all the time, with pings; the provider sends its Date."""
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    world.inflict(Drop())
    world.inflict(Pause(seconds=1.2 * HOUR))
    await asyncio.sleep(1.5 * HOUR)
    assert doubled(world) == 0  # after an hour of pings alone nothing more is waited for: a gap (0011)


@in_world(rate=0.5, policy=Policy(replay_rate=1))
async def test_a_replay_that_pauses_near_its_end_for_ten_minutes_doubles_nothing(world: World) -> None:
    """Its first bets were near now, so pings count after two minutes; the other known bets come later."""
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    world.inflict(Drop())
    await asyncio.sleep(36)
    world.inflict(Pause(seconds=600))
    await asyncio.sleep(900)
    assert (doubled(world), world.kafka.gaps) == (0, [])

"""Found by attack: limits of the provider broken because ages were taken by a clock that stood still."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from bridge.clock import AnchoredClock
from bridge.errors import ClockError, NotOwner
from bridge.kafka.batch import Record
from bridge.sandbox.provider.faults import Drop, Refuse
from bridge.sandbox.provider.feed import Policy
from bridge.state.checkpoint import State
from tests.virtual.kafka import CODECS
from tests.virtual.world import DAY, HOUR, World, in_world


# The limits are law; an attempt counts in every class it could belong to. The age of a revision is taken by
# the anchored clock, which stood still with the machine, though the wall clock is right by then. No refusal
# and no lost answer sets it right, so each attempt is entered as a small recovery of seconds. Also where
# the first is let in: its entry keeps the age that it seemed to have.
@pytest.mark.parametrize("pause", [HOUR / 2, 2 * HOUR, 4 * DAY])
@in_world(rate=0.05)
async def test_a_machine_that_was_paused_and_is_refused_breaks_no_limit(world: World, pause: float) -> None:
    """The provider refuses with 503 for an hour after the pause."""
    world.start()
    await asyncio.sleep(HOUR)
    world.inflict(Refuse(seconds=HOUR + pause))
    world.inflict(Drop(abort=True))
    world.pause(pause)
    await asyncio.sleep(HOUR)
    assert [breach.reason for breach in world.provider.breaches] == []


@in_world(rate=0.5, policy=Policy(replay_rate=1))
async def test_a_machine_that_was_paused_and_loses_its_next_connection_breaks_no_limit(world: World) -> None:
    """Nothing is refused: the replay is cut after some seconds and requested again."""
    world.start()
    await asyncio.sleep(HOUR)
    world.inflict(Drop(abort=True))
    world.pause(50 * 60)
    await asyncio.sleep(10)
    world.inflict(Drop(abort=True))
    await asyncio.sleep(60)
    assert [breach.reason for breach in world.provider.breaches] == []


# The limits are law; `decide` is asked for the attempt that is made. `Connector.connect` waits for the
# limiter with the position as it is, which asks for seconds. Then `_look_back` takes it back to what is
# certain, hours ago, and the attempt is made without asking the limiter for *that* recovery.
@in_world(rate=0.2, history=5 * HOUR, feed={"start": "4h"}, policy=Policy(replay_rate=1))
async def test_a_position_that_is_taken_back_is_judged_again(world: World) -> None:
    """Five large recoveries in ten minutes, then a checkpoint of a clock that was two hours ahead."""
    for _ in range(5):
        world.start()
        await asyncio.sleep(70)
        await world.kill()
    wrong = replace(world.last, revision=int(world.feed.moment() + 2 * HOUR))
    value = CODECS.checkpoints.encode(wrong.to_avro())
    world.kafka.append([Record(world.kafka.topics.checkpoints.name, b"f", value, 0, partition=0)])
    world.start()
    await asyncio.sleep(60)
    assert [breach.reason for breach in world.provider.breaches] == []


# Within a process, what has passed is what the monotonic clock says (0010). `FeedOwner._compare_clocks`
# anchors to the wall clock before it asks. Where that was set wrong (the provider had said so, and it was not
# believed) and the provider cannot be asked just now, the ledger of the last term looks an hour older.
@in_world(rate=0.5)
async def test_a_second_term_in_one_process_keeps_the_age_of_the_ledger(world: World) -> None:
    """Leadership is lost and won again while the wall clock is wrong and the provider away for 5 s."""
    world.anchored = clock = AnchoredClock(world.clock)  # one for the process, as in `bridge.service.app`
    world.start()
    await world.until(State.LIVE)
    for _ in range(5):
        world.inflict(Drop())
        await asyncio.sleep(15)
    world.set_by = HOUR
    await asyncio.sleep(5)
    assert clock.stepped > HOUR / 2  # not believed
    world.lose_leadership()
    assert isinstance(await world.ended(), NotOwner)
    world.unreachable(5)
    world.start()
    with suppress(ClockError):
        await asyncio.sleep(100)
        await world.kill()
    assert [breach.reason for breach in world.provider.breaches] == []

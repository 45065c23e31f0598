"""Found by attack: bets lost without a gap, by wrong clocks and the positions committed by them."""

from __future__ import annotations

import asyncio

import pytest

from bridge.sandbox.provider.faults import Clear, Drop, Slow
from bridge.state.checkpoint import State
from tests.virtual.world import DAY, EPOCH, HOUR, World, in_world


# The revision is a promise; a step of a clock moves none. A machine is paused while Kafka keeps the bridge
# waiting, and its clock is set right (`Timekeeper.watch`, then `Position.stalled`) before the queue is
# handled. What is in the queue carries times of the old clock: its bets make the position live again, and
# the first ping with a time of the new one promises everything of the pause.
@in_world(rate=0.5, max_records=1)
async def test_messages_queued_before_a_clock_step_do_not_advance_the_position(world: World) -> None:
    """They were published while the machine was paused, and the process dies."""
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    world.kafka.away(45)
    await asyncio.sleep(12)
    world.inflict(Slow(per_second=1 / 400))
    await asyncio.sleep(15)
    world.pause(2 * HOUR)
    await asyncio.sleep(30)
    await world.kill()
    world.inflict(Clear())
    world.start()
    await asyncio.sleep(600)
    await world.check(*[gap.cause for gap in world.kafka.gaps])


# A gap is declared when the position is older than three days at the attempt. The anchored clock stood still
# with the machine, so `Connector._look_back` takes a position that is four days old for a minute old, though
# the wall clock is right by then. The handshake sets the clock right (`note`), and nobody looks again
# whether what was asked for was within the feed's memory.
@pytest.mark.parametrize("quiet", [False, True])
@in_world(rate=0.006)
async def test_a_machine_that_was_paused_for_four_days_declares_the_gap(world: World, quiet: bool) -> None:
    """Its wall clock is right again before it connects; the provider sends its Date."""
    world.start()
    await asyncio.sleep(HOUR)
    if quiet:
        await world.until(State.QUIET)
    world.inflict(Drop(abort=True))
    world.pause(4 * DAY)
    await asyncio.sleep(3 * HOUR)
    await world.check(*[gap.cause for gap in world.kafka.gaps])


BURST = {"rate": 60 / 7200, "burst": 60}


# A position that turns out to lie in the future is a gap (0011: waiting until it is past would lose, in
# silence). `FeedOwner._certain` knows at the start that the position lies in the future, but
# `Connector._look_back` only looks at the moment of the attempt. While the provider is away, or a limit
# delays the attempt, it passes, and all is forgotten.
@pytest.mark.parametrize("shows_date", [False, True])
@in_world(**BURST)
async def test_a_position_in_the_future_is_a_gap_even_if_it_passes_before_the_connection(
    world: World, shows_date: bool
) -> None:
    """The provider is unreachable for an hour; bets published meanwhile are received or in the gap."""
    world.network.shows_date = False
    await asyncio.sleep(100)
    world.set_by = HOUR
    world.start()
    await asyncio.sleep(5400)
    await world.kill()
    assert world.last.revision > 9000 + EPOCH - 120
    world.set_by = 0
    await asyncio.sleep(60)
    world.network.shows_date = shows_date
    world.unreachable(1.1 * HOUR)  # a burst is published meanwhile
    world.start()
    await asyncio.sleep(1.5 * HOUR)
    await world.check(*[gap.cause for gap in world.kafka.gaps])


# A position that turns out to lie in the future is a gap. A promise trails the clock by 90 s, so a position
# of 10 s ahead was made by a clock that was wrong by more than 100 s. Yet `Connector._in_future` and
# `FeedOwner._certain` only look for more than max_clock_skew_seconds ahead of now; neither does anybody look
# at `updated_at`, which lies in the future as well.
@in_world(rate=60 / 7200, burst=60)
async def test_a_position_that_only_a_wrong_clock_can_have_committed_is_a_gap(world: World) -> None:
    """No Date, a clock 150 s ahead for two hours; killed, set right, started after a minute and a burst."""
    world.network.shows_date = False
    await asyncio.sleep(100)
    world.set_by = 150
    world.start()
    await asyncio.sleep(7060)
    await world.kill()
    assert world.last.revision > EPOCH + 7205
    assert world.last.updated_at > world.feed.moment() + 100
    world.set_by = 0
    await asyncio.sleep(58)
    assert world.last.revision > world.feed.moment() - 30
    world.start()
    await asyncio.sleep(600)
    await world.check(*[gap.cause for gap in world.kafka.gaps])

"""The provider's clock may be off, ours may be set, and no bet may be lost by it."""

from __future__ import annotations

import asyncio
import re
from functools import partial

import pytest

from bridge.errors import ClockError, GapError
from bridge.records.checkpoint import State
from bridge.records.gap import Cause
from bridge_sandbox.provider.faults import ClockJump, Drop, Garbage, Pause
from tests.virtual.campaigns import disconnections, restarts
from tests.virtual.world import DAY, EPOCH, HOUR, World, in_world, play, settled


@pytest.mark.parametrize("ahead", [-10, 10])
@pytest.mark.parametrize("shows_date", [False, True])
def test_a_provider_whose_clock_is_ten_seconds_off(ahead: float, shows_date: bool) -> None:
    async def story(world: World) -> None:
        world.network.shows_date = shows_date
        await disconnections(world, 4, HOUR / 2)
        assert world.last.skew == (pytest.approx(ahead, abs=1.1) if shows_date else None)

    play(story, rate=0.5, ahead=ahead)


@pytest.mark.parametrize("ahead", [-10, 10])
def test_restarts_with_a_clock_that_is_off(ahead: float) -> None:
    assert play(partial(restarts, count=20), rate=0.1, ahead=ahead) > 100


@pytest.mark.parametrize(("ahead", "side"), [(20, "ahead of"), (-20, "behind")])
@in_world(rate=0.2)
async def test_a_clock_that_is_too_far_off_stops_the_bridge(world: World, ahead: float, side: str) -> None:
    world.start()
    await asyncio.sleep(600)
    world.inflict(ClockJump(by=ahead))
    world.inflict(Drop())
    error = await world.ended()
    assert isinstance(error, ClockError)
    assert re.search(rf"\b(19\.\d|20)s {side} ours", str(error))
    assert (world.last.state, world.last.reason) == (State.STOPPED, str(error))
    world.inflict(ClockJump(by=-ahead))
    await asyncio.sleep(600)
    world.start()
    await world.check()


@in_world(rate=0.2, ahead=20)
async def test_a_clock_that_is_too_far_ahead_is_seen_by_the_data(world: World) -> None:
    world.network.shows_date = False
    world.start()
    error = await world.ended()
    assert isinstance(error, ClockError)
    assert world.last.counters.received >= 50


@pytest.mark.parametrize("shows_date", [False, True])
@pytest.mark.parametrize("step", [-HOUR, HOUR])
@pytest.mark.parametrize("cut", ["none", "drop", "kill"])
@in_world(rate=0.2)
async def test_our_clock_is_set_by_an_hour_and_back(
    world: World, step: float, shows_date: bool, cut: str
) -> None:
    world.network.shows_date = shows_date
    world.start()
    await asyncio.sleep(300)
    world.set_by = step
    await asyncio.sleep(100)
    if cut == "drop":
        world.inflict(Drop())
    elif cut == "kill":
        await world.kill()
        world.start()
    await asyncio.sleep(600)
    try:
        await world.kill()
    except ClockError:
        assert shows_date or step < 0
    world.set_by = 0
    await asyncio.sleep(60)
    world.start()
    await world.check()


@pytest.mark.parametrize("on_gap", ["continue", "stop"])
@in_world(rate=0.5)
async def test_a_machine_that_is_behind_declares_nothing_before_the_provider_answers(
    world: World, on_gap: str
) -> None:
    world.start(on_gap=on_gap)
    await asyncio.sleep(300)
    world.inflict(Pause(seconds=3 * HOUR))
    await asyncio.sleep(1.5 * HOUR)
    await world.kill()
    before = world.last.revision
    world.set_by = -HOUR
    world.unreachable(120)
    world.start()
    assert isinstance(await world.ended(), ClockError)
    assert (world.kafka.gaps, world.last.revision) == ([], before)


@pytest.mark.parametrize("shows_date", [False, True])
@pytest.mark.parametrize("step", [-HOUR, HOUR, 50.0])
@pytest.mark.parametrize("cut", ["drop", "kill"])
@in_world(rate=0.05, burst=30)
async def test_our_clock_is_wrong_for_minutes_while_the_feed_is_quiet(
    world: World, step: float, shows_date: bool, cut: str
) -> None:
    world.network.shows_date = shows_date
    world.start()
    await asyncio.sleep(750)  # 150 after the last bets
    world.set_by = step
    await asyncio.sleep(200)
    world.set_by = 0
    await asyncio.sleep(20)
    assert 0 <= world.clock().wall - 90 - world.last.revision <= 15
    if cut == "kill":
        await world.kill()
        await asyncio.sleep(300)
        world.start()
    else:
        world.inflict(Drop())
        world.unreachable(300)
    await asyncio.sleep(HOUR)
    assert await world.check() > 0


@in_world(rate=0.5)
async def test_a_machine_that_is_paused_is_set_right_by_the_provider(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    world.inflict(ClockJump(by=600))  # seen from the machine it is the others that have jumped
    world.set_by = 600
    await asyncio.sleep(300)
    assert world.last.state is State.LIVE
    assert world.clock().wall - world.last.revision < 120
    assert len(world.provider.attempts) == 2
    await world.check()


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59", "two hours ahead"])
@in_world(rate=0.5)
async def test_settlement_times_from_the_future_stop_nothing_where_the_provider_shows_the_time(
    world: World, time: str
) -> None:
    world.start()
    await world.until(State.LIVE)
    for number in range(120):
        body = settled(number, world.feed.moment() + 7200)
        if time.startswith("9999"):
            body = re.sub(rb'"settlementTime":"[^"]*"', f'"settlementTime":"{time}"'.encode(), body)
        world.inflict(Garbage(body=body.decode()))
    await asyncio.sleep(600)
    world.inflict(Drop())
    await asyncio.sleep(600)
    await world.kill()
    world.start()
    await asyncio.sleep(600)
    assert world.last.skew == 0
    assert world.clock().wall - world.last.revision < 120
    await world.check()


@in_world(rate=0.1)
async def test_a_position_that_did_not_follow_a_wrong_clock_is_no_gap(world: World) -> None:
    """It followed the bets, which that clock took for old: what is certain lies behind it, not before."""
    world.network.shows_date = False
    world.start()
    await asyncio.sleep(600)
    await world.kill()
    world.set_by = 300
    world.start()
    await asyncio.sleep(HOUR / 2)
    await world.kill()
    world.set_by = 0
    world.start()
    await asyncio.sleep(HOUR)
    await world.check()


@pytest.mark.parametrize("on_gap", ["stop", "continue"])
@pytest.mark.parametrize("quiet", [False, pytest.param(True, marks=pytest.mark.long)])
@in_world(rate=0.5, history=DAY / 24)
async def test_a_position_that_was_committed_by_a_wrong_clock_is_a_gap(
    world: World, on_gap: str, quiet: bool
) -> None:
    world.network.shows_date = False
    world.set_by = HOUR
    world.start()
    if not quiet:
        await asyncio.sleep(300)
    world.inflict(Pause(seconds=2 * HOUR))
    await asyncio.sleep(HOUR * 1.5)
    promised = world.last.revision
    assert promised > EPOCH + HOUR * 2
    await world.kill()
    world.set_by = 0
    world.inflict(Pause(seconds=0))
    await asyncio.sleep(60)
    world.start(on_gap=on_gap)
    if on_gap == "stop":
        error = await world.ended()
        assert isinstance(error, GapError)
        assert world.last.state is State.STOPPED_ON_GAP
        assert world.last.revision < EPOCH + HOUR
        world.start(on_gap="continue")
    await world.check(Cause.POSITION_IN_FUTURE)
    [gap] = world.kafka.gaps
    assert gap.end == promised
    assert gap.start <= EPOCH + 300


def test_clock_steps_at_random() -> None:
    async def steps(world: World) -> None:
        while True:
            await asyncio.sleep(world.random.uniform(0, 300))
            world.set_by = world.random.uniform(-5, 5)

    async def story(world: World) -> None:
        stepping = asyncio.create_task(steps(world))
        await disconnections(world, 30, 2 * HOUR)
        stepping.cancel()

    play(story, rate=0.1)

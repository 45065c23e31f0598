"""Two clocks: the provider's may be off, ours may be set, and no bet may be lost by it."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from bridge.errors import ClockError
from bridge.simulator.faults import ClockJump, Drop
from bridge.sink.checkpoint import State
from tests.virtual.campaigns import disconnections, restarts
from tests.virtual.world import HOUR, World, play


@pytest.mark.parametrize("ahead", [-10, 10])
@pytest.mark.parametrize("shows_date", [False, True])
def test_a_provider_whose_clock_is_ten_seconds_off(ahead: float, shows_date: bool) -> None:
    """Measured or not, nothing is lost and no limit is broken, whatever goes wrong besides."""

    async def story(world: World) -> None:
        world.network.shows_date = shows_date
        await disconnections(world, 4, HOUR / 2)
        assert world.last.skew == (pytest.approx(ahead, abs=1.1) if shows_date else None)

    play(story, rate=0.5, ahead=ahead)


@pytest.mark.parametrize("ahead", [-10, 10])
def test_restarts_with_a_clock_that_is_off(ahead: float) -> None:
    """Kills at random moments; two thirds of the skew that is allowed."""
    assert play(partial(restarts, count=20), rate=0.1, ahead=ahead) > 100


@pytest.mark.parametrize(("ahead", "side"), [(20, "ahead of"), (-20, "behind")])
def test_a_clock_that_is_too_far_off_stops_the_bridge(ahead: float, side: str) -> None:
    """By the handshake's Date, with the reason in the checkpoint; once it is right all is as it was."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(600)
        world.inflict(ClockJump(by=ahead))
        world.inflict(Drop())
        error = await world.ended()
        assert isinstance(error, ClockError)
        assert f"20 s {side} ours" in str(error) or f"19 s {side} ours" in str(error)
        assert (world.last.state, world.last.reason) == (State.STOPPED, str(error))
        world.inflict(ClockJump(by=-ahead))
        await asyncio.sleep(600)
        world.start()
        await world.check()

    play(story, rate=0.2)


def test_a_clock_that_is_too_far_ahead_is_seen_by_the_data() -> None:
    """Without a Date, fifty bets in a row from the future say so too."""

    async def story(world: World) -> None:
        world.network.shows_date = False
        world.start()
        error = await world.ended()
        assert isinstance(error, ClockError)
        assert world.last.counters.received >= 50

    play(story, rate=0.2, ahead=20)


@pytest.mark.parametrize("shows_date", [False, True])
@pytest.mark.parametrize("step", [-HOUR, HOUR])
@pytest.mark.parametrize("cut", ["none", "drop", "kill"])
def test_our_clock_is_set_by_an_hour_and_back(step: float, shows_date: bool, cut: str) -> None:
    """Stopped by it or not, in the end everything is there and no limit was broken."""

    async def story(world: World) -> None:
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

    play(story, rate=0.2)


def test_clock_steps_at_random() -> None:
    """Seconds to and fro, by NTP say, while everything else goes wrong as well."""

    async def steps(world: World) -> None:
        while True:
            await asyncio.sleep(world.random.uniform(0, 300))
            world.set_by = world.random.uniform(-5, 5)

    async def story(world: World) -> None:
        stepping = asyncio.create_task(steps(world))
        await disconnections(world, 30, 2 * HOUR)
        stepping.cancel()

    play(story, rate=0.1)

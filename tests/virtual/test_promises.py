"""Cases in which a bridge once committed a position too far, stood still, or forgot its attempts."""

from __future__ import annotations

import asyncio

import pytest

from bridge.errors import ClockError
from bridge.records.checkpoint import State
from bridge_sandbox.provider.faults import Drop, Pause, Slow
from tests.virtual.world import DAY, HOUR, World, in_world, play


@pytest.mark.parametrize(("rate", "slow"), [(0.5, 0.1), (0.1, 0.02)])
def test_a_feed_that_was_seen_to_be_behind_is_not_trusted_for_its_pings(rate: float, slow: float) -> None:
    async def story(world: World) -> None:
        world.start()
        await world.until(State.LIVE, State.QUIET)
        await asyncio.sleep(HOUR / 4)
        world.inflict(Slow(per_second=slow))
        await asyncio.sleep(25 * 60)
        behind = world.clock().wall - world.last.revision
        assert (world.last.state, behind > 600) == (State.CATCHING_UP, True)
        world.inflict(Pause(seconds=HOUR))
        await asyncio.sleep(200)
        assert world.clock().wall - world.last.revision > behind
        await world.kill()
        world.start()
        await world.check()

    play(story, rate=rate)


@pytest.mark.parametrize("off", [-HOUR, HOUR])
@in_world(rate=0.2)
async def test_a_first_start_with_a_wrong_clock_commits_no_position(world: World, off: float) -> None:
    world.set_by = off
    world.start()
    assert isinstance(await world.ended(), ClockError)
    assert (world.kafka.transactions, world.provider.attempts) == (0, [])
    world.set_by = 0.0
    world.start()
    await asyncio.sleep(600)
    assert await world.check() > 0


@in_world(rate=0.2)
async def test_processes_on_machines_whose_clocks_differ_break_no_limit(world: World) -> None:
    for turn in range(60):
        world.set_by = -14.0 if turn % 2 else 14.0
        world.start()
        await asyncio.sleep(world.random.uniform(1, 90))
        await world.kill()
    world.set_by = 0.0
    world.start()
    await world.check()


@pytest.mark.parametrize("on_gap", ["stop", pytest.param("continue", marks=pytest.mark.long)])
@in_world(rate=0.02)
async def test_while_the_provider_is_away_nothing_is_skipped(world: World, on_gap: str) -> None:
    world.network.fails_after = 9.0
    world.start(on_gap=on_gap)
    await asyncio.sleep(HOUR)
    world.unreachable(4 * DAY)
    await asyncio.sleep(4 * DAY - HOUR)
    assert (world.kafka.gaps, world.last.revision < world.clock().wall - 3.9 * DAY) == ([], True)
    if on_gap == "stop":
        await world.ended()
        assert world.last.state is State.STOPPED_ON_GAP
    else:
        await asyncio.sleep(2 * HOUR)
        assert world.last.state in (State.CATCHING_UP, State.LIVE)
    [gap] = world.kafka.gaps
    assert gap.seconds == pytest.approx(DAY, abs=600)


@in_world(rate=0.5)
async def test_a_provider_that_closes_every_few_minutes_is_reconnected_at_once(world: World) -> None:
    world.start()
    for _ in range(12):
        await world.until(State.LIVE, State.QUIET)
        await asyncio.sleep(270)
        attempts = len(world.provider.attempts)
        world.inflict(Drop())
        await asyncio.sleep(10)
        assert len(world.provider.attempts) == attempts + 1
    await world.check()

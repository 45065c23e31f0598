"""A provider that nothing reaches: no attempt counts, and it is received again as soon as it is back."""

from __future__ import annotations

import asyncio

import pytest

from bridge.records.checkpoint import State
from bridge_sandbox.provider.feed import Policy
from tests.virtual.world import HOUR, World, in_world

BACK_SECONDS = 5.0
"""From the provider's return to the next connection."""


async def _connected_after(world: World, seconds: float) -> float:
    """Take the provider away for so long; return how long after its return a connection was accepted."""
    loop = asyncio.get_running_loop()
    world.unreachable(seconds)
    back, before = loop.time() + seconds, len(world.provider.attempts)
    if not world.runs:
        world.start()
    await world.reached(lambda: len(world.provider.attempts) > before, "not connected", seconds + HOUR)
    assert world.provider.attempts[-1].since is not None
    return loop.time() - back


@pytest.mark.parametrize("seconds", [20, 60, HOUR, 6 * HOUR])
@in_world(rate=0.1)
async def test_a_provider_that_was_away_while_live(world: World, seconds: float) -> None:
    world.start()
    await world.until(State.LIVE)
    assert await _connected_after(world, seconds) < BACK_SECONDS
    await world.check()


@pytest.mark.parametrize("slept", [60, 2 * HOUR])
@in_world(rate=0.1, policy=Policy(replay_rate=50))
async def test_a_provider_that_is_away_at_a_start(world: World, slept: float) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(600)
    await world.kill()
    await asyncio.sleep(slept)
    assert await _connected_after(world, 20) < BACK_SECONDS
    await world.check()


@in_world(rate=0.1)
async def test_an_attempt_that_reached_nobody_is_withdrawn_by_the_next_checkpoint(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    world.unreachable(60)
    await world.until(State.CONNECTING)
    assert len(world.last.ledger) == 2
    await world.until(State.BACKING_OFF)
    assert len(world.last.ledger) == 1
    assert "unreachable" in world.last.reason
    tried = len(world.kafka.checkpoints)
    await world.reached(lambda: len(world.kafka.checkpoints) > tried + 2, "no more attempts")
    assert len(world.last.ledger) == 2
    await world.kill()
    world.start()
    await world.until(State.LIVE)
    assert len(world.last.ledger) == 3
    await world.check()


@in_world(rate=0.1)
async def test_with_the_strict_reading_every_attempt_counts(world: World) -> None:
    limits = world.settings.limits.model_copy(update={"count_unreached": True})
    world.settings = world.settings.model_copy(update={"limits": limits})
    world.start()
    await world.until(State.LIVE)
    assert await _connected_after(world, 60) > 60
    await world.check()

"""The interface's own examples ("Limits"), tried on the simulator, and a bridge that comes close to them."""

from __future__ import annotations

import asyncio

import pytest

from bridge_sandbox.provider.faults import Drop, Slow
from bridge_sandbox.provider.feed import Provider, Refusal
from bridge_sandbox.provider.rate_limits import Limits
from bridge_sandbox.provider.stream import Stream, StreamSettings
from tests.virtual.world import ENTITIES, EPOCH, HOUR, World, in_world


@pytest.mark.parametrize(("minutes", "refused"), [(10, False), (30, True)])
def test_reconnecting_every_five_minutes(minutes: int, refused: bool) -> None:
    provider = Provider(Stream(ENTITIES, EPOCH, StreamSettings(rate=1)), Limits())
    answers = []
    for number in range(7 * 24 * 12):
        now = EPOCH + number * 300
        answer = provider.connect(now, int(now - minutes * 60))
        answers.append(answer)
        if not isinstance(answer, Refusal):
            provider.disconnect(answer)
    assert any(isinstance(answer, Refusal) for answer in answers[:12]) is refused
    assert any(isinstance(answer, Refusal) for answer in answers) is refused


@in_world(rate=0.1)
async def test_a_bridge_that_needs_half_an_hour_every_five_minutes_is_never_refused(world: World) -> None:
    world.start()
    await asyncio.sleep(600)
    await world.kill()
    await asyncio.sleep(HOUR / 2)
    world.inflict(Slow(per_second=0.1))  # as fast as it is published: it stays behind
    world.start()
    for _ in range(36):
        await asyncio.sleep(300)
        world.inflict(Drop())
    asked = [a.at - a.revision for a in world.provider.attempts if a.revision]
    assert sum(length > HOUR / 2 for length in asked) >= 20
    reasons = {checkpoint.reason for checkpoint in world.kafka.checkpoints}
    assert "1h of small recovery in the leaky bucket" in reasons
    world.inflict(Slow(seconds=0))
    await world.check()

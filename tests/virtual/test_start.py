"""The first start: the reach of revision 0 is unknown, and the checkpoint is right either way."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from bridge.errors import TopologyError
from bridge.records.checkpoint import State
from bridge.records.gap import Cause
from bridge_sandbox.provider.faults import Drop, Forget, Refuse
from bridge_sandbox.provider.feed import Policy
from tests.virtual.kafka import Kafka
from tests.virtual.world import EPOCH, HOUR, World, in_world, play

Zero = Literal["nothing", "everything"]


def _since(zero: Zero) -> float:
    """Return from when on all must be there: what 0 replays, and all since the start."""
    return EPOCH - (HOUR / 2 if zero == "everything" else 30)


@pytest.mark.parametrize("zero", ["nothing", "everything"])
@pytest.mark.parametrize("lived", [0.05, 1, 60, 300])
def test_a_first_start_that_is_killed(zero: Zero, lived: float) -> None:
    """Before the first attempt, during the replay of 0, after it: what 0 replays is there, and all since.

    0 is asked for until all that it replays has come.
    """

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(lived)
        await world.kill()
        first, *_ = world.kafka.checkpoints
        assert (first.state, first.revision) == (State.CONNECTING, EPOCH - 30)
        await asyncio.sleep(100)
        world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(300)
        await world.check(since=_since(zero) if zero == "everything" else None)
        revisions = [attempt.revision for attempt in world.provider.attempts]
        assert revisions.count(0) == (1 if lived == 300 or (lived == 60 and zero == "nothing") else 2)

    play(story, rate=0.2, history=HOUR / 2, policy=Policy(zero=zero, replay_rate=5))


@pytest.mark.parametrize("zero", ["nothing", "everything"])
@pytest.mark.parametrize("cut", ["drop", "kill"])
def test_what_is_forgotten_between_two_connections_for_zero_is_a_gap(zero: Zero, cut: str) -> None:
    """What the second one brings does not show that nothing is missing before it."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(12)
        world.unreachable(60)
        if cut == "kill":
            await world.kill()
        await asyncio.sleep(60)
        world.inflict(Forget())
        if cut == "kill":
            world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(300)
        await world.check(Cause.MISSING_IN_REPLAY)

    play(story, rate=0.2, policy=Policy(zero=zero))


@pytest.mark.parametrize("zero", ["nothing", "everything"])
@pytest.mark.parametrize("trouble", ["no answer", "refused", "unreachable", "killed", "dropped"])
def test_a_first_start_asks_for_zero_until_all_that_it_replays_has_come(zero: Zero, trouble: str) -> None:
    async def story(world: World) -> None:
        match trouble:
            case "no answer":
                world.network.answers_lost = 1
            case "refused":
                world.inflict(Refuse(count=3))
            case "unreachable":
                world.unreachable(120)
        world.start()
        if trouble in ("killed", "dropped"):
            await asyncio.sleep(5)
            if trouble == "dropped":
                world.inflict(Drop())
            else:
                await world.kill()
                await asyncio.sleep(120)
                world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(600)
        first, *_ = world.kafka.checkpoints
        await world.check(since=_since(zero) if zero == "everything" else first.revision)
        *zeros, last = [attempt.revision for attempt in world.provider.attempts]
        assert last == first.revision  # if 0 replays nothing, the rest is still to come
        assert set(zeros) == {0}
        assert not world.last.starting

    play(story, rate=0.4, history=HOUR / 2, policy=Policy(zero=zero, replay_rate=5))


@pytest.mark.parametrize("zero", ["nothing", "everything"])
def test_a_first_start_that_dies_at_any_moment_after_a_refusal(zero: Zero) -> None:
    async def story(world: World) -> None:
        world.inflict(Refuse(count=1))
        for lived in (2, 40, 30, 1, 20, 60):
            world.start()
            await asyncio.sleep(lived)
            await world.kill()
        world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(600)
        await world.check(since=_since(zero))

    play(story, rate=0.4, history=HOUR / 2, policy=Policy(zero=zero, replay_rate=30))


@in_world(rate=0.2, history=3 * HOUR, feed={"start": "2h"}, policy=Policy(replay_rate=5))
async def test_a_first_start_from_an_age_has_everything_since(world: World) -> None:
    for _ in range(5):
        world.start()
        await asyncio.sleep(60)
        await world.kill()
    world.start()
    assert await world.check() >= 2 * HOUR * 0.2
    assert world.provider.attempts[0].revision == EPOCH - 2 * HOUR


@pytest.mark.parametrize(("other", "committed"), [("before", 0), ("meanwhile", 1)])
@in_world(rate=0.5)
async def test_a_feed_on_the_topics_of_another_never_connects(
    world: World, other: Literal["before", "meanwhile"], committed: int
) -> None:
    world.other_feed = other
    world.start()
    assert isinstance(await world.ended(), TopologyError)
    assert world.status.state is State.STOPPED
    assert world.provider.attempts == []
    assert world.kafka.transactions == committed


@in_world(rate=0.5)
async def test_a_feed_that_goes_on_asks_for_no_other_that_has_begun(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    world.other_feed = "meanwhile"
    world.unreachable(60)
    await asyncio.sleep(100)
    await world.check()


@in_world(rate=0.5)
async def test_a_feed_that_has_not_been_connected_yet_looks_again(world: World) -> None:
    world.unreachable(HOUR)
    world.start()
    await world.until(State.BACKING_OFF)
    world.other_feed = "meanwhile"
    assert isinstance(await world.ended(), TopologyError)
    assert all(attempt.since is None for attempt in world.provider.attempts)


@in_world(rate=0.5)
async def test_a_cluster_without_a_checkpoint_is_no_first_start_for_who_has_committed_one(
    world: World,
) -> None:
    world.start()
    await world.until(State.LIVE)
    assert world.owner is not None
    world.committed = world.owner.committed
    await world.kill()
    world.kafka, attempts = Kafka(world.kafka.topics), len(world.provider.attempts)
    world.start()
    error = await world.ended()
    assert isinstance(error, TopologyError)
    assert "another cluster" in str(error)
    assert len(world.provider.attempts) == attempts

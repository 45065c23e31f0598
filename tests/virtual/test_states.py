"""Each reason why nothing is published is a state, which is committed with its details."""

from __future__ import annotations

import asyncio

import pytest

from bridge.errors import ClockError, NotOwner, Unconvertible
from bridge.records.checkpoint import State
from bridge_sandbox.provider.faults import ClockJump, Drop, Garbage, HalfOpen
from bridge_sandbox.provider.feed import Policy
from tests.virtual.world import EPOCH, HOUR, World, in_world, settled


@in_world()
async def test_the_states_of_an_ordinary_run(world: World) -> None:
    world.start()
    await asyncio.sleep(100)
    await world.stop()
    assert world.states == [State.CONNECTING, State.CATCHING_UP, State.LIVE, State.STOPPED]


@in_world()
async def test_a_wait_names_its_reason_and_its_end(world: World) -> None:
    world.start()
    await asyncio.sleep(400)
    for _ in range(6):
        world.inflict(Drop())
        await asyncio.sleep(20)
    waiting = world.last
    assert (waiting.state, waiting.reason) == (State.WAITING_FOR_LIMIT, "5 proper connection attempts in 5m")
    assert waiting.until is not None
    await world.until(State.LIVE)
    assert world.provider.attempts[-1].at == pytest.approx(waiting.until, abs=0.1)
    assert world.provider.attempts[-1].at - world.provider.attempts[-6].at == pytest.approx(302, abs=0.2)
    waits = [c for c in world.kafka.checkpoints if c.state in (State.BACKING_OFF, State.WAITING_FOR_LIMIT)]
    assert {(c.state, c.reason) for c in waits} == {
        (State.BACKING_OFF, "close code 1001"),
        (State.WAITING_FOR_LIMIT, "5 proper connection attempts in 5m"),
    }
    assert all(c.until is not None and c.until > c.updated_at for c in waits)


@in_world(rate=0.1)
async def test_a_half_open_socket_is_closed_after_a_minute_of_silence(world: World) -> None:
    world.start()
    await asyncio.sleep(300.5)
    world.inflict(HalfOpen(seconds=HOUR))
    await asyncio.sleep(59)
    assert world.last.state is State.LIVE
    await asyncio.sleep(1)
    half_open = next(c for c in world.kafka.checkpoints if c.state is State.IDLE_TIMEOUT)
    assert half_open.updated_at == pytest.approx(EPOCH + 360, abs=0.5)
    await world.check()


@in_world(rate=0.005)
async def test_a_feed_that_only_pings_is_quiet(world: World) -> None:
    world.start()
    await world.until(State.QUIET, within=HOUR)
    last = await world.until(State.LIVE, within=HOUR)
    assert last.counters.received > last.counters.pings


@in_world(rate=0.2, policy=Policy(replay_rate=1))
async def test_catch_up_reports_its_progress(world: World) -> None:
    world.start()
    await asyncio.sleep(300)
    await world.kill()
    await asyncio.sleep(HOUR)
    world.start()
    await asyncio.sleep(120)
    last = world.last
    assert last.state is State.CATCHING_UP
    progress = last.catch_up
    assert progress is not None
    assert progress.position is not None
    assert progress.position == pytest.approx(last.newest, abs=10)
    assert progress.rate == pytest.approx(1.1, abs=0.1)  # a ping each ten seconds among them
    assert progress.remaining is not None
    live = await world.until(State.LIVE)
    assert live.updated_at - last.updated_at == pytest.approx(progress.remaining, rel=0.15)
    assert live.catch_up is None


@in_world()
async def test_leadership_that_is_lost_ends_the_term(world: World) -> None:
    world.start()
    await asyncio.sleep(60)
    before = world.kafka.transactions
    world.lose_leadership()
    assert isinstance(await world.ended(), NotOwner)
    assert world.kafka.transactions == before
    assert world.provider.active is None


@in_world()
async def test_leadership_lost_while_connecting_ends_the_attempt(world: World) -> None:
    world.network.back = 5.0
    world.start()
    await world.until(State.CONNECTING)
    await asyncio.sleep(1)
    assert world.provider.active is not None
    world.lose_leadership()
    assert isinstance(await world.ended(), NotOwner)
    assert world.provider.active is None


@pytest.mark.parametrize("away", [0, 2.5, HOUR])
@in_world()
async def test_the_error_that_ends_a_process_is_its_last_state(world: World, away: float) -> None:
    world.start()
    await asyncio.sleep(HOUR)
    world.inflict(ClockJump(by=HOUR))
    world.inflict(Drop())
    await world.entered(State.STOPPED, lambda: world.kafka.away(away))
    began = world.clock().monotonic
    error = await world.ended()
    assert isinstance(error, ClockError)
    assert world.clock().monotonic - began < 60
    assert world.status.state is State.STOPPED
    if away < HOUR:
        assert (world.last.state, world.last.reason) == (State.STOPPED, str(error))


@in_world(rate=20.0)
async def test_counters_of_the_metrics_never_go_back(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    world.kafka.away(8)
    await asyncio.sleep(6)
    assert world.owner is not None
    before = world.owner.seen()
    assert before.delivery.batch_records > 50
    await world.kill()
    world.unreachable(60)
    world.start()
    await asyncio.sleep(30)
    after = world.owner.seen()
    assert 0 < before.intake.counters.published <= after.intake.counters.published


async def unconvertible(world: World, count: int, pause: float = 1.0) -> None:
    """Let the provider send messages that cannot be converted, and pings, but no bet."""
    for _ in range(count):
        world.inflict(Garbage())
        await asyncio.sleep(pause)


def unconverted(world: World) -> str:
    assert world.owner is not None
    return str(world.owner.seen().intake.unconverted)


@in_world(rate=1 / HOUR)
async def test_a_provider_of_which_nothing_can_be_converted_is_told_of(world: World) -> None:
    world.start()
    await asyncio.sleep(600)
    await unconvertible(world, 95)
    assert unconverted(world) == ""
    await unconvertible(world, 10)
    assert unconverted(world) == "nothing that came since 2026-09-21T14:23:20Z could be converted"
    world.inflict(Drop())  # the replay repeats a bet, which says nothing about what is new
    await unconvertible(world, 50)
    assert (unconverted(world), len(world.provider.attempts)) != ("", 1)
    world.inflict(Garbage(body=settled(1, world.feed.moment()).decode()))
    await asyncio.sleep(2)
    assert unconverted(world) == ""


@in_world(rate=1 / HOUR)
async def test_a_burst_of_dead_letters_or_a_few_of_them_are_no_reason(world: World) -> None:
    world.start()
    await asyncio.sleep(600)
    world.inflict(Garbage(count=5000))
    await asyncio.sleep(1200)
    assert unconverted(world) == ""
    world.inflict(Garbage(body=settled(1, world.feed.moment()).decode()))
    await unconvertible(world, 99, 20)
    await asyncio.sleep(20)
    assert unconverted(world) == ""


@in_world(rate=1 / HOUR)
async def test_a_provider_of_which_nothing_can_be_converted_may_end_the_bridge(world: World) -> None:
    world.start(on_unconverted="stop", start="1h")
    await asyncio.sleep(600)
    for _ in range(2):
        await unconvertible(world, 105)
        error = await world.ended()
        assert isinstance(error, Unconvertible)
        assert (world.last.state, world.last.reason) == (State.STOPPED, str(error))
        world.start()
    await world.check()

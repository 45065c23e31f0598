"""Pauses, stalls, bursts and wrong settlementTimes, which make a feed look nearer to now than it is."""

from __future__ import annotations

import asyncio
from math import inf

import pytest

from bridge.records.checkpoint import State
from bridge_sandbox.provider.faults import Drop, Garbage, Pause, Slow
from bridge_sandbox.provider.feed import Policy
from tests.virtual.world import EPOCH, HOUR, World, in_world, settled

SLOW = Policy(replay_rate=1)


@pytest.mark.parametrize("cut", ["kill", "drop"])
@pytest.mark.parametrize("after", [30, 700])
@in_world(rate=0.2, policy=SLOW)
async def test_a_provider_that_pauses_in_a_replay_and_pings(world: World, cut: str, after: float) -> None:
    world.start()
    await asyncio.sleep(300)
    await world.kill()
    await asyncio.sleep(HOUR)
    world.start()
    await asyncio.sleep(120)
    assert world.last.state is State.CATCHING_UP
    world.inflict(Pause(seconds=600))
    await asyncio.sleep(after)
    assert world.last.state is State.CATCHING_UP
    if cut == "drop":
        world.inflict(Drop())
    else:
        await world.kill()
        world.start()
    await world.check()


@pytest.mark.parametrize("after", [5, 601, 660])
@in_world(rate=1, max_records=10)
async def test_a_bridge_that_cannot_write_for_ten_minutes_while_live(world: World, after: float) -> None:
    world.start()
    await asyncio.sleep(300)
    world.kafka.away(600)
    await asyncio.sleep(after)
    await world.kill()
    await asyncio.sleep(5)
    world.start()
    await world.check()


@in_world(rate=1, max_records=10)
async def test_a_bridge_that_waits_for_kafka_reads_on_when_it_is_back(world: World) -> None:
    world.start()
    await asyncio.sleep(300)
    world.kafka.away(600)
    await asyncio.sleep(500)
    assert world.status.state is State.WAITING_FOR_KAFKA
    assert world.owner is not None
    assert world.owner.seen().intake.queue_messages > 0
    await asyncio.sleep(200)
    assert len(world.provider.attempts) == 1
    await world.check()


@pytest.mark.parametrize("kbytes", [1, 2])
@in_world(rate=1)
async def test_a_catch_up_under_a_quota(world: World, kbytes: int) -> None:
    world.start()
    await asyncio.sleep(300)
    world.unreachable(1500)
    await asyncio.sleep(1500)
    world.kafka.bytes_per_second = 1000 * kbytes
    await asyncio.sleep(200)
    reasons, commits = set[str](), world.kafka.transactions
    for _ in range(200):
        reasons.add(f"{world.status.state and world.status.state.value}: {world.status.reason}")
        await asyncio.sleep(1)
    assert world.kafka.transactions > commits + 5  # of 8 KiB at least: 8 s at this rate
    assert any(reason.startswith("CatchingUp: throttled by a quota of broker 1: ") for reason in reasons)
    assert not any(reason.startswith("WaitingForKafka") for reason in reasons)
    await world.kill()
    world.start()
    await asyncio.sleep(100)
    world.kafka.bytes_per_second = inf  # a process that ends waits three seconds for its last commit
    await world.check()


@in_world(rate=200 / 900, burst=200, max_records=50)
async def test_bursts(world: World) -> None:
    for _ in range(4):
        world.start()
        await asyncio.sleep(902)
        await world.kill()
        world.start()
        await asyncio.sleep(1)
        await world.kill()
    world.start()
    await world.check()


@in_world()
async def test_a_burst_and_then_silence(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    before = len(world.kafka.records("settlement.bets"))
    for number in range(120):
        world.inflict(Garbage(body=settled(number, world.feed.moment()).decode()))
    await asyncio.sleep(0.51)
    assert len(world.kafka.records("settlement.bets")) >= before + 120


@in_world(rate=0.2, policy=SLOW)
async def test_a_settlement_time_that_lies_near_now_in_a_replay(world: World) -> None:
    world.start()
    await asyncio.sleep(600)
    await world.kill()
    for number in range(30):
        at = world.feed.moment()
        for twin in range(2):
            body = settled(2 * number + twin, at + HOUR / 2)
            world.inflict(Garbage(body=body.decode()))
        await asyncio.sleep(60)
    for _ in range(6):
        world.start()
        await asyncio.sleep(world.random.uniform(60, 100))
        await world.kill()
    world.start()
    await world.check()


@in_world(rate=0.2)
async def test_late_resettlements(world: World) -> None:
    random = world.random
    for number in range(60):
        world.start()
        await asyncio.sleep(random.uniform(0, 60))
        settled_at = random.choice((world.feed.moment() - random.uniform(0, 5 * HOUR), EPOCH - 1e9))
        world.inflict(Garbage(body=settled(number, settled_at).decode()))
        await asyncio.sleep(random.uniform(0, 3))
        await world.kill()
    world.start()
    await world.check()


@in_world(rate=0.1)
async def test_a_bet_that_changes_to_and_fro(world: World) -> None:
    world.start()
    await asyncio.sleep(300)
    for number in range(12):
        this, that = (settled(number, world.feed.moment() - age).decode() for age in (1, 2))
        for body in (this, that, this):
            world.inflict(Garbage(body=body))
            await asyncio.sleep(world.random.uniform(0, 2))
        await world.kill()
        world.start()
        await asyncio.sleep(world.random.uniform(0, 100))
    await world.check()
    assert world.last.counters.corrections >= 12


@in_world(rate=0.2)
async def test_a_feed_that_falls_behind_while_live(world: World) -> None:
    world.start()
    await asyncio.sleep(300)
    world.inflict(Slow(per_second=0.1, seconds=HOUR / 2))
    for _ in range(3):
        await asyncio.sleep(500)
        await world.kill()
        world.start()
    await world.check()


@in_world(rate=0.1)
async def test_what_is_no_bet_is_among_the_dead_letters_once(world: World) -> None:
    for _ in range(10):
        world.start()
        await asyncio.sleep(60)
        world.inflict(Garbage(count=3))
        await asyncio.sleep(world.random.uniform(0, 2))
        await world.kill()
    world.start()
    await world.check()
    assert world.last.counters.dead_lettered >= 29

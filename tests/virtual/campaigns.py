"""Long random series of faults, drawn from the world's seed. `World.check` asserts the outcome."""

from __future__ import annotations

import asyncio

from bridge.records.checkpoint import State
from bridge.records.gap import Cause
from bridge_sandbox.provider.faults import Clear, Drop, Forget, Garbage, HalfOpen, Refuse, Slow, Stall
from tests.virtual.world import HOUR, World, settled

OUTAGES = (20.0, 300.0, HOUR, 6 * HOUR)
"""Most are shorter than the first of these seconds, a few longer than the last but one."""
LIVES = (0.05, 2.0, 90.0)
KINDS = ("drop", "abort", "half-open", "stall", "refuse", "lost handshake", "kafka away", "unreachable")


async def restarts(world: World, count: int) -> int:
    """Kill the process this many times at random moments, some between a commit and its answer.

    It has caught up before: until then older versions of a bet may come after newer ones, and are dropped.
    """
    random, scale = world.random, world.scale
    world.start()
    await world.until(State.LIVE)
    await world.kill()
    for _ in range(count):
        world.network.there = random.choice((0.02, 0.02, 8 / scale))
        world.start()
        await asyncio.sleep(random.uniform(0, random.choice(LIVES) / scale))
        if random.random() < 0.2:
            world.kafka.deaf = True
            await asyncio.sleep(random.uniform(0, 5))
        await world.kill()
        if random.random() < 0.2:
            world.kafka.away(random.uniform(0, 60 / scale))
        (longest,) = random.choices(OUTAGES, (100, 20, 3, 1))
        await asyncio.sleep(random.uniform(0, longest / scale))
    world.start()
    return await world.check()


async def disconnections(world: World, count: int, seconds: float) -> int:
    """Inflict faults of mixed kinds at random moments within these seconds."""
    random = world.random
    moments = sorted(random.uniform(0, seconds) for _ in range(count))
    world.start()
    for number, (before, moment) in enumerate(zip([0.0, *moments], moments, strict=False)):
        await asyncio.sleep(moment - before)
        _trouble(world, KINDS[number % len(KINDS)])
    await asyncio.sleep(seconds - moments[-1])
    return await world.check()


async def forgetful(world: World, seconds: float) -> int:
    """Let the provider forget what it has published at random moments, and connections and processes end."""
    random, loop = world.random, asyncio.get_running_loop()
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)  # what was lost before anything was known cannot be noticed
    end = loop.time() + seconds
    while loop.time() < end:
        await asyncio.sleep(random.choice((30, 300, 3000)) * random.random())
        if random.random() < 0.5:
            world.inflict(Forget())
            world.inflict(Drop())
            await asyncio.sleep(30 * random.random())
        match random.randrange(4):
            case 0 | 1:
                await (world.kill() if random.random() < 0.7 else world.stop())
                await asyncio.sleep(random.choice((1, 30, 900)) * random.random())
                world.start()
            case 2:
                world.inflict(Slow(per_second=random.uniform(0.2, 1), seconds=random.uniform(0, 600)))
            case _:
                _trouble(world, random.choice(("drop", "stall", "unreachable")))
    world.inflict(Clear())
    await world.reached(lambda: world.feed.caught_up, "not caught up")
    await asyncio.sleep(300)
    return await world.check(*[Cause.MISSING_IN_REPLAY] * len(world.kafka.gaps))


def _trouble(world: World, kind: str) -> None:
    random = world.random
    match kind:
        case "drop" | "abort":
            world.inflict(Drop(abort=kind == "abort"))
        case "half-open":
            world.inflict(HalfOpen(seconds=random.uniform(30, 300)))
        case "stall":
            world.inflict(Stall(seconds=random.uniform(5, 300)))
        case "refuse":
            world.inflict(Refuse(count=1, status=random.choice((429, 500, 503)), seconds=60))
            world.inflict(Drop())
        case "lost handshake":
            world.network.answers_lost = 1
            world.inflict(Drop())
        case "kafka away":
            world.kafka.away(random.uniform(1, 120))
        case _:
            world.unreachable(random.uniform(1, 120))


async def everything(world: World, seconds: float) -> int:
    """Inflict everything, once in two minutes on average: faults, kills, clock steps, bets out of order."""
    random, loop = world.random, asyncio.get_running_loop()
    end = loop.time() + seconds
    world.start()
    while loop.time() < end:
        await asyncio.sleep(random.uniform(0, 240))
        match random.randrange(8):
            case 0 | 1:
                await world.kill()
                await asyncio.sleep(random.uniform(0, 120))
                world.start()
            case 2:
                world.set_by = random.uniform(-5, 5)
            case 3:
                world.inflict(Garbage(count=3))
            case 4:
                number, moment = len(world.provider.log.injected), world.feed.moment()
                world.inflict(Garbage(body=settled(number, moment + random.uniform(-HOUR, HOUR)).decode()))
            case 5:
                world.inflict(Slow(per_second=random.uniform(0.01, 0.2), seconds=random.uniform(0, 600)))
            case _:
                _trouble(world, random.choice(KINDS))
    world.set_by = 0
    return await world.check()

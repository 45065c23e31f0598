"""LIMIT BROKEN. Rule broken: the limits are law; `decide` is asked for the attempt that is made.

`Dialler.connect` waits for the limiter with the position as it is, which asks for seconds. Then `_look_back` takes it
back to what is certain, hours ago, and the dial is made without asking the limiter for *that* recovery.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bridge.simulator.provider import Policy
from bridge.sink.batch import Record
from tests.virtual.kafka import CODECS
from tests.virtual.world import HOUR, World, play


def test_a_position_that_is_taken_back_is_let_in_anew() -> None:
    """Five large recoveries in ten minutes, then a checkpoint of a clock that was two hours ahead."""

    async def story(world: World) -> None:
        for _ in range(5):
            world.start()
            await asyncio.sleep(70)
            await world.kill()
        wrong = replace(world.last, revision=int(world.feed.moment() + 2 * HOUR))
        value = CODECS.checkpoints.encode(wrong.to_avro())
        world.kafka.append([Record(world.kafka.topics.checkpoints.name, b"f", value, 0, partition=0)])
        world.start()
        await asyncio.sleep(60)
        assert [breach.reason for breach in world.provider.breaches] == []

    play(story, rate=0.2, history=5 * HOUR, feed={"start": "4h"}, policy=Policy(replay_rate=1))

"""The examples that make rows, on a real broker: one for each selection, corrected by resettlements."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest

from bridge_sandbox.provider.server import Simulator
from examples.engines import check_of
from examples.truth import Truth
from tests.harness import Place, assert_exact, until
from tests.integration.engines import PROVIDER, Engine, abort, misnamed, publish_names

pytestmark = pytest.mark.long

ENGINES = ["kafka-streams", "kafkajs", "franz-go"]


@pytest.mark.parametrize("name", ENGINES)
async def test_the_rows_are_what_the_provider_sent(place: Place, name: str) -> None:
    with Engine(place, name) as early:
        assert await early.ended() == 1
        assert f"there is no topic {place.prefix}.bets" in early.text()
    async with Simulator(PROVIDER) as feed:
        bridge = await place.live(feed)
        assert_exact(await place.settled(feed, bridge))
        truth = Truth.of(feed)
        await publish_names(place, feed)
        await asyncio.to_thread(lambda: abort(place, misnamed(place)))
        with Engine(place, name, "--until-end") as engine:
            assert await engine.ended() == 0, engine.text()
        assert len(truth.last) < len(truth.bets) <= len(engine.rows())
        assert differences(engine, truth) == []

        long = next(bet for bet in truth.last.values() if len(bet.get("selections") or ()) > 2)
        changes = {"settlementVersion": long["settlementVersion"] + 1, "selections": long["selections"][:1]}
        again = {**long, **changes}
        feed.inject(json.dumps({"data": again}).encode())
        truth = replace(truth, bets=[*truth.bets, again])
        with Engine(place, name) as engine:
            await until(lambda: not differences(engine, truth), "the correction", so_far=engine.text, every=1)
            assert await engine.end() == 0, engine.text()
        assert await bridge.end() == 0
    assert [row["key"] for row in engine.rows() if row["value"] is None] == [
        f"{again['betId']}:{index}" for index in range(1, len(long["selections"]))
    ]


def differences(engine: Engine, truth: Truth) -> list[str]:
    """What is not yet, or never, as it should be."""
    return list(check_of(ENGINES[0]).differences(engine.rows(), truth))

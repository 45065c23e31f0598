"""A running bridge survives files that are missing for a moment, and loses nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bridge_sandbox.provider.faults import Drop
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Place, assert_exact


async def test_files_that_are_missing_during_reconnects(place: Place, tmp_path: Path) -> None:
    token, password = tmp_path / "token", tmp_path / "password"
    token.write_text("hush-of-the-feed")
    password.write_text("hush of the broker")  # which asks nobody for it
    settings = SimulatorSettings(port=0, rate=20, auth="bearer", auth_value="hush-of-the-feed")
    async with Simulator(settings) as feed:
        bridge = await place.live(
            feed,
            FEED__AUTH="bearer",
            FEED__AUTH_VALUE_FILE=str(token),
            KAFKA__SASL_PASSWORD_FILE=str(password),
            KAFKA__TRANSACTION_TIMEOUT_MS="10000",
            KAFKA__SESSION_TIMEOUT_MS="60000",
        )
        for file in (token, password):
            file.rename(file.with_suffix(".old"))
        await asyncio.to_thread(place.cluster.servers["kafka-1"].stop)
        await asyncio.sleep(14)  # the producer is fenced by then: another is made
        await asyncio.to_thread(place.cluster.restart, "kafka-1")
        await bridge.reaches("Live", 2)
        feed.inflict(Drop())
        await bridge.reaches("Live", 3)
        for file in (token, password):
            file.touch()
        feed.inflict(Drop())
        await bridge.reaches("Live", 4)
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
    assert "hush" not in bridge.text()

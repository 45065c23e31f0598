"""The connection over a socket is one, as far as the bridge relies on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bridge.config import FeedSettings
from bridge.feed.client import connect
from bridge_sandbox.provider.server import Simulator
from tests.contracts.feed import SIMULATED, FeedContract, Line


class TestSocket(FeedContract):
    """The suite."""

    @pytest.fixture
    async def line(self) -> AsyncIterator[Line]:
        simulator = Simulator(SIMULATED)
        gone = False

        async def cut_off() -> None:
            nonlocal gone
            gone = True
            await simulator.__aexit__()

        await simulator.__aenter__()
        settings = FeedSettings(base_url=simulator.url, proxy="none")
        provider = simulator._provider
        yield Line(
            provider,
            settings,
            connect,
            simulator.now,
            simulator.inflict,
            lambda: [str(reply) for reply in simulator.replies],
            cut_off,
        )
        if not gone:
            await simulator.__aexit__()

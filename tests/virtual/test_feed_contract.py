"""The connection without a socket is one, as far as the bridge relies on it."""

from __future__ import annotations

import asyncio

import pytest

from bridge import clock
from bridge.config import FeedSettings
from bridge_sandbox.provider.faults import Fault
from bridge_sandbox.provider.feed import Provider
from bridge_sandbox.provider.rate_limits import Limits
from tests.contracts.feed import SIMULATED, FeedContract, Line
from tests.virtual.feed import Feed, Network


class TestVirtualFeed(FeedContract):
    """The suite."""

    @pytest.fixture
    async def line(self) -> Line:
        epoch = clock.now().wall - asyncio.get_running_loop().time()
        provider = Provider(
            SIMULATED.stream(clock.now().wall - SIMULATED.history_seconds), Limits(1), SIMULATED
        )
        network = Network()
        feed = Feed(provider, network, clock.now, epoch)

        def inflict(fault: Fault) -> None:
            provider.inflict(fault, feed.moment())
            feed.poke()

        async def cut_off() -> None:
            network.down_until = float("inf")

        settings = FeedSettings(base_url="http://provider.example")
        return Line(provider, settings, feed.connect, feed.moment, inflict, lambda: feed.replies, cut_off)

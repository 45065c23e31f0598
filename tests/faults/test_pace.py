"""A Kafka that takes only so many bytes a second is not broken: the bridge goes on at its pace."""

from __future__ import annotations

from benchmarks.quota import limit
from bridge_sandbox.provider.server import Simulator
from bridge_sandbox.provider.settings import SimulatorSettings
from tests.harness import Place, assert_exact, until

BYTES_A_SECOND = 60_000
THROTTLED = "throttled by a quota of broker 1: "


async def test_a_catch_up_under_a_quota_goes_on(place: Place) -> None:
    """In transactions that Kafka takes in seconds; the state says who holds it up, and how fast it is.

    The backlog is many times what the quota lets through at once.
    """
    limit(place.cluster, place.prefix, BYTES_A_SECOND)
    settings = SimulatorSettings.model_validate({"port": 0, "rate": 20, "history_seconds": 150})
    try:
        async with Simulator(settings) as feed:
            bridge = place.bridge(FEED__BASE_URL=feed.url, KAFKA__CLIENT_ID=place.prefix)

            def throttled() -> bool:
                return any(THROTTLED in line.get("reason", "") for line in bridge.lines())

            await until(throttled, "throttled", so_far=bridge.text)
            assert_exact(await place.settled(feed, bridge))
            assert "WaitingForKafka" not in bridge.states()
            assert await bridge.end() == 0
    finally:
        limit(place.cluster, place.prefix, None)
    place.balanced_counters()

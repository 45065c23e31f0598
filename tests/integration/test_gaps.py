"""Gaps on a real Kafka: each is declared once, with its bounds, and `feed.on_gap` decides what follows."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any

from tests.harness import Place, assert_exact, simulate

DAY = 86_400


def four_days_ago() -> tuple[int, str]:
    """As Unix seconds, and as a setting."""
    moment = int(time.time()) - 4 * DAY
    return moment, datetime.fromtimestamp(moment, UTC).isoformat()


def gaps(place: Place) -> list[dict[str, Any]]:
    """The output of `bridge gaps --json`."""
    shown = place.run("gaps", "--json")
    assert shown.returncode == 0, shown.stderr
    found: list[dict[str, Any]] = json.loads(shown.stdout)
    return found


def unix(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


async def test_a_gap_stops_the_bridge_until_somebody_lets_it_go_on(place: Place) -> None:
    position, start = four_days_ago()
    async with simulate() as feed:
        for _ in range(2):
            bridge = place.bridge(FEED__BASE_URL=feed.url, FEED__START=start)
            assert await bridge.wait() == 5
            assert "a gap" in bridge.text()
            assert "BRIDGE_FEED__ON_GAP" in bridge.text()
            [gap] = gaps(place)
            assert (unix(gap["from"]), gap["cause"]) == (position, "TooOld")
            assert place.checkpoint()["state"] == "StoppedOnGap"
            assert unix(gap["to"]) == place.checkpoint()["revision"]
        assert feed.connections == []
        bridge = await place.live(feed, FEED__ON_GAP="continue")
        assert_exact(await place.settled(feed, bridge))
        shown: list[int] = []
        """Gaps on the page, the former owner's too."""

        async def look() -> None:
            while not shown or shown[-1] < 2:
                shown.append((await bridge.get("/")).text.count("<li>Gap of "))

        await asyncio.wait_for(look(), 60)
        assert await bridge.end() == 0
        # What was forgotten while it stood still is a gap of its own, which begins where that one ends.
        first, second = gaps(place)
        assert (first, second["from"]) == (gap, gap["to"])
        assert unix(second["to"]) == feed.connections[0].revision

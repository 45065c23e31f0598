"""Gaps on a real Kafka: each is declared once, with its bounds, and `feed.on_gap` decides what follows."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from typing import Any

from bridge_sandbox.provider.faults import Forget
from tests.harness import Place, assert_exact, simulate, until

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


async def test_a_gap_that_is_let_pass_goes_on_from_the_edge_of_memory(place: Place) -> None:
    position, start = four_days_ago()
    async with simulate(history_seconds=10) as feed:
        bridge = await place.live(feed, FEED__START=start, FEED__ON_GAP="continue")
        assert_exact(await place.settled(feed, bridge))
        assert await bridge.end() == 0
        [attempt] = feed.connections
        assert (attempt.kind, feed.breaches) == ("large", [])
    [gap] = gaps(place)
    assert (unix(gap["from"]), unix(gap["to"])) == (position, attempt.revision)
    assert (gap["feed"], gap["cause"]) == ("settlement-v4", "TooOld")
    assert 0 <= unix(gap["to"]) - (attempt.at - 3 * DAY) < 40
    assert '"on_gap":"continue"' in bridge.text()


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


async def test_a_provider_that_forgets_in_silence_is_found_out(place: Place) -> None:
    async with simulate(history_seconds=10) as feed:
        bridge = await place.live(feed)
        await until(lambda: place.checkpoint()["newestSettlement"] is not None, "a commit")
        bridge.kill()
        before = place.checkpoint()
        feed.inflict(Forget())
        again = place.bridge(FEED__BASE_URL=feed.url)
        assert await again.wait() == 5
        assert not feed.breaches
    [gap] = gaps(place)
    assert (unix(gap["from"]), gap["cause"]) == (before["revision"], "MissingInReplay")
    assert unix(gap["to"]) >= unix(before["newestSettlement"])

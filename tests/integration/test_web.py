"""Health and metrics of a running bridge, and the state that it commits."""

from __future__ import annotations

import asyncio

from bridge.config import RegistrySettings
from bridge.registry import Registry
from tests.fake_registry import FakeRegistry, served
from tests.harness import Place, simulate, until


def metric(text: str, name: str) -> float:
    """Return the value of a series."""
    [line] = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return float(line.rpartition(" ")[2])


async def test_owner_and_standby_are_healthy_and_ready(place: Place) -> None:
    async with simulate(history_seconds=5, ping_seconds=0.5) as feed:
        owner = await place.live(feed, WEB__SHOW_BETS="true")
        standby = place.bridge(FEED__BASE_URL=feed.url)
        await standby.reaches("Standby")
        await asyncio.sleep(1.5)  # the status snapshot is renewed every second
        for bridge, state in ((owner, "Live"), (standby, "Standby")):
            for path in ("/healthz", "/readyz"):
                answer = await bridge.get(path)
                assert (answer.status_code, answer.json()["state"]) == (200, state), answer.text
        assert [place.checkpoint()[name] for name in ("owners", "standbys")] == [["127.0.0.1"], 1]
        shown = (await owner.get("/metrics")).text
        assert metric(shown, 'bridge_state{feed="settlement-v4",state="Live"}') == 1
        assert metric(shown, 'bridge_messages_total{feed="settlement-v4",outcome="published"}') > 50
        assert metric(shown, 'bridge_connections_total{feed="settlement-v4",result="accepted"}') == 1
        assert 'outcome="published"' not in (await standby.get("/metrics")).text
        for _ in range(60):  # an owner looks every ten seconds who stands by
            page = (await owner.get("/")).text
            if "stands by" in page:
                break
            await asyncio.sleep(1)
        assert "stands by" in page
        assert "messages a second" in page
        assert page.count('<span class="small">settled ') == 10
        assert "Standing by" in (await standby.get("/")).text
        assert await owner.end() == 0
        await standby.reaches("Live")
        assert await standby.end() == 0


async def test_a_load_balancer_without_its_registry_is_waited_for(place: Place) -> None:
    fake = FakeRegistry()
    with served(fake) as url:
        Registry(RegistrySettings(url=url)).register(place.prefix)
        fake.refusal = lambda method, path: (404, b"<html>no backend</html>")
        bridge = place.bridge(FEED__BASE_URL="http://127.0.0.1:1", REGISTRY__URL=url)
        await bridge.reaches("WaitingForKafka")
        assert f"{url} answers" in bridge.text()
        assert "HTTP 404 and no JSON" in bridge.text()
        read_only = (422, {"error_code": 42205, "message": "read-only mode"})
        fake.refusal = lambda method, path: read_only if "/versions" in path and method == "POST" else None
        ready = {"Standby", "Connecting"}  # a bridge may own the feed before it looks whom it stands by for
        await until(lambda: bool(ready.intersection(bridge.states())), "ready", so_far=bridge.text)
        assert await bridge.end() == 0

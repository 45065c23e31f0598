"""Two feeds on one prefix: the second is refused before it connects. One that is over can be retired."""

from __future__ import annotations

import asyncio
import json

import pytest

from bridge_sandbox.provider.server import Simulator
from tests.harness import Place, assert_exact, simulate, until
from tests.integration.publishing import prepared


def feed() -> Simulator:
    """Return a provider; all of them have the same betIds, as two brands of one sportsbook may."""
    return simulate(rate=10, history_seconds=60)


def settings(name: str, provider: Simulator) -> dict[str, str]:
    return {"FEED__NAME": name, "FEED__BASE_URL": provider.url}


async def test_a_second_feed_is_refused_before_it_connects(place: Place) -> None:
    async with feed() as one, feed() as two:
        first = place.bridge(**settings("one", one))
        await first.reaches("Live")
        second = place.bridge(**settings("two", two))
        await until(lambda: second.process.poll() is not None or "Live" in second.states(), "refused")
        if second.process.poll() is None:
            await asyncio.sleep(2)
            shown = place.run("checkpoint", "show", "--json", **settings("two", two))
            raise AssertionError(f"it is live: {json.loads(shown.stdout)['counters']}")
        assert (await second.wait(), two.connections) == (6, [])
        last = second.text().splitlines()[-1]
        for words in ("the feed one", f"{place.prefix}.", "BRIDGE_TOPICS__PREFIX", "checkpoint retire one"):
            assert words in second.text(), last
        redrive = await place.ran("deadletters", "redrive", **settings("two", two))
        assert redrive.returncode == 6, redrive.stderr
        assert "the feed one" in redrive.stderr
        assert_exact(await place.settled(one, first))


async def test_of_two_that_start_together_one_goes_on(place: Place) -> None:
    async with feed() as one, feed() as two:
        await asyncio.to_thread(prepared, place)
        bridges = {
            name: place.bridge(**settings(name, provider)) for name, provider in (("one", one), ("two", two))
        }
        await until(lambda: any(b.process.poll() is not None for b in bridges.values()), "one refused")
        [left] = [name for name, bridge in bridges.items() if bridge.process.poll() is None]
        [gone] = bridges.keys() - {left}
        providers = {"one": one, "two": two}
        assert await bridges[gone].wait() == 6
        assert providers[gone].connections == []
        await bridges[left].reaches("Live")
        # Nor does the one that lost come later, nor is the other held up by what it has written.
        again = place.bridge(**settings(gone, providers[gone]))
        assert await again.wait() == 6
        assert await bridges[left].end() == 0
        bridge = place.bridge(**settings(left, providers[left]))
        await bridge.reaches("Live")
        assert_exact(await place.settled(providers[left], bridge))


@pytest.mark.long
async def test_a_feed_with_a_new_name_goes_on_where_the_old_one_ended(place: Place) -> None:
    async with feed() as provider:
        old, new = settings("old", provider), settings("new", provider)
        bridge = place.bridge(**old)
        await bridge.reaches("Live")
        retire = ("checkpoint", "retire", "old", "--yes", "--json")
        busy = await place.ran(*retire, **new)
        assert busy.returncode == 1
        assert "the feed old is not free" in busy.stderr
        assert await bridge.end() == 0
        refused = place.bridge(**new)
        assert await refused.wait() == 6
        ran = await place.ran(*retire, **new)
        assert ran.returncode == 0, ran.stderr
        before, after = (
            json.loads(place.run("checkpoint", "show", "--json", FEED__NAME=name).stdout)
            for name in ("old", "new")
        )
        assert before["reason"].startswith("retired by ")
        assert [after[n] for n in ("revision", "connections", "newestSettlement")] == [
            before[n] for n in ("revision", "connections", "newestSettlement")
        ]
        assert set(after["counters"].values()) == {0}
        bridge = place.bridge(**new)
        await bridge.reaches("Live")
        returned = place.bridge(**old)
        assert await returned.wait() == 6
        assert_exact(await place.settled(provider, bridge))
        assert await bridge.end() == 0
        audited = await place.ran("audit")
        assert audited.returncode == 0, audited.stdout
        twice = await place.ran(*retire, **new)
        assert twice.returncode == 1
        assert "the feed old has already been retired" in twice.stderr
        unknown = await place.ran("checkpoint", "retire", "typo", "--yes", FEED__NAME="new")
        assert unknown.returncode == 1
        assert "no checkpoint of a feed typo" in unknown.stderr
        last = json.loads(place.run("checkpoint", "show", "--json", FEED__NAME="new").stdout)
        back = await place.ran("checkpoint", "retire", "new", "--yes", "--json", **old)
        assert back.returncode == 0, back.stderr
        goes_on = json.loads(place.run("checkpoint", "show", "--json", FEED__NAME="old").stdout)
        assert [goes_on[n] for n in ("revision", "connections")] == [
            last[n] for n in ("revision", "connections")
        ]
        assert goes_on["counters"] == before["counters"]
        audited = await place.ran("audit")
        assert audited.returncode == 0, audited.stdout
        assert not provider.breaches

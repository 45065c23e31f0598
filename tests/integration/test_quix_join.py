"""The example that joins settled bets with their names by Quix Streams, from the topics alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bridge_sandbox.provider.server import Simulator
from examples.engines import check_of, module_of
from examples.truth import Truth
from tests.harness import Place, assert_exact, until
from tests.integration.engines import PROVIDER, Engine, abort, misnamed, publish_names, set_up

pytestmark = pytest.mark.long

NEW_NAME = "Another sport"
QUIX = "quix-join"


async def test_every_bet_comes_with_its_names_in_every_language(place: Place) -> None:
    await asyncio.to_thread(set_up, QUIX)
    with Engine(place, QUIX) as early:
        assert await early.ended(60) == 1
        assert f"there is no topic {place.prefix}.bets" in early.text()
        assert f"{place.prefix}.bets" not in place.admin().list_topics(timeout=10).topics
    async with Simulator(PROVIDER) as feed:
        bridge = await place.live(feed)
        await publish_names(place, feed)
        before = Truth.of(feed)
        await asyncio.to_thread(lambda: abort(place, misnamed(place)))
        with Engine(place, QUIX) as join:
            await until(lambda: len(join.rows()) > 500, "500 bets")
            early_count = len(join.rows())
            feed.rest.catalogue.rename("sport", 1, NEW_NAME)
            await publish_names(place, feed)
            changed_at = feed.now()
            await asyncio.sleep(4)
            assert_exact(await place.settled(feed, bridge))
            assert await bridge.end() == 0
            published = [message for message in feed.published() if message.bet_id is not None]
            await until(lambda: len(join.rows()) >= len(published), "all bets", so_far=join.text)
            assert await join.end() == 0, join.text()
        after = Truth.of(feed)
    rows = join.rows()
    assert len({key(row) for row in rows}) == len(rows) == len(published)

    compared, expected = (getattr(module_of(QUIX, "check"), name) for name in ("compared", "expected"))
    renamed, corrections = 0, 0
    lines = {key(row): compared(row) for row in rows}
    previous: dict[str, dict[str, Any]] = {}
    early_ones = {key(row) for row in rows[:early_count]}
    for message, bet in zip(published, after.bets, strict=True):
        corrects = previous.get(bet["betId"])
        old, new = ({**expected(bet, truth), "corrects": corrects} for truth in (before, after))
        if key(old) in early_ones:
            assert lines[key(old)] == old
        elif message.at > changed_at + 1:
            assert lines[key(old)] == new
            renamed += old != new
        else:
            assert lines[key(old)] in (old, new)
        corrections += corrects is not None
        previous[bet["betId"]] = {
            name: old[name] for name in ("settlementVersion", "betSettlement", "payout")
        }
    assert renamed > 10
    assert corrections > 10
    assert any(item["parts"] for line in lines.values() for item in line["selections"])


def key(row: dict[str, Any]) -> tuple[str, int]:
    """Which settlement of which bet it is."""
    return row["betId"], row["settlementVersion"]


async def test_it_ends_at_the_end_with_what_the_provider_sent(place: Place) -> None:
    await asyncio.to_thread(set_up, QUIX)
    async with Simulator(PROVIDER) as feed:
        bridge = place.bridge(FEED__BASE_URL=feed.url)
        await publish_names(place, feed)
        assert_exact(await place.settled(feed, bridge))
        await publish_names(place, feed)
        assert await bridge.end() == 0
        truth = Truth.of(feed)
    with Engine(place, QUIX, "--until-end") as join:
        assert await join.ended() == 0, join.text()
    rows = join.rows()
    assert list(check_of(QUIX).differences(rows, truth)) == []
    assert list(check_of(QUIX).differences(rows[1:], truth)) != []
    with Engine(place, QUIX, "--until-end") as again:
        assert await again.ended() == 0, again.text()
    assert again.rows() == []

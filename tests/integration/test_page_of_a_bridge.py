"""The status page of a running bridge, in headless Chromium: what the process knows reaches the browser."""

from __future__ import annotations

import asyncio

import pytest

from bridge_sandbox.provider.faults import Drop, Garbage, Refuse
from tests.browser import Tab, browser
from tests.harness import Place, simulate


def says(identifier: str, text: str) -> str:
    return f"document.getElementById('{identifier}').innerText.includes('{text}')"


async def waits(tab: Tab, condition: str) -> None:
    await asyncio.to_thread(tab.wait, condition)


@pytest.mark.long
async def test_the_page_follows_a_bridge_from_live_to_refused_to_gone(place: Place) -> None:
    with browser() as tab:
        async with simulate() as feed:
            bridge = await place.live(feed, WEB__SHOW_BETS="true")
            await asyncio.to_thread(tab.open, bridge.address() or "")
            await waits(tab, says("state", "Live"))
            await waits(tab, "document.querySelector('#bets li b')")
            shown = await asyncio.to_thread(tab.evaluate, "document.getElementById('bets').innerText")
            assert any(m.bet_id and m.bet_id in shown for m in feed.truth().until(feed.now()))
            feed.inflict(Garbage(count=3))
            await waits(tab, says("notices", "3 messages"))
            feed.inflict(Refuse(count=9, status=429))
            feed.inflict(Drop())
            await waits(tab, says("why", "429"))
            bridge.kill()
            await waits(tab, says("lost", "No word from this process since"))
            assert [message for message in tab.messages if "ERR_" not in message] == []

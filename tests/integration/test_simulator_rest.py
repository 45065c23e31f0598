"""The REST side of the simulated provider on a loopback socket, asked by a plain HTTP client."""

from __future__ import annotations

import asyncio
import time
from email.utils import parsedate_to_datetime
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect

from bridge.sandbox.provider.rest.faults import RestFault
from bridge.sandbox.provider.rest.settings import RestPolicy
from bridge.sandbox.provider.server import PATH, Simulator
from bridge.sandbox.provider.settings import SimulatorSettings

SPORTS = "/api/translations/sv/sports"


def simulator(**changes: Any) -> Simulator:
    api = RestPolicy(rate=100_000, burst=100_000)
    return Simulator(SimulatorSettings(**{"port": 0, "rate": 200, "api": api, **changes}))


def client(provider: Simulator, **options: Any) -> httpx2.AsyncClient:
    token = provider.rest.tokens.mint(provider.clock())
    return httpx2.AsyncClient(
        base_url=provider.url, headers={"Authorization": f"Bearer {token}"}, trust_env=False, **options
    )


async def test_the_feed_goes_on_beside_it() -> None:
    """Both are served on one port, and requests neither end the feed's connection nor count as one."""
    async with (
        asyncio.timeout(10),
        simulator() as provider,
        client(provider) as http,
        # With its queue full a client would wait long for the provider's half of the close.
        connect(f"{provider.url.replace('http', 'ws', 1)}{PATH}", proxy=None, max_queue=None) as feed,
    ):
        await feed.recv()
        found = await asyncio.gather(*(http.get(SPORTS) for _ in range(20)))
        await feed.recv()
    assert {answer.status_code for answer in found} == {200}
    assert [attempt.status for attempt in provider.connections] == [101]


async def test_a_refusal_has_status_headers_and_the_providers_time() -> None:
    """401 without a token, 429 with Retry-After, 404 elsewhere, each dated by the provider's clock."""
    api = RestPolicy(rate=0.01, burst=1)
    async with simulator(api=api, clock_skew_seconds=7200) as provider, client(provider) as http:
        answers = [
            await http.get(SPORTS, headers={"Authorization": "Bearer x"}),
            await http.get(SPORTS),
            await http.get(SPORTS),
            await http.get("/api/nothing"),
        ]
    assert [answer.status_code for answer in answers] == [401, 200, 429, 404]
    assert [answer.reason_phrase for answer in answers[1:3]] == ["OK", "Too Many Requests"]
    assert 90 <= int(answers[2].headers["Retry-After"]) <= 100
    assert answers[0].json()["status"] == 401
    for answer in answers:
        moment = parsedate_to_datetime(answer.headers["Date"]).timestamp()
        assert moment == pytest.approx(time.time() + 7200, abs=5)


async def test_faults_reach_the_client() -> None:
    """A redirect, HTML and half an answer arrive as such; a late one makes the client give up."""
    async with simulator() as provider, client(provider, timeout=0.2) as http:
        elsewhere = {"Location": "https://elsewhere.example/"}
        provider.rest.faults.inject(RestFault(nth=1, status=307, headers=elsewhere))
        provider.rest.faults.inject(
            RestFault(nth=2, status=502, body="<p>å", headers={"Content-Type": "text/html"})
        )
        provider.rest.faults.inject(RestFault(nth=3, truncate=True))
        provider.rest.faults.inject(RestFault(nth=4, delay=0.5))
        redirect, html, half = [await http.get(SPORTS) for _ in range(3)]
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(SPORTS)
        last = await http.get(SPORTS)
    assert (redirect.status_code, redirect.headers["Location"]) == (307, elsewhere["Location"])
    assert (html.status_code, html.headers["Content-Type"], html.content) == (
        502,
        "text/html",
        "<p>å".encode(),
    )
    assert half.content == last.content[: len(last.content) // 2]
    assert [(exchange.status, exchange.fault) for exchange in provider.rest.requests] == [
        (307, True),
        (502, True),
        (200, True),
        (200, True),
        (200, False),
    ]


async def test_two_authorization_headers_are_none() -> None:
    """Which of them would count is anybody's guess, so neither does."""
    async with simulator() as provider, client(provider) as http:
        good = http.headers["Authorization"]
        answer = await http.get(SPORTS, headers=[("Authorization", good), ("Authorization", good)])
    assert answer.status_code == 401

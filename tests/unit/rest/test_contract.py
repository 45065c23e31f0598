"""The simulated provider and the independent one answer the client, and the memory answers like it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from bridge.clock import Instant
from bridge.rest.client import Client
from bridge.rest.endpoints import Request
from bridge.snapshots.asking import Asks
from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.rest.routes import route
from bridge_sandbox.provider.rest.tokens import Tokens
from bridge_sandbox.provider.world.currencies import ACTIVE, UNLISTED
from tests.contracts.rest import Known, Q, RestContract, Side
from tests.integration import independent
from tests.unit.snapshots.provider import api
from tests.unit.snapshots.world import NOW, WORLD, Provider

BURST = 60
EVENT = WORLD.events[0]


class Memory(Side):
    """The simulated provider without the client."""

    known = Known(
        EVENT.id,
        {
            "sport": [EVENT.league.sport.id],
            "region": [EVENT.league.region.id],
            "league": [EVENT.league.id],
            "competitor": [competitor.id for competitor in EVENT.competitors],
        },
        {market.id: (market.type, [*market.selections]) for market in EVENT.markets},
        {str(it.symbol): (it.type, it.precision) for it in ACTIVE},
        UNLISTED,
    )

    def __init__(self) -> None:
        self.provider = Provider(rate=0.1, burst=BURST)
        self.rest = self.provider.rest
        self.names = {key.decode(): texts for key, texts in self.provider.truth().items()}
        self.asks: Asks = self.provider

    def take_right(self, request: Request[Any]) -> None:
        if found := route(request.target.partition("?")[0]):
            self.rest.policy = self.rest.policy.model_copy(update={"forbidden": {found.endpoint}})

    def exhaust(self) -> None:
        for _ in range(BURST):
            self.rest.answer(self.provider.now, Q.listed("sport", "en").target, self.provider.authorization)

    def wait(self, seconds: float) -> None:
        self.provider.now += seconds

    def revoke(self) -> None:
        self.rest.tokens = Tokens("another key of many characters")

    def cut(self) -> None:
        self.rest.faults.inject(RestFault(truncate=True))


Handler = Callable[[httpx2.Request], httpx2.Response]


def client(side: Side, handler: Handler, now: Callable[[], float], token: str, attempts: int) -> Client:
    """A client whose waits pass at once."""

    async def sleep(seconds: float) -> None:
        side.wait(seconds)

    settings = api(token=SecretStr(token), attempts=attempts, requests_per_second=10_000.0)
    return Client(settings, lambda: Instant(now(), now()), sleep, httpx2.MockTransport(handler))


class Simulated(Memory):
    """The simulated provider, and the client."""

    def __init__(self, attempts: int = 1) -> None:
        super().__init__()
        token = self.provider.authorization.removeprefix("Bearer ")
        self.asks = client(self, self._answer, lambda: self.provider.now, token, attempts)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        target, token = request.url.raw_path.decode(), request.headers["Authorization"]
        answer = self.rest.answer(self.provider.now, target, token)
        return httpx2.Response(answer.status, content=answer.body, headers=answer.headers)


class Independent(Side):
    """The provider of `tests.integration`, and the client."""

    def __init__(self) -> None:
        truth = independent.Truth.of()
        self.names = {key: record["translations"] for key, record in truth.translations().items()}
        self.provider = independent.Provider(truth)
        self._now, self._is_valid, self._parts = NOW, True, 1
        self.asks = client(self, self._answer, lambda: self._now, independent.TOKEN, 1)
        event = truth.events[5]
        within = {"sport": [event.sport], "region": [event.region], "league": [event.league]}
        self.known = Known(
            5,
            {**within, "competitor": event.competitors},  # type: ignore[dict-item]
            {n: (market.type, [*market.selections]) for n, market in event.markets.items()},
            truth.currencies,
            truth.precisions,
        )

    def take_right(self, request: Request[Any]) -> None:
        self.provider.wrong = [independent.Wrong(403, request.endpoint)]

    def exhaust(self) -> None:
        self.provider.wrong = [independent.Wrong(429, it, times=1) for it in independent.ENDPOINTS]

    def wait(self, seconds: float) -> None:
        self._now += seconds

    def revoke(self) -> None:
        self._is_valid = False

    def cut(self) -> None:
        self._parts = 2

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        token = request.headers["Authorization"] if self._is_valid else None
        status, body = self.provider.answer(request.url.raw_path.decode(), token)
        parts, self._parts = self._parts, 1
        return httpx2.Response(status, content=body[: len(body) // parts])


@pytest.mark.parametrize("make", [Memory, Simulated, Independent])
class TestEach(RestContract):
    """The suite."""

    @pytest.fixture
    def side(self, make: Callable[[], Side]) -> Side:
        return make()


async def test_the_client_waits_as_long_as_the_provider_says() -> None:
    side = Simulated(attempts=2)
    side.exhaust()
    assert await side.ask(Q.event(EVENT.id))
    assert [exchange.status for exchange in side.rest.requests][BURST:] == [429, 200]
    assert 10 <= side.provider.now - NOW < 13

"""Every invalid answer of the provider: what fails because of it, and what is reported.

The client and the cores are real, in virtual time, without a network. A job publishes only the outcome of a
run: without an outcome, its publisher is never called. `test_translations_failures` does the same on a real
Kafka.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from bridge.config import ApiSettings
from bridge.errors import ApiError, AuthError
from bridge.rest.client import Client
from bridge.rest.endpoints import MAX_IDS
from bridge.snapshots.currencies import Currencies
from bridge.snapshots.published import Portion
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import Usage
from bridge.snapshots.wanted import Task
from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.faults import RestFault
from bridge_sandbox.provider.rest.routes import ENDPOINTS, Endpoint
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.world.entities import Sizes, World
from tests.tls import Authority
from tests.unit.snapshots.provider import AT, now
from tests.unit.snapshots.world import Topic, bet, item, mention
from tests.virtual.loop import run

LANGUAGES = ("en", "sv", "de")
WORLD = World(7, AT, Sizes(sports=3, regions=4, leagues=6, competitors=24, events=3))
HTML = {"Content-Type": "text/html"}
ELSEWHERE = {"Location": "https://other.example/?k=1"}


@dataclass(frozen=True)
class Wrong:
    """An answer, its number of repetitions, and the error if it is not retried; for one that ends a run, the
    exit code.
    """

    name: str
    fault: dict[str, Any]
    code: int
    says: str
    times: int | None = 1
    known_at: frozenset[Endpoint] = field(default_factory=frozenset)
    """Where the interface has it: it is an answer there."""


LISTS: frozenset[Endpoint] = frozenset({"sports", "regions", "leagues", "competitors", "active-currencies"})
OF_EVENTS: frozenset[Endpoint] = frozenset({"markets", "all-markets", "all-event"})
WRONG = (
    Wrong("400", {"status": 400}, 10, "HTTP 400"),
    Wrong("401", {"status": 401}, 3, "refuses the token", times=None),
    Wrong("403", {"status": 403}, 4, "403", times=None),
    Wrong("404", {"status": 404}, 10, "HTTP 404", known_at=OF_EVENTS),
    Wrong("429", {"status": 429}, 10, "at last: HTTP 429", times=None),
    Wrong("500", {"status": 500}, 10, "at last: HTTP 500", times=None),
    Wrong("502", {"status": 502, "body": "<html>", "headers": HTML}, 10, "HTTP 502: <html>", times=None),
    Wrong("503", {"status": 503, "headers": {"Retry-After": "7"}}, 10, "HTTP 503", times=None),
    Wrong("204", {"status": 204, "body": ""}, 10, "HTTP 204"),
    Wrong("302", {"status": 302, "headers": ELSEWHERE}, 10, "other.example."),
    Wrong("html", {"body": "<html>hello</html>", "headers": HTML}, 10, "; at last: ", times=None),
    Wrong("half", {"truncate": True}, 10, "; at last: ", times=None),
    Wrong("shape", {"body": '{"items": []}'}, 10, "an unexpected shape: "),
)


class Provider:
    """The simulated provider, in memory. Every endpoint gets more than two requests."""

    def __init__(self, ca_file: Path) -> None:
        policy = RestPolicy(
            languages=LANGUAGES,
            only_in_lists=frozenset({"de"}),
            only_in_all=frozenset({"sv"}),
            event_members="ids",
            rate=1e6,
            burst=10**6,
        )
        self.rest = Rest(WORLD, policy)
        self.token = self.rest.tokens.mint(AT)
        self.settings = ApiSettings(
            base_url="https://provider.example",
            token=SecretStr(self.token),
            languages=LANGUAGES,
            requests_per_second=100,
            attempts=3,
            proxy="none",
            ca_file=ca_file,  # the machine's own take 50 ms to be read
        )

    def client(self) -> Client:
        """A client of this provider."""
        return Client(self.settings, now, network=httpx2.MockTransport(self._answer))

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        target = request.url.raw_path.decode()
        answer = self.rest.answer(now().wall, target, request.headers["Authorization"])
        return httpx2.Response(answer.status, headers=answer.headers, content=answer.body)

    def translate(self) -> Portion:
        """A full run over an empty topic, in virtual time."""
        known = Topic().known(references(), full=True)

        async def story() -> Portion:
            async with self.client() as client:
                job = Translations(self.settings, Task.translations(self.settings), Topic().codec, known, now)
                return await job.run(client, "id")

        return run(story())

    def exchange(self) -> Portion:
        """A full run of the currencies."""
        known = Topic().known(references(), full=True)

        async def story() -> Portion:
            async with self.client() as client:
                return await Currencies(self.settings, Topic("currency").codec, known).run(client, "id")

        return run(story())

    def of(self, endpoint: Endpoint) -> Portion:
        """A run of the job that uses this endpoint."""
        return self.exchange() if "currenc" in endpoint else self.translate()


@cache
def references() -> Usage:
    """Every market, selections for three requests, and three currencies that the list lacks."""
    found = mention(*WORLD.events, currencies=("KWD", "PTS", "XTS"))
    for number in range(1, 2 * MAX_IDS + 1):
        found.add(bet([item(WORLD.events[0], selectionId=number)]))
    return found


@pytest.fixture(scope="module")
def ca_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The certificate file of a provider that is never used over TLS."""
    return Authority(tmp_path_factory.mktemp("authority")).certificate


@pytest.fixture
def provider(ca_file: Path) -> Provider:
    """A provider without requests."""
    return Provider(ca_file)


@pytest.fixture(scope="module")
def translated(ca_file: Path) -> Portion:
    """The outcome of a full run without a fault."""
    return Provider(ca_file).translate()


@pytest.fixture(scope="module")
def exchanged(ca_file: Path) -> Portion:
    """The same, of the currencies."""
    return Provider(ca_file).exchange()


@pytest.fixture(scope="module")
def asked(ca_file: Path) -> Counter[Endpoint]:
    """The number of requests to each endpoint in a successful run."""
    provider = Provider(ca_file)
    provider.translate()
    provider.exchange()
    return Counter(exchange.endpoint for exchange in provider.rest.requests if exchange.endpoint)


def test_every_endpoint_is_asked_more_than_twice(asked: Counter[Endpoint]) -> None:
    assert {endpoint: asked[endpoint] for endpoint in ENDPOINTS if asked[endpoint] < 3} == {}


@pytest.mark.parametrize("endpoint", ENDPOINTS)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_answer(
    provider: Provider, asked: Counter[Endpoint], endpoint: Endpoint, wrong: Wrong
) -> None:
    """One entry is left out, or a list or many failures end the run. Errors name it.

    In the first, a middle or the last request to the endpoint, in turn from one to the next.
    """
    turn = (ENDPOINTS.index(endpoint) + WRONG.index(wrong)) % 3
    nth = (1, (asked[endpoint] + 1) // 2, asked[endpoint])[turn]
    provider.rest.faults.inject(RestFault(endpoint=endpoint, nth=nth, times=wrong.times, **wrong.fault))
    ends = wrong.code == 3 or (endpoint in LISTS and wrong.code == 10)
    # Where there is no right to all languages at once, each by itself is enough.
    owes = endpoint not in LISTS and (endpoint, wrong.code) != ("all-markets", 4)
    failure, outcome = None, None
    try:
        outcome = provider.of(endpoint)
    except (ApiError, AuthError) as error:
        failure = error
    if outcome is None:
        assert failure is not None
        assert failure.exit_code == wrong.code
        assert ends or "api.max_left_out_share" in str(failure)
        reported = [str(failure)]
    else:
        assert not ends
        assert not outcome.removed
        reported = [left.why for left in outcome.left_out]
        if endpoint in wrong.known_at or (wrong.times == 1 and "templates" in endpoint):
            # Another answer had it, or it was asked for in part.
            assert (reported, outcome.owed) == ([], set())
            return
        assert bool(outcome.owed) == owes
    struck = {exchange.target.partition("?")[0] for exchange in provider.rest.requests if exchange.fault}
    assert struck
    assert reported or not (owes or endpoint in LISTS)
    for why in reported:
        assert wrong.says in why
        assert "no right" in why or any(f"GET {target}" in why for target in struck)
        assert provider.token not in why


PASSES: list[dict[str, Any]] = [
    *({"status": status} for status in (401, 403, 408, 429, 503)),
    {"truncate": True},
    {"body": "<html>"},
]


@pytest.mark.parametrize(
    ("fault", "endpoint"),
    [
        # One retry serves them all, so each fault strikes at a third of the endpoints; the rest are long.
        pytest.param(fault, endpoint, marks=pytest.mark.long if (f + e) % 3 else ())
        for f, fault in enumerate(PASSES)
        for e, endpoint in enumerate(ENDPOINTS)
    ],
)
def test_a_trouble_that_passes(
    provider: Provider, translated: Portion, exchanged: Portion, endpoint: Endpoint, fault: dict[str, Any]
) -> None:
    provider.rest.faults.inject(RestFault(endpoint=endpoint, nth=2, times=1, **fault))
    assert provider.of(endpoint) == (exchanged if "currenc" in endpoint else translated)

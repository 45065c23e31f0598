"""Which requests the REST side refuses, in what order, and the faults that can be injected."""

from __future__ import annotations

import re
from typing import Any

import orjson
import pytest

from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.faults import Answer, RestFault
from bridge_sandbox.provider.rest.routes import ENDPOINTS, Endpoint, route
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.world.entities import Sizes, World

NOW = 1_790_000_100.0
WORLD = World(7, NOW, Sizes(sports=2, regions=1, leagues=2, competitors=20, events=2))
EVENT = WORLD.events[0].id
PATHS: dict[Endpoint, str] = {
    "sports": "/api/translations/en/sports",
    "regions": "/api/translations/en/regions",
    "leagues": "/api/translations/en/leagues",
    "competitors": "/api/translations/en/competitors",
    "markets": f"/api/translations/en/{EVENT}/markets",
    "all-sport": "/api/translations/all/sport/1",
    "all-event": f"/api/translations/all/event/{EVENT}",
    "all-markets": f"/api/translations/all/{EVENT}/markets",
    "all-region": "/api/translations/all/region/100",
    "all-league": "/api/translations/all/league/5000",
    "all-competitor": "/api/translations/all/competitor/60000",
    "selection-templates": "/api/translations/templates/selections?selectionIds=1",
    "market-type-templates": "/api/translations/templates/market-types?sportId=1&marketTypeIds=1",
    "active-currencies": "/api/CurrencyExchange/active-currencies",
    "currency-precision": "/api/CurrencyExchange/currency-precision?symbol=EUR",
}


def rest(**policy: Any) -> Rest:
    return Rest(WORLD, RestPolicy(**{"rate": 1e6, "burst": 10**6, **policy}))


def ask(side: Rest, path: str, now: float = NOW, **token: Any) -> Answer:
    return side.answer(now, path, f"Bearer {side.tokens.mint(NOW, **token)}")


def detail(answer: Answer) -> str:
    """Return the reason of a refusal, which must be a problem of RFC 9457."""
    assert answer.headers["Content-Type"] == "application/problem+json"
    body = orjson.loads(answer.body)
    assert body["status"] == answer.status
    return str(body["detail"])


def test_every_endpoint_has_its_path() -> None:
    assert PATHS.keys() == set(ENDPOINTS)
    for endpoint, path in PATHS.items():
        found = route(path.partition("?")[0])
        assert found is not None
        assert found.endpoint == endpoint
    for path in (
        "/api/",
        "/api/translations/en/sports/",
        "/api/translations",
    ):
        assert route(path) is None
        assert ask(rest(), path).status == 404


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_a_token_needs_the_right_to_the_endpoint(endpoint: Endpoint) -> None:
    side = rest()
    right, other = ("translations", "currencies") if "/trans" in PATHS[endpoint] else ("currencies", "x")
    refused = side.answer(NOW, PATHS[endpoint], None)
    assert (refused.status, refused.headers["WWW-Authenticate"]) == (401, "Bearer")
    assert "bearer token" in detail(refused)
    assert ask(side, PATHS[endpoint], scopes=frozenset({right})).status == 200
    lacking = ask(side, PATHS[endpoint], scopes=frozenset({other}))
    assert (lacking.status, detail(lacking)) == (403, f"the token gives no right to {endpoint}")


def test_too_many_requests_are_refused_until_retry_after() -> None:
    side, path = rest(rate=0.4, burst=3), PATHS["sports"]
    assert [ask(side, path).status for _ in range(4)] == [200, 200, 200, 429]
    refused = ask(side, path)
    assert refused.headers["Retry-After"] == "3"
    assert "0.4 requests a second" in detail(refused)
    assert ask(side, path, NOW + 2.4).status == 429
    assert [ask(side, path, NOW + 3).status for _ in range(2)] == [200, 429]


def test_without_a_token_the_answer_is_401_and_spends_no_request() -> None:
    side = rest(rate=0.1, burst=2, forbidden={"all-event"})
    unknown = "/api/translations/all/event/1"
    assert [side.answer(NOW, unknown, None).status for _ in range(5)] == [401] * 5
    assert [ask(side, unknown).status for _ in range(3)] == [403, 403, 429]


TEMPLATES = "/api/translations/templates/"
IDS = {"selectionIds": f"{TEMPLATES}selections?", "marketTypeIds": f"{TEMPLATES}market-types?sportId=1&"}
"""Name of the ids of each kind of template, and the query before them."""


@pytest.mark.parametrize(
    ("path", "status", "reason"),
    [
        ("/api/translations/all/event/x", 404, "there is no event x"),
        *[
            (f"{path}{name}={wrong}", 400, f"{name} must be ids")
            for name, path in IDS.items()
            for wrong in ("x", "1,", "9" * 19)
        ],
        *[
            (f"{TEMPLATES}market-types?{sport}marketTypeIds=1", 400, "sportId must be given once")
            for sport in ("", "sportId=1,2&")
        ],
        (f"{TEMPLATES}market-types?sportId=x&marketTypeIds=1", 400, "sportId must be ids"),
    ],
)
def test_a_wrong_question_is_refused_with_its_reason(path: str, status: int, reason: str) -> None:
    answer = ask(rest(), path)
    assert (answer.status, detail(answer)) == (status, reason)


@pytest.mark.parametrize(("text", "number"), [("1" * 19, int("1" * 19)), ("-7", -7), ("9" * 19, 0), ("x", 0)])
def test_an_id_that_names_nothing_is_no_refusal_where_the_interface_has_none(text: str, number: int) -> None:
    for kind in ("sport", "region", "league", "competitor"):
        answer = ask(rest(), f"/api/translations/all/{kind}/{text}")
        assert (answer.status, orjson.loads(answer.body)) == (200, {"id": number, "translations": {}})
    if text.lstrip("-").isdecimal() and number:
        for name, path in IDS.items():
            answer = ask(rest(), f"{path}{name}={text}")
            assert (answer.status, answer.body) == (200, b"[]")


STATUSES = {
    "markets": {404, 500},
    "all-event": {404},
    "all-markets": {404, 500},
    "selection-templates": {400},
    "market-type-templates": {400},
    "active-currencies": {500},
    "currency-precision": {500},
}
"""The statuses in the interface's tables of endpoints, besides 200, 401, 403 and 429."""
ODD_QUERIES = f"""
    ids=x ids= ids=1,,-2 ids=1&ids={"9" * 30} sportId=x sportId=1,2 sportId= type=x symbol= symbol=NONE
    selectionIds=x marketTypeIds=1 % =
""".split()


@pytest.mark.parametrize("endpoint", ENDPOINTS)
def test_every_status_is_one_of_the_interface(endpoint: Endpoint) -> None:
    path = PATHS[endpoint].partition("?")[0]
    unknown = [re.sub(r"/[0-9]+", other, path) for other in ("/0", "/-7", "/123456789012345678")]
    side = rest()
    paths = [
        f"{one}?{query}"
        for one in [path, path.replace("/en/", "/xx/"), *unknown]
        for query in ["", *ODD_QUERIES]
    ]
    found = {ask(side, one).status for one in [PATHS[endpoint], *paths]}
    found |= {ask(rest(forbidden={endpoint}), PATHS[endpoint]).status, side.answer(NOW, path, None).status}
    found |= {ask(slow, PATHS[endpoint]).status for slow in [rest(rate=1, burst=1)] for _ in range(2)}
    assert found - STATUSES.get(endpoint, set()) == {200, 401, 403, 429}


def test_a_fault_can_strike_several_requests_or_all() -> None:
    side = rest()
    ask(side, PATHS["sports"])
    side.faults.inject(RestFault(nth=2, times=3, status=500))
    assert [ask(side, PATHS["sports"]).status for _ in range(6)] == [200, 500, 500, 500, 200, 200]
    side.faults.inject(RestFault(times=None, status=503))
    side.faults.inject(RestFault(nth=2, times=None, status=502))
    assert {ask(side, path).status for path in PATHS.values()} == {503}
    side.faults.clear()
    assert {ask(side, path).status for path in PATHS.values()} == {200}


def test_an_answer_can_be_anything() -> None:
    side = rest()
    right = ask(side, PATHS["sports"])
    to = {"Location": "https://elsewhere.example/"}
    side.faults.inject(RestFault(nth=1, status=502, body="<html>", headers={"Content-Type": "text/html"}))
    side.faults.inject(RestFault(nth=2, status=302, headers=to))
    side.faults.inject(RestFault(nth=3, body='{"id": "one"}'))
    side.faults.inject(RestFault(nth=4, truncate=True))
    side.faults.inject(RestFault(nth=5, delay=2.5))
    html, redirect, shape, half, late, last = [ask(side, PATHS["sports"]) for _ in range(6)]
    assert html == Answer(502, b"<html>", {"Content-Type": "text/html"})
    assert (redirect.status, redirect.headers["Location"]) == (302, to["Location"])
    assert shape == Answer(200, b'{"id": "one"}')
    assert half == Answer(200, right.body[: len(right.body) // 2])
    assert late == Answer(200, right.body, delay=2.5)
    assert last == right

"""What is asked of the 15 endpoints, and what their answers may look like."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson
import pytest

from bridge.errors import ApiError
from bridge.rest.answers import Answered
from bridge.rest.endpoints import LISTED, MAX_IDS, Questions, Request
from tests.unit.snapshots.provider import api

ITEM = {"id": 7, "language": "sv", "translation": "Över 2,5"}
ENTITY: dict[str, object] = {"id": 7, "translations": {"sv": "Över 2,5", "en": "Over 2.5"}}
MARKET = {"marketTypeId": 3, "market": ITEM, "selections": [ITEM, ITEM]}
ALL_MARKET = {"marketTypeId": 3, "marketTranslations": ENTITY, "selections": [ENTITY]}
EVENT = {
    "eventTranslation": ENTITY,
    "sport": ENTITY,
    "region": ENTITY,
    "league": ENTITY,
    "competitors": [ENTITY, ENTITY],
}
CURRENCY = {"symbol": "EUR", "type": 1, "precision": 2}

Ask = Callable[[Questions], Request[Any]]

ENDPOINTS: list[tuple[Ask, str, str, object]] = [
    (
        lambda q: q.listed("sport", "sv"),
        "/api/translations/{lang}/sports",
        "/api/translations/sv/sports",
        [ITEM],
    ),
    (
        lambda q: q.listed("region", "sv"),
        "/api/translations/{lang}/regions",
        "/api/translations/sv/regions",
        [ITEM],
    ),
    (
        lambda q: q.listed("league", "pt-BR"),
        "/api/translations/{lang}/leagues",
        "/api/translations/pt-BR/leagues",
        [ITEM],
    ),
    (
        lambda q: q.listed("competitor", "sv"),
        "/api/translations/{lang}/competitors",
        "/api/translations/sv/competitors",
        [],
    ),
    (
        lambda q: q.markets(7, "sv"),
        "/api/translations/{lang}/{eventId}/markets",
        "/api/translations/sv/7/markets",
        [MARKET],
    ),
    (
        lambda q: q.single("sport", 7),
        "/api/translations/all/sport/{sportId}",
        "/api/translations/all/sport/7",
        ENTITY,
    ),
    (lambda q: q.event(7), "/api/translations/all/event/{eventId}", "/api/translations/all/event/7", EVENT),
    (
        lambda q: q.all_markets(7),
        "/api/translations/all/{eventId}/markets",
        "/api/translations/all/7/markets",
        [ALL_MARKET],
    ),
    (
        lambda q: q.single("region", 7),
        "/api/translations/all/region/{regionId}",
        "/api/translations/all/region/7",
        ENTITY,
    ),
    (
        lambda q: q.single("league", 7),
        "/api/translations/all/league/{leagueId}",
        "/api/translations/all/league/7",
        ENTITY,
    ),
    (
        lambda q: q.single("competitor", -7),
        "/api/translations/all/competitor/{competitorId}",
        "/api/translations/all/competitor/-7",
        {"id": -7, "translations": {}},
    ),
    (
        lambda q: q.selection_templates([4, 5]),
        "/api/translations/templates/selections",
        "/api/translations/templates/selections?selectionIds=4&selectionIds=5",
        [ENTITY],
    ),
    (
        lambda q: q.market_type_templates(1, [4, 5]),
        "/api/translations/templates/market-types",
        "/api/translations/templates/market-types?sportId=1&marketTypeIds=4&marketTypeIds=5",
        [ENTITY],
    ),
    (
        lambda q: q.active_currencies(),
        "/api/CurrencyExchange/active-currencies",
        "/api/CurrencyExchange/active-currencies",
        [CURRENCY, {"symbol": None, "type": 9, "precision": 0}],
    ),
    (
        lambda q: q.currency_precision("EUR"),
        "/api/CurrencyExchange/currency-precision",
        "/api/CurrencyExchange/currency-precision?symbol=EUR",
        {"precision": 2},
    ),
]


@pytest.mark.parametrize(
    ("ask", "endpoint", "target", "answer"), ENDPOINTS, ids=[e for _, e, _, _ in ENDPOINTS]
)
def test_each_endpoint_is_asked_and_understood(ask: Ask, endpoint: str, target: str, answer: object) -> None:
    """By its path in the interface, and in the interface's shape."""
    request = ask(Questions(api()))
    assert (request.endpoint, request.target) == (endpoint, target)
    assert str(request) == f"GET {target}"
    assert request.read(orjson.dumps(answer)) == Answered(answer)


def test_every_endpoint_of_the_interface_is_there() -> None:
    """13 of translations and 2 of currencies."""
    assert len({endpoint for _, endpoint, _, _ in ENDPOINTS}) == 15


def test_only_where_the_interface_has_a_404_may_something_be_missing() -> None:
    """With the event and its markets."""
    missing = [endpoint for ask, endpoint, _, _ in ENDPOINTS if ask(Questions(api())).may_be_unknown]
    assert missing == [
        "/api/translations/{lang}/{eventId}/markets",
        "/api/translations/all/event/{eventId}",
        "/api/translations/all/{eventId}/markets",
    ]


def test_what_the_interface_leaves_open_comes_from_the_settings() -> None:
    """Names of parameters, the form of a collection, and parameters to add, by the endpoint."""
    questions = Questions(
        api(
            selection_ids_parameter="selection",
            sport_id_parameter="sport",
            market_type_ids_parameter="types[]",
            collections="commas",
            query={"leagues": {"active": "a b+c"}, "markets": {"x": "1", "y": "é"}, "all-markets": {"z": ""}},
        )
    )
    asked: list[Request[object]] = [
        questions.selection_templates([4, 5]),
        questions.market_type_templates(1, [4, 5]),
        questions.listed("league", "sv"),
        questions.listed("sport", "sv"),
        questions.markets(7, "sv"),
        questions.all_markets(7),
    ]
    assert [request.target.removeprefix("/api/translations/") for request in asked] == [
        "templates/selections?selection=4,5",
        "templates/market-types?sport=1&types%5B%5D=4,5",
        "sv/leagues?active=a%20b%2Bc",
        "sv/sports",
        "sv/7/markets?x=1&y=%C3%A9",
        "all/7/markets?z=",
    ]


@pytest.mark.parametrize(
    ("symbol", "query"), [("US D", "US%20D"), ("₿&x=1", "%E2%82%BF%26x%3D1"), ("A+B#/", "A%2BB%23%2F")]
)
def test_a_symbol_is_encoded(symbol: str, query: str) -> None:
    """It comes from bets, and may hold anything."""
    target = Questions(api()).currency_precision(symbol).target
    assert target == f"/api/CurrencyExchange/currency-precision?symbol={query}"


@pytest.mark.parametrize("type_", [1, 2, 3])
def test_currencies_are_listed_by_type(type_: int) -> None:
    """Fiat, crypto and custom."""
    target = Questions(api()).active_currencies(type_).target
    assert target == f"/api/CurrencyExchange/active-currencies?type={type_}"


@pytest.mark.parametrize("count", [0, MAX_IDS + 1])
def test_a_collection_has_its_bounds(count: int) -> None:
    """The interface's: whoever asks for more has to ask in parts."""
    with pytest.raises(AssertionError):
        Questions(api()).selection_templates(range(count))
    with pytest.raises(AssertionError):
        Questions(api()).market_type_templates(1, range(count))


def test_a_field_that_the_interface_does_not_know_is_let_pass() -> None:
    """Wherever it is; nothing is made of it."""
    answer = {**EVENT, "sport": ENTITY | {"icon": None}, "venue": [1]}
    assert Questions(api()).event(7).read(orjson.dumps(answer)) == Answered(EVENT)


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ({**EVENT, "league": None}, "league: "),
        ({**EVENT, "competitors": None}, "competitors: "),
        ({**EVENT, "sport": {"id": True, "translations": {}}}, "sport.id: "),
        ({**EVENT, "sport": {"id": 7.0, "translations": {}}}, "sport.id: "),
        ({**EVENT, "sport": {"id": 2**63, "translations": {}}}, "sport.id: "),
        ({**EVENT, "sport": {"id": 7, "translations": None}}, "sport.translations: "),
        ({key: EVENT[key] for key in EVENT if key != "region"}, "region: Field required"),
        ([EVENT], "the whole: "),
        (None, "the whole: "),
    ],
)
def test_another_shape_is_named_by_its_place(answer: object, place: str) -> None:
    """With the endpoint and its ids; nothing is taken for what it is not."""
    with pytest.raises(ApiError) as caught:
        Questions(api()).event(7).read(orjson.dumps(answer))
    assert str(caught.value).startswith(
        f"GET /api/translations/all/event/7 answered with an unexpected shape: {place}"
    )


def test_further_mistakes_are_counted() -> None:
    """The first is enough to look for the others."""
    request = Questions(api()).single("sport", 7)
    with pytest.raises(ApiError, match=r"an unexpected shape: id: .*, and 1 more$"):
        request.read(orjson.dumps({"id": "x", "translations": None}))


def test_what_was_answered_is_not_repeated() -> None:
    """An error tells the place, not the content, which can be long."""
    with pytest.raises(ApiError) as caught:
        Questions(api()).single("sport", 7).read(orjson.dumps({**ENTITY, "id": "long-story"}))
    assert "long-story" not in str(caught.value)


def targets(*requests: Request[object]) -> list[str]:
    """What is asked for, in short."""
    return [request.target.removeprefix("/api/translations/") for request in requests]


def test_parameters_depend_on_what_is_asked() -> None:
    """On language, event and sport; a value may be several, and a brace a brace."""
    query = {
        "sports": {"lang": "{language}"},
        "regions": {"of": "{sportId}"},
        "leagues": {"x": ["1", "{{{sportId}}}"]},
        "markets": {"e": "{eventId}", "s": ["{sportId}", "{language}"]},
        "all-markets": {"e": "{eventId}-{sportId}"},
    }
    questions = Questions(api(query=query))
    assert [kind for kind in LISTED if questions.by_sport(kind)] == ["region", "league"]
    assert targets(
        questions.listed("sport", "sv"),
        questions.listed("region", "sv", 0),
        questions.listed("league", "sv", 3),
        questions.listed("competitor", "sv"),
        questions.markets(7, "sv", 3),
        questions.markets(7, "sv"),
        questions.all_markets(7, 3),
    ) == [
        "sv/sports?lang=sv",
        "sv/regions?of=0",
        "sv/leagues?x=1&x=%7B3%7D",
        "sv/competitors",
        "sv/7/markets?e=7&s=3&s=sv",
        "sv/7/markets?e=7&s=0&s=sv",
        "all/7/markets?e=7-3",
    ]


def test_a_list_is_asked_for_by_sport_where_the_settings_say_so() -> None:
    """And there alone."""
    questions = Questions(api(query={"leagues": {"sport": "{sportId}"}}))
    with pytest.raises(AssertionError):
        questions.listed("league", "sv")
    with pytest.raises(AssertionError):
        questions.listed("region", "sv", 3)


def test_a_language_stays_one_part_of_the_path() -> None:
    """Whatever its code is made of."""
    questions = Questions(api(languages=("日本 %;&",)))
    asked = targets(questions.listed("sport", "日本 %;&"), questions.markets(7, "日本 %;&"))
    assert [path.split("/", 1)[0] for path in asked] == ["%E6%97%A5%E6%9C%AC%20%25%3B%26"] * 2


@pytest.mark.parametrize(
    ("place", "selections", "types"),
    [
        ("query", ("selections?s=4&s=5", ""), ("market-types?sport=1&t=4&t=5", "")),
        ("path", ("selections/4,5", ""), ("market-types/1/4,5", "")),
        ("body", ("selections", '{"s": [4, 5]}'), ("market-types", '{"sport": 1, "t": [4, 5]}')),
    ],
)
def test_ids_of_templates_go_where_the_settings_say(
    place: str, selections: tuple[str, str], types: tuple[str, str]
) -> None:
    """Errors name them there, too."""
    names = {"selection_ids_parameter": "s", "sport_id_parameter": "sport", "market_type_ids_parameter": "t"}
    questions = Questions(api(template_ids=place, **names))
    for request, (target, body) in (
        (questions.selection_templates([4, 5]), selections),
        (questions.market_type_templates(1, [4, 5]), types),
    ):
        assert (request.target, request.body) == (f"/api/translations/templates/{target}", body)
        assert str(request) == f"GET {request.target} {body}".strip()

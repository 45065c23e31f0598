"""What settings make of the requests to the endpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bridge.config.api import LISTED
from bridge.rest.endpoints import Questions, Request
from tests.unit.snapshots.provider import api

Ask = Callable[[Questions], Request[Any]]

TEXTS, EXCHANGE = "/api/translations/", "/api/CurrencyExchange/"
TYPES = "templates/market-types"


NAMES = {"selection_ids_parameter": "s", "sport_id_parameter": "sport", "market_type_ids_parameter": "t[]"}
COMMAS = {**NAMES, "collections": "commas"}
QUERY = {
    "query": {
        "sports": {"lang": "{language}"},
        "regions": {"of": "{sportId}"},
        "leagues": {"x": ["1", "{{{sportId}}}"], "active": "a b+c"},
        "markets": {"e": "{eventId}", "s": ["{sportId}", "{language}", "é"]},
        "all-markets": {"e": "{eventId}-{sportId}", "z": ""},
    }
}


@pytest.mark.parametrize(
    ("settings", "ask", "target"),
    [
        (NAMES, lambda q: q.selection_templates([4, 5]), "templates/selections?s=4&s=5"),
        (NAMES, lambda q: q.market_type_templates(1, [4, 5]), f"{TYPES}?sport=1&t%5B%5D=4&t%5B%5D=5"),
        (COMMAS, lambda q: q.selection_templates([4, 5]), "templates/selections?s=4,5"),
        (COMMAS, lambda q: q.market_type_templates(1, [4, 5]), f"{TYPES}?sport=1&t%5B%5D=4,5"),
        (QUERY, lambda q: q.listed("sport", "pt-BR"), "pt-BR/sports?lang=pt-BR"),
        (QUERY, lambda q: q.single("competitor", -7), "all/competitor/-7"),
        (QUERY, lambda q: q.listed("region", "sv", 0), "sv/regions?of=0"),
        (QUERY, lambda q: q.listed("league", "sv", 3), "sv/leagues?x=1&x=%7B3%7D&active=a%20b%2Bc"),
        (QUERY, lambda q: q.listed("competitor", "sv"), "sv/competitors"),
        (QUERY, lambda q: q.markets(7, "sv", 3), "sv/7/markets?e=7&s=3&s=sv&s=%C3%A9"),
        (QUERY, lambda q: q.markets(7, "sv"), "sv/7/markets?e=7&s=0&s=sv&s=%C3%A9"),
        (QUERY, lambda q: q.all_markets(7, 3), "all/7/markets?e=7-3&z="),
        ({}, lambda q: q.listed("sport", "日本 %;&"), "%E6%97%A5%E6%9C%AC%20%25%3B%26/sports"),
        ({}, lambda q: q.markets(7, "日本 %;&"), "%E6%97%A5%E6%9C%AC%20%25%3B%26/7/markets"),
        ({}, lambda q: q.currency_precision("US D"), f"{EXCHANGE}currency-precision?symbol=US%20D"),
        ({}, lambda q: q.currency_precision("₿&x"), f"{EXCHANGE}currency-precision?symbol=%E2%82%BF%26x"),
        ({}, lambda q: q.currency_precision("A+B#/"), f"{EXCHANGE}currency-precision?symbol=A%2BB%23%2F"),
        ({}, lambda q: q.active_currencies(3), f"{EXCHANGE}active-currencies?type=3"),
    ],
)
def test_settings_and_arguments_are_in_the_target(settings: dict[str, Any], ask: Ask, target: str) -> None:
    assert ask(Questions(api(**settings))).target == (target if target.startswith("/") else TEXTS + target)


def test_a_list_is_fetched_by_sport_if_the_settings_say_so() -> None:
    questions = Questions(api(**QUERY))
    assert [kind for kind in LISTED if questions.by_sport(kind)] == ["region", "league"]
    with pytest.raises(AssertionError):
        questions.listed("league", "sv")
    with pytest.raises(AssertionError):
        questions.listed("competitor", "sv", 3)


@pytest.mark.parametrize(
    ("place", "sport", "selections", "types"),
    [
        ("query", None, ("selections?s=4&s=5", ""), ("market-types?sport=1&t=4&t=5", "")),
        ("path", None, ("selections/4,5", ""), ("market-types/1/4,5", "")),
        ("body", None, ("selections", '{"s": [4, 5]}'), ("market-types", '{"sport": 1, "t": [4, 5]}')),
        ("query", "path", ("selections?s=4&s=5", ""), ("market-types/1?t=4&t=5", "")),
        ("path", "query", ("selections/4,5", ""), ("market-types/4,5?sport=1", "")),
        ("body", "path", ("selections", '{"s": [4, 5]}'), ("market-types/1", '{"t": [4, 5]}')),
    ],
)
def test_ids_of_templates_go_where_the_settings_say(
    place: str, sport: str | None, selections: tuple[str, str], types: tuple[str, str]
) -> None:
    names = {"selection_ids_parameter": "s", "sport_id_parameter": "sport", "market_type_ids_parameter": "t"}
    questions = Questions(api(template_ids=place, template_sport=sport, **names))
    for request, (target, body) in (
        (questions.selection_templates([4, 5]), selections),
        (questions.market_type_templates(1, [4, 5]), types),
    ):
        assert (request.target, request.body) == (f"/api/translations/templates/{target}", body)
        assert str(request) == f"GET {request.target} {body}".strip()

"""The REST side of the simulated provider: what each endpoint says, and whether all of it agrees."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any, get_args

import orjson
import pytest

from bridge_sandbox.provider.rest.app import Rest
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.stream import Stream
from bridge_sandbox.provider.world.entities import Kind, Sizes, World

NOW = 1_790_000_100.0
SMALL = World(7, NOW, Sizes(sports=3, regions=2, leagues=5, competitors=40, events=12))
LISTS = {"sport": "sports", "region": "regions", "league": "leagues", "competitor": "competitors"}


def rest(world: World = SMALL, **policy: Any) -> Rest:
    return Rest(world, RestPolicy(**{"rate": 1e6, "burst": 10**6, **policy}))


def get(side: Rest, path: str) -> Any:
    """The content of an answer that must be right."""
    answer = side.answer(NOW, f"/api/{path}", f"Bearer {side.tokens.mint(NOW)}")
    assert (answer.status, answer.headers) == (200, {"Content-Type": "application/json"}), answer.body
    return orjson.loads(answer.body)


def texts(items: list[Any]) -> dict[int, str]:
    return {item["id"]: item["translation"] for item in items}


Key = tuple[str, int, Any]
"""Kind and id, and the sport of a market type template."""
Named = tuple[Key, dict[str, str]]


def texts_of(side: Rest, languages: tuple[str, ...]) -> dict[Key, dict[str, str]]:
    """Every name that can be had by asking all endpoints for everything."""
    found: dict[Key, dict[str, str]] = {}
    for key, names in chain(
        told_in_lists(side, languages), told_of_events(side, languages), told_in_templates(side)
    ):
        found.setdefault(key, {}).update(names)
    return found


def item(kind: str, one: Any) -> Named:
    return (kind, one["id"], None), {one["language"]: one["translation"]}


def entity(kind: str, one: Any, sport: int | None = None) -> Named:
    return (kind, one["id"], sport), one["translations"]


def told_in_lists(side: Rest, languages: tuple[str, ...]) -> Iterator[Named]:
    for kind, name in LISTS.items():
        numbers = set()
        for language in languages:
            for one in get(side, f"translations/{language}/{name}"):
                numbers.add(one["id"])
                yield item(kind, one)
        for number in numbers:
            yield entity(kind, get(side, f"translations/all/{kind}/{number}"))


def told_of_events(side: Rest, languages: tuple[str, ...]) -> Iterator[Named]:
    for event in SMALL.events:
        yield entity("event", get(side, f"translations/all/event/{event.id}")["eventTranslation"])
        for market in get(side, f"translations/all/{event.id}/markets"):
            yield entity("market", market["marketTranslations"])
            yield from (entity("selection", selection) for selection in market["selections"])
        for language in languages:
            for market in get(side, f"translations/{language}/{event.id}/markets"):
                yield item("market", market["market"])
                yield from (item("selection", selection) for selection in market["selections"])


def told_in_templates(side: Rest) -> Iterator[Named]:
    for sport in SMALL.sports:
        query = f"sportId={sport.id}&marketTypeIds=1,16,18,29,40,201,202,301"
        for one in get(side, f"translations/templates/market-types?{query}"):
            yield entity("market-type-template", one, sport.id)
    for event in SMALL.events:
        query = ",".join(str(number) for market in event.markets for number in market.selections)
        for one in get(side, f"translations/templates/selections?selectionIds={query}"):
            yield entity("selection-template", one)


def true(side: Rest) -> dict[Key, dict[str, str]]:
    found: dict[Key, dict[str, str]] = {}
    for known in side.catalogue.truth():
        sport: Any = known.relations["sportId"] if known.kind == "market-type-template" else None
        found[known.kind, known.id, sport] = {str(k): v for k, v in known.texts.items()}
    return found


@pytest.mark.parametrize(
    "policy",
    [
        {"languages": ("en", "el")},
        {"languages": ("en", "ja", "ar"), "only_in_lists": {"ja"}, "only_in_all": {"ar"}},
    ],
)
def test_the_endpoints_together_return_the_truth(policy: dict[str, Any]) -> None:
    side = rest(**policy)
    asked = texts_of(side, policy["languages"])
    assert asked == true(side)
    assert len(asked) > 800


def test_everything_that_the_feed_mentions_has_a_name(world: World, stream: Stream) -> None:
    side = rest(world, languages=("en",))
    builders = 0
    for slot in range(150):
        for item in orjson.loads(stream.message(slot).body)["data"].get("selections") or []:
            if not (item.get("event") and item.get("market")):
                continue
            event = get(side, f"translations/all/event/{item['event']['id']}")
            assert event["eventTranslation"]["translations"]
            assert event["league"] == get(side, f"translations/all/league/{item['competitionId']}")
            assert event["region"] == get(side, f"translations/all/region/{item['countryId']}")
            assert event["sport"] == get(side, f"translations/all/sport/{item['sportId']}")
            markets = {
                market["marketTranslations"]["id"]: market
                for market in get(side, f"translations/all/{item['event']['id']}/markets")
            }
            parts = [part for part in item.get("betBuilderItems") or [] if part.get("market")]
            builders += len(parts)
            for part in [item, *parts]:
                market = markets[part["market"]["id"]]
                assert market["marketTypeId"] == part["market"]["type"]
                assert part["selectionId"] in {selection["id"] for selection in market["selections"]}
    assert builders > 15


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_rename_shows_everywhere_and_changes_nothing_else(kind: Kind) -> None:
    side = rest(languages=("en", "de"))
    before = true(side)
    assert texts_of(side, ("en", "de")) == before
    number = next(known.id for known in side.catalogue.truth() if known.kind == kind)
    side.catalogue.rename(kind, number, "Neu", "de")
    after = true(side)
    assert texts_of(side, ("en", "de")) == after
    changed = {key for key in after if after[key] != before[key]}
    assert {key[:2] for key in changed} == {(kind, number)}
    assert all(after[key] == {"en": before[key]["en"], "de": "Neu"} for key in changed)


@pytest.mark.parametrize("kind", [kind for kind in get_args(Kind) if kind != "event"])
def test_a_removed_entity_is_gone_everywhere(kind: Kind) -> None:
    side = rest(languages=("en",))
    before = texts_of(side, ("en",))
    number = next(known.id for known in side.catalogue.truth() if known.kind == kind)
    side.catalogue.remove(kind, number)
    after = texts_of(side, ("en",))
    assert after == true(side)
    gone = before.keys() - after.keys()
    # A market takes its selections along.
    assert {key[:2] for key in gone if kind != "market" or key[0] == kind} == {(kind, number)}


def test_lists_can_be_narrowed() -> None:
    side = rest()
    everything = texts(get(side, "translations/sv/leagues"))
    assert list(everything) == [5000, 5001, 5002, 5003, 5004]
    for query in ("ids=5000&ids=5002", "ids=5000,5002", "ids=5002&ids=5000,7"):
        assert texts(get(side, f"translations/sv/leagues?{query}")) == {
            number: everything[number] for number in (5000, 5002)
        }
    assert list(texts(get(side, "translations/sv/leagues?sportId=2"))) == [5001, 5004]
    assert list(texts(get(side, "translations/sv/leagues?sportId=2&ids=5000,5001"))) == [5001]
    market = SMALL.events[0].markets[0]
    narrowed = get(side, f"translations/sv/{SMALL.events[0].id}/markets?ids={market.id}")
    assert [found["market"]["id"] for found in narrowed] == [market.id]


def test_the_names_of_parameters_and_languages_are_settings() -> None:
    side = rest(
        languages=("en", "de"),
        selection_ids="s",
        sport_id="p",
        market_type_ids="m",
        ids="only",
        language_keys={"de": "de-DE"},
    )
    selection = SMALL.events[0].markets[0].selections[0]
    assert get(side, f"translations/templates/selections?s={selection}")[0]["id"] == selection
    assert get(side, "translations/templates/market-types?p=1&m=1&m=18")[1]["id"] == 18
    assert list(texts(get(side, "translations/de/sports?only=2"))) == [2]
    assert get(side, "translations/all/sport/1")["translations"].keys() == {"en", "de-DE"}


def test_every_currency_of_a_bet_has_its_precision(stream: Stream) -> None:
    side = rest()
    amounts = [orjson.loads(stream.message(slot).body)["data"].get("amount") or {} for slot in range(2000)]
    used = {(it["currency"], it["precision"]) for it in amounts if it.get("currency")}
    listed = {(c["symbol"], c["precision"]) for c in get(side, "CurrencyExchange/active-currencies")}
    for symbol, precision in used:
        answer = get(side, f"CurrencyExchange/currency-precision?symbol={symbol}")
        assert answer == {"precision": precision}
    assert {symbol for symbol, _ in used - listed} == {"KWD", "PTS"}

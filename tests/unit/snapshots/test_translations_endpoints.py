"""Each of the 13 endpoints of translations has something that no other has."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from bridge.sandbox.provider.rest.routes import CURRENCIES, ENDPOINTS, Endpoint
from tests.unit.snapshots.world import (
    BOTH,
    LANGUAGES,
    WORLD,
    Provider,
    Topic,
    api,
    first_run,
    mention,
    translate,
)

EVENT = WORLD.events[0]
LEAGUE = EVENT.league
MARKET = EVENT.markets[0]
ELSEWHERE = next(league for league in WORLD.leagues if league.sport != LEAGUE.sport)
"""Nothing that bets mention leads there."""
IDLE = next(c for c in WORLD.competitors if c.league == ELSEWHERE)


class Only(NamedTuple):
    """Texts of a record that come from one endpoint, under a policy; none are those of all languages."""

    endpoint: Endpoint
    key: str
    languages: tuple[str, ...]
    policy: dict[str, Any]


# Nothing but what gives all languages has the Swedish text, and of that only what is asked by id.
BY_ID: dict[str, Any] = {"only_in_all": {"sv"}, "event_members": "ids"}
SV = ("sv",)
CASES = [
    Only("sports", f"sport:{ELSEWHERE.sport.id}", LANGUAGES, {}),
    Only("regions", f"region:{LEAGUE.region.id}", SV, {"only_in_lists": {"sv"}}),
    Only("leagues", f"league:{ELSEWHERE.id}", LANGUAGES, {}),
    Only("competitors", f"competitor:{IDLE.id}", LANGUAGES, {}),
    Only("all-sport", f"sport:{LEAGUE.sport.id}", SV, BY_ID),
    Only("all-region", f"region:{LEAGUE.region.id}", SV, BY_ID),
    Only("all-league", f"league:{LEAGUE.id}", SV, BY_ID),
    Only("all-competitor", f"competitor:{EVENT.competitors[0].id}", SV, BY_ID),
    Only("all-event", f"event:{EVENT.id}", LANGUAGES, {}),
    Only("all-markets", f"market:{EVENT.id}:{MARKET.id}", SV, {"only_in_all": {"sv"}}),
    Only("markets", f"selection:{MARKET.selections[0]}", SV, {"only_in_lists": {"sv"}}),
    Only("selection-templates", f"selection-template:{MARKET.selections[0]}", LANGUAGES, {}),
    Only("market-type-templates", f"market-type-template:{LEAGUE.sport.id}:{MARKET.type}", LANGUAGES, {}),
]


def test_every_endpoint_has_a_case() -> None:
    """Of the 15 those of translations are here, the two of currencies elsewhere."""
    assert {case.endpoint for case in CASES} == set(ENDPOINTS) - CURRENCIES
    assert len(CASES) == 13


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.endpoint)
async def test_an_endpoint_has_what_no_other_has(case: Only) -> None:
    """With it the texts are published as the provider has them; without a right to it they are missing."""
    provider, topic = await first_run(EVENT, **case.policy)
    assert provider.asked()[case.endpoint]
    found = topic.translation(case.key).texts
    truth = provider.truth()[case.key.encode()]
    assert {language: found[language] for language in case.languages} == {
        language: truth[language] for language in case.languages
    }

    without, rest = Provider(**case.policy, forbidden={case.endpoint}), Topic()
    await translate(without, rest, mention(EVENT))
    texts = rest.texts().get(case.key.encode(), {})
    assert not texts.keys() & set(case.languages)


async def test_everything_published_is_the_truth() -> None:
    """With bets on all events every thing that there is has all its texts, and what it belongs to."""
    provider, topic = await first_run(*WORLD.events, **BOTH)
    truth = provider.truth()
    published = topic.texts()
    assert len(published) > 500
    members = {f"competitor:{c.id}".encode() for event in WORLD.events for c in event.competitors}
    for key, texts in published.items():
        expected = dict(truth[key])
        if key.startswith(b"competitor:") and key not in members:
            del expected["de"]  # what no event names is not asked about by id
        assert texts == expected, key
    mentioned = [key for key in truth if not key.startswith((b"selection-t", b"market-type-t"))]
    assert set(mentioned) <= published.keys()
    event = topic.translation(f"event:{EVENT.id}")
    assert (event.sport_id, event.region_id, event.league_id) == (
        LEAGUE.sport.id,
        LEAGUE.region.id,
        LEAGUE.id,
    )
    assert event.competitor_ids == [competitor.id for competitor in EVENT.competitors]
    for known in (f"market:{EVENT.id}:{MARKET.id}", f"selection:{MARKET.selections[0]}"):
        found = topic.translation(known)
        assert (found.event_id, found.market_type_id) == (EVENT.id, MARKET.type)
    template = topic.translation(f"market-type-template:{LEAGUE.sport.id}:{MARKET.type}")
    assert (template.sport_id, template.market_type_id) == (LEAGUE.sport.id, MARKET.type)


async def test_two_lines_of_one_market_type_have_names_of_their_own() -> None:
    """Total 2.5 and Total 3.5 of one event are two records, and so are their selections."""
    event = next(e for e in WORLD.events if [m.type for m in e.markets].count(18) == 2)
    _, topic = await first_run(event)
    lines = [market for market in event.markets if market.type == 18]
    names = [topic.translation(f"market:{event.id}:{market.id}").texts["en"] for market in lines]
    assert [name.rpartition(" ")[2] for name in names] == ["2.5", "3.5"]
    overs = [topic.translation(f"selection:{market.selections[0]}").texts["en"] for market in lines]
    assert overs == ["Over 2.5", "Over 3.5"]


async def test_leagues_by_sport_are_listed_without_a_right_to_the_sports() -> None:
    """Bets say which sports there are."""
    provider = Provider(forbidden={"sports"})
    settings = api(query={"leagues": {"sport": "{sportId}"}})
    await translate(provider, Topic(), mention(EVENT), settings=settings)
    assert provider.asked()["leagues"] > 0

"""What a run has to ask about, and how many requests that makes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from bridge.config.api import KINDS, LISTED, Listed
from bridge.errors import SettingsError
from bridge.snapshots.model import Translation
from bridge.snapshots.state import JobState
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import Usage
from bridge.snapshots.wanted import Found, Task, Wanted, chunks
from tests.unit.snapshots.world import WORLD, Topic, api, bet, item, keys, mention

EVENT, OTHER = WORLD.events[:2]
ALL = Task.translations(api())


def test_a_choice_narrows_and_all_of_it_is_none() -> None:
    assert (ALL.narrowed, ALL.kinds, ALL.languages, ALL.events) == (False, KINDS, api().languages, None)
    assert Task.translations(api(), KINDS, ["de", "sv", "en"]) == ALL
    assert Task.translations(api(), kinds=["sport"]).narrowed
    assert Task.translations(api(), events=[7]).narrowed
    chosen = Task.translations(api(), languages=["sv", "sv"])
    assert (chosen.narrowed, chosen.languages) == (True, ("sv",))
    few = api(kinds=["event", "sport"])
    assert (Task.translations(few).narrowed, Task.translations(few).kinds) == (False, ("sport", "event"))


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        ({"languages": ["sv", "fr"]}, r"--language fr is not one of api\.languages \(en, sv, de\)"),
        ({"kinds": ["market"]}, r"--kind market is not one of api\.kinds \(sport, event\)"),
        ({"kinds": ["sport"], "events": [5]}, "--event asks for nothing"),
    ],
)
def test_what_the_settings_leave_out_cannot_be_chosen(chosen: dict[str, Any], why: str) -> None:
    with pytest.raises(SettingsError, match=why):
        Task.translations(api(kinds=["event", "sport"]), **chosen)


def wanted(
    used: Usage,
    *events: Translation,
    present: Iterable[bytes] = (),
    owed: Iterable[str] = (),
    full: bool = False,
    resumed: bool = False,
) -> Wanted:
    """What a run of everything wants, and the records of events that it finds."""
    state = JobState("translations", {})
    state.usage, state.refused["owed"] = used, {*owed}
    found = Found(ALL, dict.fromkeys(present, b""), used, state, full, resumed=resumed)
    return Wanted(found, {event.key: event for event in events}.get)


def test_a_full_run_owes_only_what_bets_use() -> None:
    used = mention(EVENT)
    used.add(bet([item(None, sportId=3, selectionId=7, market={"id": 5, "type": 18})]))
    kept = {f"event:{EVENT.id}", f"markets:{EVENT.id}", f"league:{EVENT.league.id}", "sport:3"}
    kept |= {"selection-template:7", "market-type-template:3:18", f"competitor:{EVENT.competitors[0].id}"}
    others = {f"event:{OTHER.id}", f"markets:{OTHER.id}", "league:1", "selection-template:9", "competitor:1"}
    record = Translation("event", EVENT.id, {}, competitor_ids=[it.id for it in EVENT.competitors])
    for full, owed in ((True, kept), (False, kept | others)):
        assert wanted(used, record, full=full, owed=kept | others).owed == owed
    assert wanted(Usage(), full=True, owed=others).owed == others, "no bets are no reason to forget"


def test_what_events_in_use_belong_to_is_in_use() -> None:
    event = Translation("event", EVENT.id, {}, None, 11, 12, 13, [14, 15])
    used = wanted(mention(EVENT), event, full=True).used
    own: dict[Listed, int] = {"sport": 11, "region": 12, "league": 13, "competitor": 14}
    assert all(number in used[kind] for kind, number in own.items())
    assert EVENT.league.id in used["league"]


def test_a_run_that_goes_on_asks_about_lists_only() -> None:
    resumed = wanted(mention(EVENT), present=keys(mention(EVENT)), full=True, resumed=True)
    assert (resumed.events, resumed.markets, resumed.selections, resumed.types) == ([], [], [], {})
    assert resumed.listed["league"] == {EVENT.league.id}, "its list may have had a part of its texts"


def test_one_missing_market_or_selection_is_reason_to_ask_about_its_event() -> None:
    whole, market = keys(mention(EVENT)), EVENT.markets[0]
    for missing in (f"market:{EVENT.id}:{market.id}", f"selection:{market.selections[0]}"):
        found = wanted(mention(EVENT), present=whole - {missing.encode()})
        assert (found.events, found.markets) == ([], [EVENT.id])


def test_a_zero_alone_is_no_reason_to_ask_about_markets_again() -> None:
    used = Usage()
    used.add(bet([item(EVENT, market=None, selectionId=0)]))
    found = wanted(used)
    assert found.events == found.markets == [EVENT.id]
    found = wanted(used, present={f"event:{EVENT.id}".encode()})
    assert found.events == found.markets == []


def test_a_selection_of_no_event_has_a_template_only() -> None:
    used = Usage()
    used.add(bet([item(None, selectionId=7)]))
    found = wanted(used)
    assert (found.events, found.markets, found.selections) == ([], [], [7])


def test_chunks_have_a_hundred_ids_and_0_one_of_its_own() -> None:
    assert [len(chunk) for chunk in chunks(range(250))] == [1, 100, 100, 49]
    assert [*chunks([])] == []


def estimated(topic: Topic, used: Usage, *, full: bool = False, **chosen: Any) -> dict[str, Any]:
    settings = api(**chosen)
    known = topic.known(used, full, Task.translations(settings))
    job = Translations(settings, topic.codec, known)
    return {row.endpoint.removeprefix("/api/translations"): row[1:] for row in job.estimate()}


def test_an_estimate_counts_each_endpoint() -> None:
    used = mention(EVENT)
    for number in range(1, 151):
        used.add(bet([item(None, selectionId=number)]))
    assert estimated(Topic(), used, full=True) == {
        **{f"/{{lang}}/{kind}s": (3, 3) for kind in LISTED},
        "/all/sport/{sportId}": (0, 2),
        "/all/region/{regionId}": (0, 2),
        "/all/league/{leagueId}": (0, 2),
        "/all/competitor/{competitorId}": (0, None),
        "/all/event/{eventId}": (1, 1),
        "/all/{eventId}/markets": (1, 1),
        "/{lang}/{eventId}/markets": (0, 3),
        "/templates/selections": (2, 2),
        "/templates/market-types": (1, 1),
    }


def test_an_estimate_of_lists_by_sport_counts_the_sports_that_are_known() -> None:
    topic, query = Topic(), {"leagues": {"sport": "{sportId}"}}
    topic[b"sport:100"] = topic[b"sport:101"] = b"?"
    requests = 3 * len({EVENT.league.sport.id, 100, 101})
    for kinds, most in ((KINDS, None), (["league"], requests)):
        found = estimated(topic, mention(EVENT), query=query, kinds=kinds)
        assert found["/{lang}/leagues"] == (requests, most)

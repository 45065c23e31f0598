"""What a run has to ask about, and how many requests that makes."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.config.api import KINDS, LISTED, Kind
from bridge.errors import SettingsError
from bridge.snapshots.translations import Translations
from bridge.snapshots.usage import Usage
from bridge.snapshots.wanted import Task, Wanted, chunks
from tests.unit.snapshots.world import WORLD, Topic, api, bet, item, mention

EVENT, OTHER = WORLD.events[:2]
ALL = Task.translations(api())
NOTHING = Wanted({kind: set() for kind in LISTED}, [], [], [], {})


def keys_of(used: Usage) -> set[bytes]:
    return {key for kind in KINDS for key in used.keys(kind)}


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


@pytest.mark.parametrize(
    ("kind", "covered"),
    [
        ("sport", ["sport:3"]),
        ("market", ["markets:7"]),
        ("selection", ["markets:7"]),
        ("event", ["event:7"]),
        ("market-type-template", ["market-type-template:1:18"]),
        ("selection-template", []),
    ],
)
def test_what_a_task_covers(kind: Kind, covered: list[str]) -> None:
    names = ["sport:3", "markets:7", "event:7", "market-type-template:1:18"]
    assert [name for name in names if Task.translations(api(kinds=[kind])).covers(name)] == covered


def test_what_bets_use_is_wanted_with_the_newest_events_first() -> None:
    wanted = Wanted.of(ALL, mention(OTHER, EVENT), set())
    assert wanted.events == wanted.markets == sorted([EVENT.id, OTHER.id], reverse=True)
    assert wanted.listed["league"] == {EVENT.league.id, OTHER.league.id}
    assert wanted.selections == sorted(m.selections[0] for e in (EVENT, OTHER) for m in e.markets)
    assert set(wanted.types) == {EVENT.league.sport.id, OTHER.league.sport.id}


def test_what_the_topic_has_is_wanted_by_a_full_run_only() -> None:
    present = keys_of(mention(EVENT))
    assert Wanted.of(ALL, mention(EVENT), present) == NOTHING
    assert Wanted.of(ALL, mention(EVENT), present, full=True) == Wanted.of(ALL, mention(EVENT), set())
    resumed = Wanted.of(ALL, mention(EVENT), present, full=True, resumed=True)
    assert (resumed.events, resumed.markets, resumed.selections, resumed.types) == ([], [], [], {})
    assert resumed.listed["league"] == {EVENT.league.id}, "its list may have had a part of its texts"


def test_one_missing_market_or_selection_is_reason_to_ask_about_its_event() -> None:
    whole, market = keys_of(mention(EVENT)), EVENT.markets[0]
    for missing in (f"market:{EVENT.id}:{market.id}", f"selection:{market.selections[0]}"):
        wanted = Wanted.of(ALL, mention(EVENT), whole - {missing.encode()})
        assert (wanted.events, wanted.markets) == ([], [EVENT.id])


def test_a_zero_alone_is_no_reason_to_ask_about_markets_again() -> None:
    used = Usage()
    used.add(bet([item(EVENT, market=None, selectionId=0)]))
    wanted = Wanted.of(ALL, used, set())
    assert wanted.events == wanted.markets == [EVENT.id]
    wanted = Wanted.of(ALL, used, {f"event:{EVENT.id}".encode()})
    assert wanted.events == wanted.markets == []


def test_what_is_owed_is_wanted_though_the_topic_has_it() -> None:
    owed = {"event:7", "markets:8", "league:9", "competitor:3", "selection-template:4"}
    owed |= {"market-type-template:1:2"}
    present = {name.encode() for name in owed}
    wanted = Wanted.of(ALL, Usage(), present, owed)
    assert (wanted.events, wanted.markets, wanted.selections, wanted.types) == ([7], [8], [4], {1: [2]})
    assert (wanted.listed["league"], wanted.listed["competitor"]) == ({9}, {3})
    assert Wanted.of(Task.translations(api(), kinds=["sport"]), Usage(), present, owed) == NOTHING


def test_a_selection_of_no_event_has_a_template_only() -> None:
    used = Usage()
    used.add(bet([item(None, selectionId=7)]))
    wanted = Wanted.of(ALL, used, set())
    assert (wanted.events, wanted.markets, wanted.selections) == ([], [], [7])


def test_events_given_by_hand_replace_events_only() -> None:
    wanted = Wanted.of(Task.translations(api(), events=[9, 5]), mention(EVENT), {b"event:5"})
    assert wanted.events == wanted.markets == [9, 5]
    assert len(wanted.selections) == len(EVENT.markets)


def test_kinds_that_are_left_out_are_not_asked_about() -> None:
    task = Task.translations(api(), kinds=["selection"])
    wanted = Wanted.of(task, mention(EVENT), set(), full=True)
    assert (task.lists, wanted) == ([], Wanted(NOTHING.listed, [], [EVENT.id], [], {}))


def test_chunks_have_a_hundred_ids_and_0_one_of_its_own() -> None:
    assert [len(chunk) for chunk in chunks(range(250))] == [1, 100, 100, 49]
    assert [*chunks([])] == []


def estimated(topic: Topic, used: Usage, *, full: bool = False, **chosen: Any) -> dict[str, Any]:
    settings = api(**chosen)
    job = Translations(settings, Task.translations(settings), topic.codec, topic.known(used, full))
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


def test_an_estimate_has_room_for_what_the_lists_may_lack_and_counts_sports() -> None:
    topic = Topic()
    topic[b"league:1"] = topic[b"sport:100"] = topic[b"sport:101"] = b"?"
    assert "/all/league/{leagueId}" not in estimated(topic, Usage())
    assert estimated(topic, Usage(), full=True)["/all/league/{leagueId}"] == (0, None)
    by_sport = {"leagues": {"sport": "{sportId}"}}
    sports = len({EVENT.league.sport.id, 100, 101})
    assert estimated(topic, mention(EVENT), query=by_sport)["/{lang}/leagues"] == (3 * sports, None)
    alone = estimated(topic, mention(EVENT), query=by_sport, kinds=["league"])
    assert alone["/{lang}/leagues"] == (3 * sports, 3 * sports)

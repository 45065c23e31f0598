"""What a run has to ask about, and how many questions that makes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.config.api import KINDS, Kind
from bridge.errors import SettingsError
from bridge.snapshots.plan import Estimate, FetchPlan, Scope, chunks, estimate
from bridge.snapshots.references import References
from tests.unit.snapshots.world import WORLD, api, bet, item, mention

EVENT, OTHER = WORLD.events[:2]
MARKET = EVENT.markets[0]
ALL = Scope.of(api())


def test_a_scope_without_choices_is_all() -> None:
    assert not ALL.narrowed
    assert (set(ALL.kinds), ALL.languages, ALL.events) == (set(KINDS), api().languages, None)
    assert not Scope.of(api(), kinds=KINDS, languages=api().languages).narrowed


def test_a_choice_narrows() -> None:
    assert Scope.of(api(), kinds=["sport"]).narrowed
    assert Scope.of(api(), events=[7]).narrowed
    chosen = Scope.of(api(), languages=["sv", "sv"])
    assert (chosen.narrowed, chosen.languages) == (True, ("sv",))


def test_a_language_that_the_settings_lack_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"--language fr is not one of api\.languages \(en, sv, de\)"):
        Scope.of(api(), languages=["sv", "fr"])


def test_kinds_that_the_settings_leave_out_are_not_missed() -> None:
    settings = api(kinds=["event", "sport"])
    assert (Scope.of(settings).narrowed, sorted(Scope.of(settings).kinds)) == (False, ["event", "sport"])
    assert Scope.of(settings, kinds=["sport"]).narrowed
    with pytest.raises(SettingsError, match=r"--kind market is not one of api\.kinds \(sport, event\)"):
        Scope.of(settings, kinds=["market"])


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
def test_what_a_scope_covers(kind: Kind, covered: list[str]) -> None:
    names = ["sport:3", "markets:7", "event:7", "market-type-template:1:18"]
    assert [name for name in names if Scope.of(api(kinds=[kind])).covers(name)] == covered


def test_languages_in_another_order_are_all_of_them() -> None:
    assert Scope.of(api(), languages=["de", "sv", "en"]) == ALL


def test_what_bets_mention_is_wanted_in_order() -> None:
    wants = FetchPlan.of(ALL, mention(OTHER, EVENT), set(), full=False)
    assert wants.events == wants.markets == sorted([EVENT.id, OTHER.id])
    assert wants.mentioned["league"] == sorted({EVENT.league.id, OTHER.league.id})
    assert list(wants.selection_templates) == sorted(
        m.selections[0] for e in (EVENT, OTHER) for m in e.markets
    )
    assert set(wants.market_type_templates) == {EVENT.league.sport.id, OTHER.league.sport.id}
    assert wants.lists == ["sport", "region", "league", "competitor"]


def test_what_the_topic_has_is_not_wanted() -> None:
    references = mention(EVENT)
    present = {key for kind in KINDS for key in references.keys(kind)}
    wants = FetchPlan.of(ALL, references, present, full=False)
    assert not any([wants.events, wants.markets, wants.selection_templates, wants.market_type_templates])
    assert not any(wants.mentioned.values())
    assert FetchPlan.of(ALL, references, present, full=True).events == [EVENT.id]


def test_one_missing_market_or_selection_is_reason_to_ask_about_its_event() -> None:
    references = mention(EVENT)
    whole = {key for kind in KINDS for key in references.keys(kind)}
    for missing in (f"market:{EVENT.id}:{MARKET.id}", f"selection:{MARKET.selections[0]}"):
        wants = FetchPlan.of(ALL, references, whole - {missing.encode()}, full=False)
        assert (wants.events, wants.markets) == ([], [EVENT.id])


def test_a_zero_alone_is_no_reason_to_ask_about_markets_again() -> None:
    references = References()
    references.add(bet([item(EVENT, market=None, selectionId=0)]))
    wants = FetchPlan.of(ALL, references, set(), full=False)
    assert wants.events == wants.markets == [EVENT.id]
    wants = FetchPlan.of(ALL, references, {f"event:{EVENT.id}".encode()}, full=False)
    assert wants.events == wants.markets == []


def test_what_is_owed_is_wanted_though_the_topic_has_it() -> None:
    owed = frozenset(
        [
            "event:7",
            "markets:8",
            "league:9",
            "competitor:3",
            "selection-template:4",
            "market-type-template:1:2",
        ]
    )
    present = {b"event:7", b"league:9", b"competitor:3", b"selection-template:4", b"market-type-template:1:2"}
    wants = FetchPlan.of(ALL, References(), present, full=False, owed=owed)
    assert (wants.events, wants.markets, wants.selection_templates) == ([7], [8], [4])
    assert wants.market_type_templates == {1: [2]}
    assert (wants.mentioned["league"], wants.mentioned["competitor"]) == ([9], [3])
    wants = FetchPlan.of(Scope.of(api(), kinds=["sport"]), References(), present, full=False, owed=owed)
    assert (wants.events, wants.markets, wants.selection_templates) == ((), (), [])
    assert (wants.market_type_templates, any(wants.mentioned.values())) == ({}, False)


def test_a_selection_of_no_event_has_a_template_only() -> None:
    references = References()
    references.add(bet([item(None, selectionId=7)]))
    wants = FetchPlan.of(ALL, references, set(), full=False)
    assert (wants.events, wants.markets, wants.selection_templates) == ([], [], [7])


def test_events_given_by_hand_replace_events_only() -> None:
    scope = Scope.of(api(), events=[9, 5])
    references = mention(EVENT)
    wants = FetchPlan.of(scope, references, {b"event:5"}, full=False)
    assert wants.events == wants.markets == [5, 9]
    assert len(wants.selection_templates) == len(EVENT.markets)
    assert wants.mentioned["sport"] == [EVENT.league.sport.id]


def test_kinds_that_are_left_out_are_not_asked_about() -> None:
    wants = FetchPlan.of(Scope.of(api(), kinds=["selection"]), mention(EVENT), set(), full=True)
    assert (wants.lists, wants.events, wants.markets) == ([], (), [EVENT.id])
    assert not any(wants.mentioned.values())
    assert (len(wants.selection_templates), len(wants.market_type_templates)) == (0, 0)
    with pytest.raises(SettingsError, match="--event asks for nothing"):
        Scope.of(api(), kinds=["sport"], events=[5])


def test_chunks_have_a_hundred_ids() -> None:
    assert [len(chunk) for chunk in chunks(range(250))] == [1, 100, 100, 49]
    assert [len(chunk) for chunk in chunks(list(range(1, 201)))] == [100, 100]
    assert list(chunks([])) == []


def test_an_estimate_counts_each_endpoint() -> None:
    references = mention(EVENT)
    for number in range(1, 151):
        references.add(bet([item(None, selectionId=number)]))
    rows = {row.endpoint: row for row in estimate(FetchPlan.of(ALL, references, set(), full=True))}
    assert len(rows) == 13
    prefix = "/api/translations"
    assert rows[f"{prefix}/{{lang}}/leagues"][1:] == (3, 3)
    assert rows[f"{prefix}/all/league/{{leagueId}}"][1:] == (0, 2)
    assert rows[f"{prefix}/all/competitor/{{competitorId}}"][1:] == (0, None)
    assert rows[f"{prefix}/all/event/{{eventId}}"][1:] == (1, 1)
    assert rows[f"{prefix}/all/{{eventId}}/markets"][1:] == (1, 1)
    assert rows[f"{prefix}/{{lang}}/{{eventId}}/markets"][1:] == (0, 3)
    assert rows[f"{prefix}/templates/selections"][1:] == (2, 2)
    assert rows[f"{prefix}/templates/market-types"][1:] == (1, 1)


def test_an_estimate_has_room_for_what_the_lists_may_lack() -> None:
    row = "/api/translations/all/league/{leagueId}"
    wants = FetchPlan.of(ALL, References(), {b"league:1"}, full=True)
    assert row not in [row.endpoint for row in estimate(wants)]
    wants = FetchPlan.of(ALL, References(), {b"league:1", b"sport:2"}, full=True, used={})
    assert list(wants.in_topic["league"]) == [1]
    assert Estimate(row, 0, None) in estimate(wants)


def test_an_estimate_counts_lists_that_go_by_sport() -> None:
    wants = FetchPlan.of(ALL, mention(EVENT), {b"sport:100", b"sport:101"}, full=True)
    row = "/api/translations/{lang}/leagues"
    sports = len({*wants.sports, 100, 101})
    assert Estimate(row, 3 * sports, None) in estimate(wants, lambda kind: kind == "league")
    alone = replace(wants, scope=Scope.of(api(), kinds=["league"]))
    count = sports * len(alone.scope.languages)
    assert Estimate(row, count, count) in estimate(alone, lambda kind: kind == "league")

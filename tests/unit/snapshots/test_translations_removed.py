"""What a run removes, and what stays although an answer lacks it."""

from __future__ import annotations

import pytest

from bridge.snapshots.forgotten import Vanished, forgotten
from bridge.snapshots.model import Translation
from bridge.snapshots.usage import Usage
from bridge_sandbox.provider.world.entities import Event, Indexed
from tests.unit.snapshots.world import (
    LANGUAGES,
    WORLD,
    Provider,
    alone,
    api,
    bet,
    first_run,
    item,
    mention,
    translate,
    written,
)

EVENT = WORLD.events[0]
LEAGUE, MARKET = EVENT.league, EVENT.markets[0]
OTHER = next(event for event in WORLD.events if event.league != LEAGUE)


BELIEVED = api(max_shrink_share=1)
"""However much a list lacks."""


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("sport", LEAGUE.sport.id),
        ("region", LEAGUE.region.id),
        ("league", LEAGUE.id),
        ("competitor", EVENT.competitors[0].id),
    ],
)
async def test_what_the_provider_knows_no_more_and_no_bet_mentions_is_removed(
    kind: Indexed, number: int
) -> None:
    provider, topic = await first_run(EVENT)
    provider.catalogue.remove(kind, number)
    for full in (False, True):
        outcome = await translate(provider, topic, mention(EVENT), full=full, settings=BELIEVED)
        assert (written(outcome), outcome.removed) == (set(), set())
    other = next(x for x in WORLD.events if unrelated(x))
    outcome = await translate(provider, topic, mention(other), settings=BELIEVED)
    assert outcome.removed == set()
    outcome = await translate(provider, topic, mention(EVENT, other), full=True, settings=BELIEVED)
    topic.pop(f"event:{EVENT.id}".encode())
    outcome = await translate(provider, topic, mention(other), full=True, settings=BELIEVED)
    assert f"{kind}:{number}".encode() in outcome.removed
    assert outcome.counts[kind].removed == 1
    assert any("records are removed, such as" in note for note in outcome.notes)
    again = await translate(provider, topic, mention(other), full=True, settings=BELIEVED)
    assert (written(again), again.removed) == (set(), set())


def unrelated(event: Event) -> bool:
    """Whether it has nothing in common with the other event."""
    league, members = event.league, {x.id for x in event.competitors}
    return (
        league.sport != LEAGUE.sport
        and league.region != LEAGUE.region
        and not members & {x.id for x in EVENT.competitors}
    )


async def test_a_name_in_any_language_is_a_sign_of_life() -> None:
    provider, topic = await first_run(EVENT, languages=("en", "sv", "de", "el"))
    provider.wrong["/leagues"] = lambda items: items[1:]
    provider.answers("all-league", {"id": WORLD.leagues[0].id, "translations": {"el": "x"}}, times=1)
    outcome = await translate(provider, topic, mention(), full=True, settings=BELIEVED)
    assert outcome.removed == set()
    assert provider.asked()["all-league"] == 1


async def test_a_list_that_shrinks_too_much_waits_for_a_second_full_run() -> None:
    provider, topic = await first_run()
    leagues = len(WORLD.leagues)
    for league in WORLD.leagues[1:]:
        provider.catalogue.remove("league", league.id)
    for full in (False, True, False):
        provider.asked()
        outcome = await translate(provider, topic, mention(), full=full)
        assert (outcome.removed, provider.asked()["all-league"]) == (set(), 0)
        lacking = f"the list of leagues lacks {leagues - 1} of its former {leagues}"
        assert any(lacking in note and "nothing is removed" in note for note in outcome.notes)
    outcome = await translate(provider, topic, mention(), full=True)
    assert outcome.removed == {f"league:{x.id}".encode() for x in WORLD.leagues[1:]}
    assert provider.asked()["all-league"] == leagues - 1
    outcome = await translate(provider, topic, mention(), full=True)
    assert (outcome.removed, topic.missing) == (set(), set())


MANY, OTHERS = frozenset(range(5)), frozenset(range(5, 10))


@pytest.mark.parametrize(
    ("runs", "gone", "waiting"),
    [
        ([(True, {3})], {3}, set()),
        ([(False, {3})], set(), set()),
        ([(True, MANY)], set(), MANY),
        ([(False, MANY)], set(), set()),
        ([(True, MANY), (False, MANY)], set(), MANY),
        ([(True, MANY), (False, MANY), (True, MANY)], MANY, MANY),
        ([(True, MANY), (True, MANY | {7})], MANY, MANY | {7}),
        ([(True, MANY), (True, set()), (True, MANY)], set(), MANY),
        ([(True, MANY), (False, set()), (True, MANY)], set(), MANY),
        ([(True, MANY), (True, OTHERS), (True, MANY)], set(), MANY),
    ],
)
def test_only_what_two_full_runs_in_a_row_missed_of_a_short_list_is_gone(
    runs: list[tuple[bool, set[int]]], gone: set[int], waiting: set[int]
) -> None:
    names, found = {"sport:3"}, set[int]()
    for full, missing in runs:
        vanished = Vanished(api(), names, full=full)
        found, names = vanished.believed("league", range(10), missing, "leagues"), vanished.missing
    assert (found, names) == (gone, {"sport:3", *(f"league:{number}" for number in waiting)})


def test_a_selection_that_bets_mention_is_kept_whichever_event_had_it() -> None:
    record, used = Translation("selection", 7, {"en": "x"}, event_id=OTHER.id), mention(EVENT)
    assert forgotten([record.key], {record.key: record}.get, used) == {record.key}
    used.add(bet([item(EVENT, selectionId=7)]))
    assert forgotten([record.key], {record.key: record}.get, used) == set()


async def test_what_an_event_names_is_not_gone() -> None:
    provider, topic = await first_run(EVENT)
    provider.wrong["/leagues"] = lambda items: [item for item in items if item["id"] != LEAGUE.id]
    provider.answers("all-league", {"id": LEAGUE.id, "translations": {}})
    event = alone(EVENT.id, place=(0, 0, 0))
    outcome = await translate(provider, topic, event, full=True, settings=BELIEVED)
    assert f"league:{LEAGUE.id}".encode() not in outcome.removed
    outcome = await translate(provider, topic, mention(), full=True, settings=BELIEVED)
    assert outcome.removed == {f"league:{LEAGUE.id}".encode()}


async def test_an_event_that_no_bet_mentions_goes_with_all_that_is_its_own() -> None:
    provider, topic = await first_run(EVENT, OTHER)
    before = set(topic)
    outcome = await translate(provider, topic, mention(OTHER))
    assert outcome.removed == set()
    outcome = await translate(provider, topic, mention(OTHER), full=True)
    own = {f"event:{EVENT.id}".encode()}
    for market in EVENT.markets:
        own.add(f"market:{EVENT.id}:{market.id}".encode())
        own |= {f"selection:{number}".encode() for number in market.selections}
        own.add(f"selection-template:{market.selections[0]}".encode())
    assert outcome.removed == own
    assert written(outcome) == set()
    assert set(topic) == before - own


async def test_nothing_is_forgotten_when_no_bet_mentions_an_event() -> None:
    provider, topic = await first_run(EVENT)
    outcome = await translate(provider, topic, Usage(), full=True)
    assert (outcome.written, outcome.removed) == ({}, set())


async def test_a_selection_that_has_moved_to_another_event_does_not_go_with_the_first() -> None:
    provider, topic = await first_run(EVENT)
    key = f"selection:{MARKET.selections[0]}"
    moved = {"id": MARKET.selections[0], "translations": {"en": "Moved"}}
    market = {"id": 5, "translations": {"en": "Market"}}
    provider.answers(
        "all-markets", [{"marketTypeId": 1, "marketTranslations": market, "selections": [moved]}]
    )
    outcome = await translate(provider, topic, mention(OTHER), full=True)
    assert (f"event:{EVENT.id}".encode() in outcome.removed, key.encode() in outcome.removed) == (True, False)
    assert topic.translation(key).texts == {"en": "Moved"}
    assert topic.translation(key).event_id == OTHER.id


@pytest.mark.parametrize("full", [False, True])
async def test_a_language_that_is_gone_from_everything_is_erased_by_a_full_run_only(full: bool) -> None:
    _, topic = await first_run(EVENT)
    outcome = await translate(Provider(languages=("en", "de")), topic, mention(EVENT), full=full)
    assert outcome.removed == set()
    of_bets = {f"event:{EVENT.id}", f"league:{LEAGUE.id}", f"market:{EVENT.id}:{MARKET.id}"}
    assert (of_bets <= written(outcome)) is full
    for key in of_bets:
        assert set(topic.translation(key).texts) == ({"en", "de"} if full else set(LANGUAGES))
    assert set(topic.translation(f"league:{OTHER.league.id}").texts) == set(LANGUAGES)


async def test_a_record_of_a_newer_kind_is_left_alone() -> None:
    provider, topic = await first_run(EVENT)
    datum = topic.codec.decode(topic[f"event:{EVENT.id}".encode()])
    topic[b"venue:7"] = topic.codec.encode({**datum, "kind": "venue", "id": 7})
    outcome = await translate(provider, topic, mention(EVENT), full=True)
    assert (outcome.written, outcome.removed) == ({}, set())
    assert outcome.counts["venue"].records == 1


async def test_a_record_that_cannot_be_read_is_reported_and_written_anew() -> None:
    provider, topic = await first_run(EVENT)
    whole = dict(topic)
    for key in (f"event:{EVENT.id}", f"league:{LEAGUE.id}", f"selection:{MARKET.selections[0]}"):
        topic[key.encode()] = topic[key.encode()][:-1]
    outcome = await translate(provider, topic, mention(EVENT), full=True)
    assert any(note.startswith("3 records of the topic cannot be read") for note in outcome.notes)
    assert outcome.removed == set()
    found, truth = topic.texts(), provider.truth()
    assert {key: found[key] for key in whole} == {key: truth[key] for key in whole}

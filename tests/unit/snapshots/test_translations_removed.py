"""What a run removes, and what stays although an answer lacks it."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
import pytest

from bridge.simulator.catalogue import Indexed
from bridge.simulator.rest_faults import RestFault
from bridge.simulator.world import Sizes, World
from bridge.snapshots.mentions import Mentions
from bridge.snapshots.wants import MOST_DOUBTED, Scope
from tests.unit.snapshots.world import (
    LANGUAGES,
    NOW,
    WORLD,
    Provider,
    Topic,
    api,
    bet,
    mention,
    translate,
    written,
)

EVENT = WORLD.events[0]
LEAGUE = EVENT.league
OTHER = next(event for event in WORLD.events if event.league != LEAGUE)


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize(
    ("kind", "number"),
    [
        ("sport", LEAGUE.sport.id),
        ("region", LEAGUE.region.id),
        ("league", LEAGUE.id),
        ("competitor", EVENT.competitors[0].id),
    ],
)
async def test_what_the_provider_knows_no_more_is_removed(kind: Indexed, number: int, full: bool) -> None:
    """One tombstone and nothing else, also where bets mention it; coverage counts it as missing."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    provider.catalogue.remove(kind, number)
    outcome = await translate(provider, topic, mention(EVENT), full=full)
    assert (written(outcome), outcome.removed) == (set(), {f"{kind}:{number}".encode()})
    assert outcome.counts[kind].removed == 1
    row = next(row for row in outcome.coverage if row.kind == kind)
    assert f"{kind}:{number}" in row.missing
    again = await translate(provider, topic, mention(EVENT), full=full)
    assert (written(again), again.removed) == (set(), set())


async def test_what_is_not_listed_but_known_by_id_stays() -> None:
    """A list may be one of what is active; its text is the one that the answer by id gives."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    lists(provider, "leagues", [])
    lists(provider, "sports", [{"id": LEAGUE.sport.id, "language": "en", "translation": "Sport"}])
    outcome = await translate(provider, topic, mention())
    assert outcome.removed == set()
    assert written(outcome) == {f"sport:{LEAGUE.sport.id}"}
    asked = provider.asked()
    assert asked["all-league"] == len(WORLD.leagues)
    assert asked["all-sport"] == len(WORLD.sports) - 1


async def test_a_name_in_any_language_is_a_sign_of_life() -> None:
    """Also where the run is narrowed, and leaves that language out."""
    provider, topic = Provider(languages=("en", "sv", "de", "el")), Topic()
    await translate(provider, topic, mention(EVENT))
    lists(
        provider, "leagues", [{"id": x.id, "language": "en", "translation": "x"} for x in WORLD.leagues[1:]]
    )
    greek = orjson.dumps({"id": WORLD.leagues[0].id, "translations": {"el": "x"}}).decode()
    provider.rest.inject(RestFault(endpoint="all-league", body=greek))
    outcome = await translate(provider, topic, mention(), scope=Scope.of(api(), kinds=["league"]))
    assert outcome.removed == set()


async def test_too_many_unlisted_things_wait_for_a_full_run() -> None:
    """They are more likely a list that is not whole, and would be asked about in every run."""
    world = World(7, NOW, Sizes(sports=2, regions=2, leagues=MOST_DOUBTED + 1, competitors=300, events=1))
    provider, topic = Provider(world=world), Topic()
    await translate(provider, topic, Mentions())
    lists(provider, "leagues", [])
    gone, *_, kept = (league.id for league in world.leagues)
    provider.catalogue.remove("league", gone)
    provider.asked()
    outcome = await translate(provider, topic, Mentions())
    assert (outcome.removed, provider.asked()["all-league"]) == (set(), 0)
    outcome = await translate(provider, topic, Mentions(), full=True)
    assert outcome.removed == {f"league:{gone}".encode()}
    assert provider.asked()["all-league"] == MOST_DOUBTED + 1
    provider.rest.faults.clear()
    provider.catalogue.remove("league", kept)
    outcome = await translate(provider, topic, Mentions())
    assert outcome.removed == {f"league:{kept}".encode()}


async def test_what_an_event_names_is_not_gone() -> None:
    """Though it is neither listed nor known by id; where no event was asked about, it is."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    others = [x.id for x in WORLD.leagues if x != LEAGUE]
    lists(provider, "leagues", [{"id": number, "language": "en", "translation": "x"} for number in others])
    nameless = orjson.dumps({"id": LEAGUE.id, "translations": {}}).decode()
    provider.rest.inject(RestFault(endpoint="all-league", body=nameless, times=None))
    scope = Scope.of(api(), kinds=["league", "event"], events=[EVENT.id])
    outcome = await translate(provider, topic, mention(), scope=scope)
    assert outcome.removed == set()
    outcome = await translate(provider, topic, mention())
    assert outcome.removed == {f"league:{LEAGUE.id}".encode()}


async def test_blank_texts_are_none() -> None:
    """A thing all of whose names are blank is gone, and a blank text erases none."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    blank = [{"id": LEAGUE.id, "language": "en", "translation": "  "}]
    others = [{"id": x.id, "language": "en", "translation": "x"} for x in WORLD.leagues if x != LEAGUE]
    lists(provider, "leagues", blank + others)
    outcome = await translate(provider, topic, mention())
    assert written(outcome) == {f"league:{x.id}" for x in WORLD.leagues if x != LEAGUE}
    assert set(topic.translation(f"league:{LEAGUE.id}").texts) == set(LANGUAGES)
    provider.rest.faults.clear()
    lists(provider, "leagues", others)
    nameless = orjson.dumps({"id": LEAGUE.id, "translations": {"en": "", "sv": " "}}).decode()
    provider.rest.inject(RestFault(endpoint="all-league", body=nameless, times=None))
    outcome = await translate(provider, topic, mention())
    assert outcome.removed == {f"league:{LEAGUE.id}".encode()}


async def test_an_event_that_no_bet_mentions_goes_with_all_that_is_its_own() -> None:
    """In a full run: its markets, selections and selection templates, nothing that others may use."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT, OTHER))
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


async def test_nothing_is_forgotten_when_no_bet_was_read() -> None:
    """Without any bet it is more likely that their topic is missing."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    outcome = await translate(provider, topic, Mentions(), full=True)
    assert (outcome.written, outcome.removed) == ({}, set())
    nothing = Mentions()
    nothing.add(bet())
    outcome = await translate(provider, topic, nothing, full=True)
    assert f"event:{EVENT.id}".encode() in outcome.removed


async def test_a_selection_that_has_moved_to_another_event_is_not_forgotten() -> None:
    """Whoever mentions its event now has its name."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    number = EVENT.markets[0].selections[0]
    moved = {"id": number, "translations": {"en": "Moved"}}
    market = {"id": 5, "translations": {"en": "Market"}}
    body = orjson.dumps([{"marketTypeId": 1, "marketTranslations": market, "selections": [moved]}]).decode()
    provider.rest.inject(RestFault(endpoint="all-markets", body=body, times=None))
    outcome = await translate(provider, topic, mention(OTHER), full=True)
    assert f"selection:{number}".encode() not in outcome.removed
    assert topic.translation(f"selection:{number}").event_id == OTHER.id


@pytest.mark.parametrize("full", [False, True])
async def test_a_language_that_is_gone_from_everything_is_erased_by_a_full_run_only(full: bool) -> None:
    """From all that it asked about in all languages; what only lists told keeps what it had."""
    topic = Topic()
    await translate(Provider(), topic, mention(EVENT))
    outcome = await translate(Provider(languages=("en", "de")), topic, mention(EVENT), full=full)
    assert outcome.removed == set()
    of_bets = {f"event:{EVENT.id}", f"league:{LEAGUE.id}", f"market:{EVENT.id}:{EVENT.markets[0].id}"}
    assert (of_bets <= written(outcome)) is full
    for key in of_bets:
        assert set(topic.translation(key).texts) == ({"en", "de"} if full else set(LANGUAGES))
    assert set(topic.translation(f"league:{OTHER.league.id}").texts) == set(LANGUAGES)


async def test_a_record_of_a_newer_kind_is_left_alone() -> None:
    """And counted."""
    provider, topic = Provider(), Topic()
    await translate(provider, topic, mention(EVENT))
    datum = topic.codec.decode(topic[f"event:{EVENT.id}".encode()])
    topic[b"venue:7"] = topic.codec.encode({**datum, "kind": "venue", "id": 7})
    outcome = await translate(provider, topic, mention(EVENT), full=True)
    assert (outcome.written, outcome.removed) == ({}, set())
    assert outcome.counts["venue"].records == 1


def lists(provider: Provider, endpoint: str, items: Sequence[object]) -> None:
    """From now on the endpoint gives that list, in whichever language."""
    provider.rest.inject(
        RestFault.model_validate({"endpoint": endpoint, "body": orjson.dumps(items).decode(), "times": None})
    )

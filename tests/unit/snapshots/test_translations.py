"""What a run of the translations publishes, and what it leaves as it is."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bridge.config.api import KINDS, LISTED
from bridge.snapshots.model import kind_of
from bridge.snapshots.published import Portion
from bridge.snapshots.translations import Translations
from bridge.snapshots.wanted import Task
from tests.unit.snapshots.world import (
    BOTH,
    LANGUAGES,
    WORLD,
    Provider,
    Topic,
    alone,
    api,
    at_the_end,
    first_run,
    keys,
    mention,
    translate,
    written,
)

EVENTS = WORLD.events
EVENT, OTHER = EVENTS[:2]
LEAGUE = EVENT.league
MARKET = EVENT.markets[0]


async def test_a_later_run_asks_about_new_ids_only() -> None:
    provider, topic = await first_run(EVENT)
    assert provider.asked()["all-event"] == 1
    await translate(provider, topic, mention(EVENT))
    assert provider.asked().keys() == {"sports", "regions", "leagues", "competitors"}
    await translate(provider, topic, mention(EVENT, OTHER))
    asked = provider.asked()
    assert (asked["all-event"], asked["all-markets"], asked["selection-templates"]) == (1, 1, 1)
    assert topic.translation(f"event:{OTHER.id}").texts == provider.truth()[f"event:{OTHER.id}".encode()]


@pytest.mark.parametrize(
    ("kind", "number", "full"),
    [
        ("league", LEAGUE.id, False),
        ("competitor", EVENT.competitors[0].id, False),
        ("event", EVENT.id, True),
        ("selection", MARKET.selections[0], True),
        ("selection-template", MARKET.selections[0], True),
    ],
)
async def test_a_new_name_is_one_record(kind: Any, number: int, full: bool) -> None:
    provider, topic = await first_run(EVENT)
    provider.catalogue.rename(kind, number, "Nytt", "sv")
    outcome = await translate(provider, topic, mention(EVENT), full=full)
    assert (written(outcome), outcome.removed) == ({f"{kind}:{number}"}, set())
    assert outcome.counts[kind].written == 1
    record = topic.translation(f"{kind}:{number}")
    assert record.texts == provider.truth()[record.key]
    assert record.texts["sv"] == "Nytt"
    assert topic.codec.decode(topic[record.key])["snapshotId"] == "snapshot-2"


async def test_a_run_says_whether_countries_are_regions_and_competitions_leagues() -> None:
    references = mention(EVENT, OTHER)
    outcome = await translate(Provider(), Topic(), references)
    assert "countryId is the region's id in all 2 events of this run" in outcome.notes
    assert "competitionId is the league's id in all 2 events of this run" in outcome.notes
    outcome = await translate(Provider(), Topic(), mention())
    assert not any("countryId" in note for note in outcome.notes)
    nowhere = alone(EVENT.id, place=(0, 0, 0))
    assert not (await translate(Provider(), Topic(), nowhere)).notes


async def test_texts_in_other_languages_are_kept_and_reported() -> None:
    settings = api(languages=("en", "xx"))
    topic = Topic()
    outcome = await translate(
        Provider(language_keys={"en": "en-GB"}), topic, mention(EVENT), settings=settings, full=True
    )
    assert topic.translation(f"event:{EVENT.id}").texts.keys() == {"en-GB", "sv", "de"}
    notes = "\n".join(outcome.notes)
    assert "texts in languages that are not in api.languages: de (" in notes
    assert "en-GB (" in notes
    assert "no text at all in xx" in notes


async def test_an_event_without_a_name_is_reported_and_still_says_who_takes_part() -> None:
    provider, topic = Provider(), Topic()
    provider.wrong["all/event/"] = lambda event: event["eventTranslation"].update(translations={"en": " "})
    outcome = await translate(provider, topic, mention(EVENT))
    record = topic.translation(f"event:{EVENT.id}")
    assert (record.texts, record.league_id) == ({}, LEAGUE.id)
    assert record.competitor_ids == [competitor.id for competitor in EVENT.competitors]
    assert f"1 events have no name, such as event:{EVENT.id}" in outcome.notes


async def test_everything_published_is_the_truth() -> None:
    """Each of the 13 endpoints has something that no other has."""
    provider, topic = await first_run(*EVENTS, **BOTH)
    truth, used = provider.truth(), keys(mention(*EVENTS))
    members = {f"competitor:{c.id}".encode() for event in EVENTS for c in event.competitors}
    for key in truth:
        if key.startswith(b"competitor:") and key not in members:
            del truth[key]["de"]  # what no event names is not asked about by id
    assert topic.texts() == {
        key: texts for key, texts in truth.items() if b"template" not in key or key in used
    }
    event = topic.translation(f"event:{EVENT.id}")
    sport = LEAGUE.sport.id
    assert (event.sport_id, event.region_id, event.league_id) == (sport, LEAGUE.region.id, LEAGUE.id)
    assert event.competitor_ids == [competitor.id for competitor in EVENT.competitors]
    for known in (f"market:{EVENT.id}:{MARKET.id}", f"selection:{MARKET.selections[0]}"):
        found = topic.translation(known)
        assert (found.event_id, found.market_type_id) == (EVENT.id, MARKET.type)
    template = topic.translation(f"market-type-template:{sport}:{MARKET.type}")
    assert (template.sport_id, template.market_type_id) == (sport, MARKET.type)


async def test_leagues_by_sport_are_listed_without_a_right_to_the_sports() -> None:
    provider = Provider(forbidden={"sports"})
    settings = api(query={"leagues": {"sport": "{sportId}"}})
    await translate(provider, Topic(), mention(EVENT), settings=settings)
    assert provider.asked()["leagues"] > 0


# A run that is narrowed changes nothing of what it leaves out.


async def changed(narrowing: dict[str, Any], full: bool) -> tuple[set[str], set[bytes], Topic]:
    """Keys that a narrowed run writes and removes, after everything has changed at the provider."""
    provider, topic = await first_run(EVENT)
    provider.catalogue.remove("league", LEAGUE.id)
    provider.catalogue.remove("competitor", EVENT.competitors[0].id)
    provider.catalogue.rename("event", EVENT.id, "Neu")
    provider.catalogue.rename("sport", LEAGUE.sport.id, "Neu")
    scope = Task.translations(api(), **narrowing)
    outcome = await translate(provider, topic, mention(EVENT, OTHER), full=full, scope=scope)
    return written(outcome), outcome.removed, topic


@pytest.mark.parametrize("kind", KINDS)
async def test_only_the_kind_that_was_asked_for_is_published(kind: str) -> None:
    topic = Topic()
    outcome = await translate(Provider(), topic, mention(EVENT), scope=Task.translations(api(), kinds=[kind]))
    assert {kind_of(key) for key in outcome.written} == {kind}


async def test_one_language() -> None:
    keys, removed, topic = await changed({"languages": ["sv"]}, True)
    assert removed == set()
    assert {f"event:{EVENT.id}", f"sport:{LEAGUE.sport.id}"} <= keys
    assert topic.translation(f"event:{OTHER.id}").texts.keys() == {"sv"}
    texts = topic.translation(f"event:{EVENT.id}").texts
    assert texts["sv"] == "Neu"
    assert "Neu" not in (texts["en"], texts["de"])
    assert all("sv" in topic.translation(key).texts for key in keys)


async def test_events_given_by_hand() -> None:
    provider, topic = Provider(), Topic()
    scope = Task.translations(api(), events=[OTHER.id])
    await translate(provider, topic, mention(EVENT), scope=scope)
    assert f"event:{OTHER.id}".encode() in topic
    assert f"market:{OTHER.id}:{OTHER.markets[0].id}".encode() in topic
    assert f"event:{EVENT.id}".encode() not in topic
    assert f"selection-template:{EVENT.markets[0].selections[0]}".encode() in topic
    assert f"league:{LEAGUE.id}".encode() in topic
    provider.asked()
    scope = Task.translations(api(), kinds=["event"], events=[OTHER.id])
    await translate(provider, topic, mention(EVENT), scope=scope)
    asked = provider.asked()
    assert (asked["all-event"], asked["all-markets"]) == (1, 0)
    keys, removed, _ = await changed({"events": [EVENT.id]}, True)
    assert {f"event:{EVENT.id}", f"sport:{LEAGUE.sport.id}"} <= keys
    assert f"event:{OTHER.id}" not in keys
    assert removed == set()


async def test_a_narrowed_full_run_forgets_nothing() -> None:
    _, topic = await first_run(EVENT)
    without = Provider(languages=("en", "de"))
    scope = Task.translations(api(), kinds=["event", "market"])
    outcome = await translate(without, topic, mention(OTHER), full=True, scope=scope)
    assert outcome.removed == set()
    scope = Task.translations(api(), events=[EVENT.id])
    outcome = await translate(without, topic, mention(OTHER), full=True, scope=scope)
    assert outcome.removed == set()
    assert topic.translation(f"event:{EVENT.id}").texts.keys() == set(LANGUAGES)


# In which order and how many at once the provider is asked.


def contradictory(shuffle: Random | None = None, **policy: Any) -> Provider:
    """Each event gives names of its own to one league, one region and one competitor."""

    def change(event: Any) -> dict[str, Any]:
        names = {"fr": f"of {event['eventTranslation']['id']}"}
        return {
            "eventTranslation": {**event["eventTranslation"], "translations": names},
            "sport": {"id": 1, "translations": names},
            "region": {"id": 100, "translations": names},
            "league": {"id": 5_000, "translations": names},
            "competitors": [{"id": 60_000, "translations": names}],
        }

    provider = Provider(shuffle, **policy)
    provider.wrong["all/event/"] = change
    return provider


@pytest.mark.parametrize("concurrency", [1, 2, 8])
async def test_an_outcome_does_not_depend_on_who_answers_first(concurrency: int) -> None:
    async def outcome(provider: Provider, topic: Topic, concurrency: int) -> Portion:
        return await translate(provider, topic, mention(*EVENTS), settings=api(concurrency=concurrency))

    topic = Topic()
    expected = await outcome(contradictory(**BOTH), topic, 1)
    said_first = Provider().truth()[b"league:5000"] | {"fr": f"of {EVENTS[-1].id}"}
    assert topic.translation("league:5000").texts == said_first
    others = [event for event in EVENTS if event.league.region.id != 100]
    assert expected.notes[0] == (
        f"countryId is NOT the region's id in {len(others)} of {len(EVENTS)} events "
        f"(event {others[-1].id}: countryId {others[-1].league.region.id}, region's id 100)"
    )
    assert expected.notes[1].startswith("competitionId is NOT the league's id in ")
    for seed in range(4):
        provider = contradictory(Random(seed), **BOTH)
        assert await outcome(provider, Topic(), concurrency) == expected
        assert min(concurrency, 2) <= provider.most_at_once <= concurrency


async def test_a_list_in_another_language_is_kept_under_that() -> None:
    provider = Provider()
    fallback = [{"id": 1, "language": "en", "translation": "Fallback"}]
    fallback += [{"id": 77, "language": "en", "translation": "Only there"}]
    provider.answers("sports", fallback, times=1, nth=2)
    topic = Topic()
    await translate(provider, topic, mention())
    texts = topic.translation("sport:1").texts
    assert texts.keys() == {"en", "de"}
    assert texts["en"] == provider.truth()[b"sport:1"]["en"]
    assert topic.translation("sport:77").texts == {"en": "Only there"}


async def test_nothing_is_asked_by_id_twice() -> None:
    provider, topic = await first_run(*EVENTS, **BOTH)
    provider.rest.requests.clear()
    for endpoint in ("sports", "regions", "leagues", "competitors"):
        provider.inject(endpoint, body="[]", times=None)
    await translate(provider, topic, mention(EVENTS[0]), full=True, settings=api(max_shrink_share=1))
    asked = [exchange.target for exchange in provider.rest.requests]
    assert len(asked) == len(set(asked))
    assert provider.asked()["all-competitor"] == len(WORLD.competitors)


async def test_progress_of_each_step_is_reported() -> None:
    reported: list[tuple[str, int, int]] = []
    topic = Topic()
    job = Translations(api(), topic.codec, topic.known(mention(*EVENTS[:3]), full=False))
    await job.run(Provider(Random(1)), "id", lambda *given: reported.append(given), at_the_end)
    steps = {what: total for what, _, total in reported}
    lists, templates = (f"{kind}s" for kind in LISTED), ("selection templates", "market type templates")
    assert [*steps] == [*lists, "events", "markets", *templates]
    assert steps["events"] == 3
    for step, total in steps.items():
        assert [done for what, done, _ in reported if what == step] == list(range(1, total + 1))

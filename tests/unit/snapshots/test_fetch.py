"""In which order and how many at once the provider is asked, and what comes of it."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from bridge.snapshots.published import Portion
from bridge.snapshots.translations import Translations
from tests.unit.snapshots.world import (
    BOTH,
    WORLD,
    Provider,
    Topic,
    api,
    first_run,
    mention,
    translate,
)

EVENTS = WORLD.events


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
    expected = await outcome(contradictory(**BOTH), 1)
    others = [event for event in EVENTS if event.league.region.id != 100]
    assert expected.notes[0] == (
        f"countryId is NOT the region's id in {len(others)} of {len(EVENTS)} events "
        f"(event {others[-1].id}: countryId {others[-1].league.region.id}, region's id 100)"
    )
    assert expected.notes[1].startswith("competitionId is NOT the league's id in ")
    for seed in range(8):
        provider = contradictory(Random(seed), **BOTH)
        assert await outcome(provider, concurrency) == expected
        assert min(concurrency, 2) <= provider.most_at_once <= concurrency


async def outcome(provider: Provider, concurrency: int) -> Portion:
    return await translate(provider, Topic(), mention(*EVENTS), settings=api(concurrency=concurrency))


async def test_what_was_said_first_stands() -> None:
    topic = Topic()
    await translate(contradictory(), topic, mention(*EVENTS))
    assert topic.translation("league:5000").texts == {
        **{language: WORLD_NAMES[language] for language in api().languages},
        "fr": f"of {EVENTS[-1].id}",
    }


WORLD_NAMES = Provider().truth()[b"league:5000"]


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


async def test_a_language_may_be_called_otherwise() -> None:
    provider = Provider(language_keys={"en": "en-GB", "sv": "swe"}, only_in_all={"sv"})
    settings = api(language_keys={"en-GB": "en", "swe": "sv"})
    topic = Topic()
    await translate(provider, topic, mention(EVENTS[0]), settings=settings)
    for key in (f"event:{EVENTS[0].id}", f"league:{EVENTS[0].league.id}"):
        assert topic.translation(key).texts == provider.truth()[key.encode()]
    assert provider.asked()["all-league"] == 0, "the event has its names in all languages"


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
    known = topic.known(mention(*EVENTS[:3]), full=False)
    job = Translations(api(), topic.codec, known)
    await job.run(Provider(Random(1)), "id", lambda what, done, of: reported.append((what, done, of)))
    steps = {what: total for what, _, total in reported}
    assert list(steps) == [
        *(f"{kind}s" for kind in ("sport", "region", "league", "competitor")),
        "events",
        "markets",
        "selection templates",
        "market type templates",
    ]
    assert steps["events"] == 3
    for step, total in steps.items():
        assert [done for what, done, _ in reported if what == step] == list(range(1, total + 1))

"""What a run of the translations publishes, and what it leaves as it is."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.snapshots.references import Place, References
from tests.unit.snapshots.world import WORLD, Provider, Topic, api, first_run, mention, translate, written

EVENT = WORLD.events[0]
LEAGUE = EVENT.league
MARKET = EVENT.markets[0]

POLICIES: list[dict[str, Any]] = [
    {},
    {"only_in_lists": {"sv"}},
    {"only_in_all": {"sv"}, "event_members": "ids"},
    {"only_in_lists": {"sv"}, "only_in_all": {"de"}},
]


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("policy", POLICIES)
async def test_a_second_run_writes_nothing(policy: dict[str, Any], full: bool) -> None:
    """While the provider's answers stay the same."""
    provider, topic, references = Provider(**policy), Topic(), mention(*WORLD.events[:4])
    first = await translate(provider, topic, references)
    assert len(first.written) > 200
    second = await translate(provider, topic, references, full=full)
    assert (written(second), second.removed) == (set(), set())
    assert second.counts["league"].records == len(WORLD.leagues)


async def test_what_is_no_longer_mentioned_keeps_its_texts() -> None:
    """It is not asked about by id any more, so a text that only this gave is not gone."""
    provider, topic = await first_run(EVENT, only_in_all={"sv"})
    assert "sv" in topic.translation(f"league:{LEAGUE.id}").texts
    other = next(event for event in WORLD.events if event.league != LEAGUE)
    again = await translate(provider, topic, mention(EVENT, other), full=False)
    assert f"league:{LEAGUE.id}" not in written(again)
    third = await translate(provider, topic, mention(other), full=True)
    assert not {key for key in written(third) if not key.startswith(("market", "selection"))}
    assert "sv" in topic.translation(f"league:{LEAGUE.id}").texts


async def test_a_later_run_asks_about_new_ids_only() -> None:
    """Lists are read anew, the rest is what bets mention and the topic does not have."""
    provider, topic = await first_run(EVENT)
    assert provider.asked()["all-event"] == 1
    await translate(provider, topic, mention(EVENT))
    assert provider.asked().keys() == {"sports", "regions", "leagues", "competitors"}
    other = WORLD.events[1]
    await translate(provider, topic, mention(EVENT, other))
    asked = provider.asked()
    assert (asked["all-event"], asked["all-markets"], asked["selection-templates"]) == (1, 1, 1)
    assert topic.translation(f"event:{other.id}").texts == provider.truth()[f"event:{other.id}".encode()]


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
    """Of what has a list in any run, of the rest when all is asked anew."""
    provider, topic = await first_run(EVENT)
    provider.catalogue.rename(kind, number, "Nytt", "sv")
    outcome = await translate(provider, topic, mention(EVENT), full=full)
    assert (written(outcome), outcome.removed) == ({f"{kind}:{number}"}, set())
    assert outcome.counts[kind].written == 1
    record = topic.translation(f"{kind}:{number}")
    assert record.texts == provider.truth()[record.key]
    assert record.texts["sv"] == "Nytt"
    assert topic.codec.decode(topic[record.key])["snapshotId"] == "snapshot-2"


async def test_a_failed_run_has_no_outcome_and_the_next_makes_up_for_it() -> None:
    """What would have been written is written then."""
    provider, topic = Provider(), Topic()
    provider.inject("competitors", status=500)
    with pytest.raises(Exception, match="500"):
        await translate(provider, topic, mention(EVENT))
    assert topic == {}
    await translate(provider, topic, mention(EVENT))
    assert f"selection-template:{MARKET.selections[0]}".encode() in topic


async def test_a_run_says_whether_countries_are_regions_and_competitions_leagues() -> None:
    """By the events it asked about; a bet that says nothing of it is no evidence."""
    references = mention(EVENT, WORLD.events[1])
    outcome = await translate(Provider(), Topic(), references)
    assert "countryId is the region's id in all 2 events of this run" in outcome.notes
    assert "competitionId is the league's id in all 2 events of this run" in outcome.notes
    outcome = await translate(Provider(), Topic(), mention())
    assert not any("countryId" in note for note in outcome.notes)
    nowhere = References(events={EVENT.id: Place(0, 0, 0)})
    assert not (await translate(Provider(), Topic(), nowhere)).notes


async def test_texts_in_other_languages_are_kept_and_reported() -> None:
    """They may be a language of the settings by another name, which is then missing."""
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
    settings = api(languages=("en",), language_keys={"en-GB": "en"})
    topic = Topic()
    outcome = await translate(
        Provider(language_keys={"en": "en-GB"}), topic, mention(EVENT), settings=settings
    )
    assert topic.translation(f"event:{EVENT.id}").texts.keys() == {"en", "sv", "de"}
    assert "no text at all" not in "\n".join(outcome.notes)


async def test_an_event_without_a_name_is_reported_and_still_says_who_takes_part() -> None:
    """Its record has no text."""
    body = '{"eventTranslation":{"id":%d,"translations":{"en":" "}},"sport":{"id":1,"translations":{}},'
    body += '"region":{"id":2,"translations":{}},"league":{"id":3,"translations":{}},"competitors":[]}'
    provider, topic = Provider(), Topic()
    provider.inject("all-event", body=body % EVENT.id)
    outcome = await translate(provider, topic, mention(EVENT))
    record = topic.translation(f"event:{EVENT.id}")
    assert (record.texts, record.sport_id, record.region_id, record.league_id) == ({}, 1, 2, 3)
    assert record.competitor_ids == []
    assert f"1 events have no name, such as event:{EVENT.id}" in outcome.notes

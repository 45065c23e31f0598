"""Names in every language."""

from __future__ import annotations

import re

import pytest

from bridge.sandbox.provider.world import translations
from bridge.sandbox.provider.world.entities import Region, World
from bridge.sandbox.provider.world.words import (
    CLUB,
    LANGUAGES,
    MARKET_TYPES,
    RACE,
    REGIONS,
    SELECTIONS,
    SPORTS,
    Language,
)


def test_every_language_has_words_of_its_own_with_the_same_placeholders() -> None:
    for words in (CLUB, RACE, *MARKET_TYPES.values(), *SELECTIONS.values()):
        assert len(set(words.values())) == len(LANGUAGES)
        assert len({frozenset(re.findall(r"{(\w+)}", text)) for text in words.values()}) == 1
    for table in (SPORTS, REGIONS):
        assert {len(set(table[language])) for language in LANGUAGES} == {len(table["en"])}
        assert len({table[language] for language in LANGUAGES}) == len(LANGUAGES)


def test_a_world_has_the_same_names_again(world: World) -> None:
    """They follow from the seed; another seed has other teams."""
    again, other = World(7, 1_790_000_000.0), World(8, 1_790_000_000.0)
    for language in LANGUAGES:
        told = [translations.event(event, language) for event in world.events]
        assert told == [translations.event(event, language) for event in again.events]
        assert told != [translations.event(event, language) for event in other.events]


def test_beyond_the_last_word_names_repeat_with_a_number(world: World) -> None:
    """The 21st region is the first again, with a number, in every language."""
    first, again = world.regions[0], Region(100 + len(REGIONS["en"]))
    assert translations.region(again, "sv") == f"{translations.region(first, 'sv')} 2" == "Sverige 2"


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_filled_in_template_is_the_name(world: World, language: Language) -> None:
    """With the market's properties and the event's competitors, for every market and selection."""
    for event in world.events[:200]:
        sides = {
            f"competitor{number}": translations.competitor(member, language)
            for number, member in enumerate(event.competitors, 1)
        }
        for market in event.markets:
            values = {**(market.properties or {}), **sides}
            template = translations.market_type_template(event.league.sport, market.type, language)
            assert template.format(**values) == translations.market(event, market, language)
            named = [
                translations.selection(event, market, i, language) for i in range(len(market.selections))
            ]
            assert len(set(named)) == len(named)
            assert named == [
                translations.selection_template(market.type, i, language).format(**values)
                for i in range(len(named))
            ]


def test_an_event_is_called_as_in_the_feed_in_english(world: World) -> None:
    """Matches and races; an outright is named after its league."""
    for event in world.events:
        if event.is_outright:
            assert translations.event(event, "en").startswith(translations.league(event.league, "en"))
        else:
            assert translations.event(event, "en") == event.name

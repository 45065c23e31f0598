"""Names in every language."""

from __future__ import annotations

import re

import pytest

from bridge_sandbox.provider.world.entities import Selection, SelectionTemplate, World
from bridge_sandbox.provider.world.words import (
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


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_filled_in_template_is_the_name(world: World, language: Language) -> None:
    for event in world.events[:200]:
        sides = {f"competitor{i}": member.text(language) for i, member in enumerate(event.competitors, 1)}
        templates = {template.id: template.text(language) for template in event.league.sport.templates()}
        for market in event.markets:
            values = {**(market.properties or {}), **sides}
            assert templates[market.type].format(**values) == market.text(language)
            numbers = list(enumerate(market.selections))
            named = [Selection(number, market, i).text(language) for i, number in numbers]
            assert len(set(named)) == len(named)
            asked = [SelectionTemplate(number, market, i).text(language) for i, number in numbers]
            assert named == [template.format(**values) for template in asked]

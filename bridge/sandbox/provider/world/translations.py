"""Names in every language, as pure functions of the thing and of the language.

A thing follows from the seed, its kind and its id, so its names do too. A market's name is the template
of its type with the market's properties filled in, as is a selection's: a filled-in template equals the
name from the event's own endpoint.
"""

from __future__ import annotations

from bridge.sandbox.provider.world import entities as world
from bridge.sandbox.provider.world import words
from bridge.sandbox.provider.world.words import Language

_WORDED = {18: ("over", "under"), 29: ("yes", "no")}
"""The market types whose selections are words, in the order of the selections."""
_RESULT, _HANDICAP, _SCORE = 1, 16, 40
_GOALS = 5


def sport(sport: world.Sport, language: Language) -> str:
    """Such as `Fotboll`, in Swedish."""
    return words.name(words.SPORTS[language], sport.id - world.FIRST_SPORT)


def region(region: world.Region, language: Language) -> str:
    """Such as `Schweden`, in German."""
    return words.name(words.REGIONS[language], region.id - world.FIRST_REGION)


def league(league: world.League, language: Language) -> str:
    """The league's own name with its region: several regions have a Premier League."""
    return f"{league.name} ({region(league.region, language)})"


def competitor(competitor: world.Competitor, language: Language) -> str:
    """The competitor's own name, marked by language."""
    return words.CLUB[language].format(competitor.name)


def event(event: world.Event, language: Language) -> str:
    """Both teams, the race, or the league whose winner is bet on."""
    if event.is_outright:
        return f"{league(event.league, language)} – {words.MARKET_TYPES[301][language]}"
    if event.league.sport.is_race:
        return words.RACE[language].format(event.name)
    return " – ".join(competitor(member, language) for member in event.competitors)


def market_type_template(sport_: world.Sport, market_type: int, language: Language) -> str:
    """Such as `Football: Total {total}`. Sports differ in what they call a market type."""
    return f"{sport(sport_, language)}: {words.MARKET_TYPES[market_type][language]}"


def market(event: world.Event, market: world.Market, language: Language) -> str:
    """Such as `Football: Total 2.5`; another line has another name."""
    template = market_type_template(event.league.sport, market.type, language)
    return template.format_map(market.properties or {})


def selection_template(market_type: int, index: int, language: Language) -> str:
    """Such as `Over {total}` or `{competitor1}`, for the selection at `index` (from 0) of a market.

    Placeholders are the market's properties and the event's competitors, numbered from 1.
    """
    if worded := _WORDED.get(market_type):
        return words.SELECTIONS[worded[index]][language]
    if market_type == _SCORE:
        home, away = divmod(index, _GOALS)
        return f"{home}:{away}"
    if market_type == _HANDICAP:
        return f"{{competitor{index + 1}}} [{{handicap}}]"
    if market_type == _RESULT:
        return ("{competitor1}", words.SELECTIONS["draw"][language], "{competitor2}")[index]
    return f"{{competitor{index + 1}}}"


def selection(event: world.Event, market: world.Market, index: int, language: Language) -> str:
    """Such as `Over 2.5`, for the selection at `index` (from 0) of the market."""
    values = dict(market.properties or {})
    for number, member in enumerate(event.competitors, 1):
        values[f"competitor{number}"] = competitor(member, language)
    return selection_template(market.type, index, language).format_map(values)

"""The entities of the REST side by kind and id, and the changes to them.

The ids are those of the feed. Texts are generated on demand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from bridge.sandbox.provider.world import translations
from bridge.sandbox.provider.world.entities import (
    SELECTIONS_A_MARKET,
    Competitor,
    Event,
    League,
    Market,
    Sport,
    World,
    market_types,
)
from bridge.sandbox.provider.world.words import Language

Indexed = Literal["sport", "region", "league", "competitor", "event"]
"""The kinds whose ids are unique."""
Kind = Literal[Indexed, "market", "selection", "selection-template", "market-type-template"]
LISTED: frozenset[Kind] = frozenset({"sport", "region", "league", "competitor", "market", "selection"})
"""The kinds with endpoints of one language; the others have only endpoints of all languages."""

Relations = Mapping[str, int | tuple[int, ...]]
"""The ids of related entities: `sportId`, `regionId`, `leagueId`, `eventId`, `marketId`, `marketTypeId`, and
the `competitorIds` of an event."""


class Unknown(LookupError):
    """The catalogue has no entity of that kind with that id, or no such language."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An entity with a name in every language."""

    kind: Kind
    id: int
    """For a market type template the id of the market type, unique within its sport."""
    name: Callable[[Language], str]
    """Its name before any rename."""
    relations: Relations = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Known:
    """The truth about one entity: what all endpoints together return."""

    kind: Kind
    id: int
    texts: dict[Language, str]
    relations: Relations


class Catalogue:
    """Every entry of a world. `rename` and `remove` change later answers.

    Of `languages`, those of `only_in_lists` are missing where an endpoint returns all languages, those of
    `only_in_all` where it returns one.
    """

    def __init__(
        self,
        world: World,
        languages: tuple[Language, ...],
        *,
        only_in_lists: frozenset[Language] = frozenset(),
        only_in_all: frozenset[Language] = frozenset(),
    ) -> None:
        self.languages_of_lists = tuple(x for x in languages if x not in only_in_all)
        self.languages_of_all = tuple(x for x in languages if x not in only_in_lists)
        self._languages = languages
        self._sports = {sport.id: sport for sport in world.sports}
        self._events = {event.id: event for event in world.events}
        self._markets = {market.id: market for event in world.events for market in event.markets}
        self._entries: dict[Indexed, dict[int, Entry]] = {
            "sport": {x.id: Entry("sport", x.id, partial(translations.sport, x)) for x in world.sports},
            "region": {x.id: Entry("region", x.id, partial(translations.region, x)) for x in world.regions},
            "league": {x.id: _league(x) for x in world.leagues},
            "competitor": {x.id: _competitor(x) for x in world.competitors},
            "event": {x.id: _event(x) for x in world.events},
        }
        self.changes = 0
        """Number of renames and removals."""
        self._renamed: dict[tuple[Kind, int], dict[Language, str]] = {}
        self._removed: set[tuple[Kind, int]] = set()

    def rename(self, kind: Kind, number: int, text: str, language: Language | None = None) -> None:
        """Rename an entity, in one language or in all of them.

        Nothing else changes, not even the names of events in which it takes part. A market type template
        is renamed in every sport. Raises Unknown.
        """
        self._demand(kind, number)
        if language not in (None, *self._languages):
            raise Unknown(f"there is no language {language}, only {', '.join(self._languages)}")
        self.changes += 1
        changed = self._languages if language is None else (language,)
        self._renamed.setdefault((kind, number), {}).update(dict.fromkeys(changed, text))

    def remove(self, kind: Kind, number: int) -> None:
        """Remove an entity. What refers to it keeps its id and has no name for it.

        Raises Unknown.
        """
        self._demand(kind, number)
        self.changes += 1
        self._removed.add((kind, number))

    def text(self, entry: Entry, language: Language) -> str:
        """Return the current name of an entity."""
        renamed = self._renamed.get((entry.kind, entry.id), {})
        return renamed[language] if language in renamed else entry.name(language)

    def texts(self, entry: Entry) -> dict[Language, str]:
        """Return the current names of an entity, in the languages of the endpoints of all languages."""
        return {language: self.text(entry, language) for language in self.languages_of_all}

    def entries(self, kind: Indexed) -> list[Entry]:
        """Return all entities of a kind, by id."""
        return self._present(self._entries[kind].values())

    def entry(self, kind: Indexed, number: int) -> Entry | None:
        """Return the entity with this id, or None."""
        return None if (kind, number) in self._removed else self._entries[kind].get(number)

    def markets(self, event_id: int) -> list[tuple[Entry, list[Entry]]]:
        """Return the markets of a known event, each with its selections, by id."""
        event = self._events[event_id]
        return [
            (entry, self._present(_selections(event, market)))
            for market in event.markets
            for entry in self._present([_market(event, market)])
        ]

    def selection_template(self, selection_id: int) -> Entry | None:
        """Return the template of a selection, or None."""
        market = self._markets.get(selection_id // SELECTIONS_A_MARKET)
        found = _selection_templates(market) if market else ()
        return next((entry for entry in self._present(found) if entry.id == selection_id), None)

    def market_type_template(self, sport_id: int, market_type: int) -> Entry | None:
        """Return the template of a market type in a sport, or None."""
        sport = self._sports.get(sport_id)
        found = _market_type_templates(sport) if sport else ()
        return next((entry for entry in self._present(found) if entry.id == market_type), None)

    def truth(self) -> Iterator[Known]:
        """Generate the current truth, kind by kind."""
        for entry in self._all():
            languages = self._languages if entry.kind in LISTED else self.languages_of_all
            texts = {language: self.text(entry, language) for language in languages}
            yield Known(entry.kind, entry.id, texts, entry.relations)

    def _demand(self, kind: Kind, number: int) -> None:
        if not any((entry.kind, entry.id) == (kind, number) for entry in self._all()):
            raise Unknown(f"there is no {kind} {number}")

    def _all(self) -> Iterator[Entry]:
        for kind in self._entries:
            yield from self.entries(kind)
        for event in self.entries("event"):
            for market, selections in self.markets(event.id):
                yield from (market, *selections)
        for sport in self._sports.values():
            yield from self._present(_market_type_templates(sport))
        for known in self._markets.values():
            yield from self._present(_selection_templates(known))

    def _present(self, entries: Iterable[Entry]) -> list[Entry]:
        return [entry for entry in entries if (entry.kind, entry.id) not in self._removed]


def _league(league: League) -> Entry:
    relations: Relations = {"sportId": league.sport.id, "regionId": league.region.id}
    return Entry("league", league.id, partial(translations.league, league), relations)


def _competitor(competitor: Competitor) -> Entry:
    relations: Relations = {"sportId": competitor.league.sport.id, "leagueId": competitor.league.id}
    return Entry("competitor", competitor.id, partial(translations.competitor, competitor), relations)


def _event(event: Event) -> Entry:
    league = event.league
    relations: Relations = {
        "sportId": league.sport.id,
        "regionId": league.region.id,
        "leagueId": league.id,
        "competitorIds": tuple(member.id for member in event.competitors),
    }
    return Entry("event", event.id, partial(translations.event, event), relations)


def _market(event: Event, market: Market) -> Entry:
    relations: Relations = {"eventId": event.id, "marketTypeId": market.type}
    return Entry("market", market.id, partial(translations.market, event, market), relations)


def _selections(event: Event, market: Market) -> Iterator[Entry]:
    relations: Relations = {"eventId": event.id, "marketId": market.id, "marketTypeId": market.type}
    for index, number in enumerate(market.selections):
        yield Entry("selection", number, partial(translations.selection, event, market, index), relations)


def _selection_templates(market: Market) -> Iterator[Entry]:
    for index, number in enumerate(market.selections):
        name = partial(translations.selection_template, market.type, index)
        yield Entry("selection-template", number, name, {"marketTypeId": market.type})


def _market_type_templates(sport: Sport) -> Iterator[Entry]:
    for number in market_types(sport):
        name = partial(translations.market_type_template, sport, number)
        yield Entry("market-type-template", number, name, {"sportId": sport.id, "marketTypeId": number})

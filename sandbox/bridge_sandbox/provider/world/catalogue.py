"""The entities of the REST side by kind and id, and the changes to them.

The ids are those of the feed. Texts of a world are generated on demand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from bridge_sandbox.provider.world.entities import (
    SELECTIONS_A_MARKET,
    Entity,
    Indexed,
    Kind,
    Relations,
    Selection,
    SelectionTemplate,
    World,
)
from bridge_sandbox.provider.world.words import Language

LISTED: frozenset[Kind] = frozenset({"sport", "region", "league", "competitor", "market", "selection"})
"""The kinds with endpoints of one language; the others have only endpoints of all languages."""


class Unknown(LookupError):
    """The catalogue has no entity of that kind with that id, or no such language."""


@dataclass(frozen=True, slots=True)
class Known:
    """The truth about one entity: what all endpoints together return."""

    kind: Kind
    id: int
    texts: dict[Language, str]
    relations: Relations


class Catalogue:
    """Entities with their names. `rename` and `remove` change later answers.

    Of `languages`, those of `only_in_lists` are missing where an endpoint returns all languages, those of
    `only_in_all` where it returns one.
    """

    def __init__(
        self,
        indexed: Mapping[Indexed, Mapping[int, Entity]],
        languages: tuple[Language, ...],
        *,
        only_in_lists: frozenset[Language] = frozenset(),
        only_in_all: frozenset[Language] = frozenset(),
    ) -> None:
        self.languages_of_lists = tuple(x for x in languages if x not in only_in_all)
        self.languages_of_all = tuple(x for x in languages if x not in only_in_lists)
        self._languages = languages
        self._indexed = indexed
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

    def text(self, entity: Entity, language: Language) -> str:
        """Return the current name of an entity; empty without one in this language."""
        renamed = self._renamed.get((entity.kind, entity.id), {})
        return renamed[language] if language in renamed else entity.text(language)

    def texts(self, entity: Entity) -> dict[Language, str]:
        """Return the current names of an entity, in the languages of the endpoints of all languages."""
        return self._texts(entity, self.languages_of_all)

    def _texts(self, entity: Entity, languages: Iterable[Language]) -> dict[Language, str]:
        return {language: text for language in languages if (text := self.text(entity, language))}

    def entries(self, kind: Indexed) -> list[Entity]:
        """Return all entities of a kind, by id."""
        return self._present(self._indexed[kind].values())

    def entry(self, kind: Indexed, number: int) -> Entity | None:
        """Return the entity with this id, or None."""
        return None if (kind, number) in self._removed else self._indexed[kind].get(number)

    def markets(self, event_id: int) -> list[tuple[Entity, list[Entity]]]:
        """Return the markets of a known event, each with its selections, by id."""
        raise NotImplementedError

    def selection_templates(self, ids: Iterable[int]) -> list[Entity]:
        """Return the templates of the selections that exist."""
        raise NotImplementedError

    def market_type_templates(self, sport_id: int, ids: Iterable[int]) -> list[Entity]:
        """Return the templates of the market types that a sport has."""
        raise NotImplementedError

    def truth(self) -> Iterator[Known]:
        """Generate the current truth, kind by kind."""
        for entity in self._all():
            languages = self._languages if entity.kind in LISTED else self.languages_of_all
            yield Known(entity.kind, entity.id, self._texts(entity, languages), entity.relations)

    def _demand(self, kind: Kind, number: int) -> None:
        if not any((entity.kind, entity.id) == (kind, number) for entity in self._all()):
            raise Unknown(f"there is no {kind} {number}")

    def _all(self) -> Iterator[Entity]:
        raise NotImplementedError

    def _present(self, entities: Iterable[Entity]) -> list[Entity]:
        return [entity for entity in entities if (entity.kind, entity.id) not in self._removed]


class WorldCatalogue(Catalogue):
    """Every entity of a world."""

    def __init__(self, world: World, languages: tuple[Language, ...], **only: frozenset[Language]) -> None:
        groups: Sequence[Sequence[Entity]] = (
            world.sports,
            world.regions,
            world.leagues,
            world.competitors,
            world.events,
        )
        indexed = {
            kind: {x.id: x for x in group} for kind, group in zip(get_args(Indexed), groups, strict=True)
        }
        super().__init__(indexed, languages, **only)
        self._events = {event.id: event for event in world.events}
        self._sports = {sport.id: sport for sport in world.sports}
        self._markets = {market.id: market for event in world.events for market in event.markets}

    def markets(self, event_id: int) -> list[tuple[Entity, list[Entity]]]:
        """Return the markets of a known event, each with its selections, by id."""
        return [
            (market, self._present(Selection(id_, market, i) for i, id_ in enumerate(market.selections)))
            for market in self._events[event_id].markets
            if self._present([market])
        ]

    def selection_templates(self, ids: Iterable[int]) -> list[Entity]:
        """Return the templates of the selections that exist."""
        return self._present(
            SelectionTemplate(number, market, number % SELECTIONS_A_MARKET)
            for number in ids
            if (market := self._markets.get(number // SELECTIONS_A_MARKET)) and number in market.selections
        )

    def market_type_templates(self, sport_id: int, ids: Iterable[int]) -> list[Entity]:
        """Return the templates of the market types that a sport has."""
        sport = self._sports.get(sport_id)
        found = {template.id: template for template in sport.templates()} if sport else {}
        return self._present(found[number] for number in ids if number in found)

    def _all(self) -> Iterator[Entity]:
        for kind in get_args(Indexed):
            yield from self.entries(kind)
        for event in self.entries("event"):
            for market, selections in self.markets(event.id):
                yield from (market, *selections)
        for sport in self._sports.values():
            yield from self._present(sport.templates())
        for known in self._markets.values():
            yield from self.selection_templates(known.selections)

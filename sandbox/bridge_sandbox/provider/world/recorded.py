"""Recorded translations and currencies, in place of the names of a world."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import new_class
from typing import Any, cast, get_args

from bridge_sandbox.provider.avro_files import AvroFile, Datum, files_in
from bridge_sandbox.provider.world.catalogue import Catalogue
from bridge_sandbox.provider.world.currencies import Currency
from bridge_sandbox.provider.world.entities import Entity, Indexed, Kind, Relations
from bridge_sandbox.provider.world.words import Language

_TRANSLATION, _CURRENCY = "settlement.Translation", "settlement.Currency"
_RELATIONS = ("eventId", "sportId", "regionId", "leagueId", "competitorIds", "marketTypeId")


class Names:
    """The records of Avro files, or of directories of them. Raises RecordingError."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.translations: list[Datum] = []
        self.currencies: list[Currency] = []
        for path in files_in(paths):
            file = AvroFile(path, _TRANSLATION, _CURRENCY)
            for _, _, records in file.blocks():
                if file.name == _TRANSLATION:
                    self.translations += records
                else:
                    sent = (file.as_sent(record, 0, 0) for record in records)
                    self.currencies += (Currency(it["symbol"], it["type"], it["precision"]) for it in sent)


@dataclass(frozen=True)
class _Recorded(Entity, kind="sport"):
    record: Datum

    def text(self, language: Language) -> str:
        """Return the recorded name; empty without one."""
        text: str = self.record["translations"].get(language, "")
        return text

    @property
    def relations(self) -> Relations:
        """The ids of related entities, as far as they were recorded."""
        return {name: self.record[name] for name in _RELATIONS if self.record[name] is not None}


_CLASSES: dict[Kind, Any] = {kind: new_class(kind, (_Recorded,), {"kind": kind}) for kind in get_args(Kind)}
_WITHIN: dict[Kind, str] = {
    "market": "eventId",
    "selection": "eventId",
    "market-type-template": "sportId",
}
"""The kinds that are asked for by what they belong to."""


class RecordedCatalogue(Catalogue):
    """Every entity of recorded translations, in their languages."""

    def __init__(self, translations: Iterable[Datum], **only: frozenset[Language]) -> None:
        self._named: dict[tuple[Kind, int | None], dict[int, Entity]] = defaultdict(dict)
        """Kind and what the entities belong to → id → entity."""
        languages: set[str] = set()
        for record in sorted(translations, key=itemgetter("id")):  # of two of an entity the last one counts
            kind = record["kind"]
            if kind in _CLASSES:  # a later bridge may know more of them
                within = record[_WITHIN[kind]] if kind in _WITHIN else None
                self._named[kind, within][record["id"]] = _CLASSES[kind](record["id"], record)
                languages |= record["translations"].keys()
        indexed = {kind: self._named[kind, None] for kind in get_args(Indexed)}
        super().__init__(indexed, cast("tuple[Language, ...]", tuple(sorted(languages))), **only)

    def markets(self, event_id: int) -> list[tuple[Entity, list[Entity]]]:
        """Return the markets of an event; the first of a type has all selections of that type.

        No record says which of several, such as lines of a total, has them.
        """
        left = self._present(self._named.get(("selection", event_id), {}).values())
        found: list[tuple[Entity, list[Entity]]] = []
        for market in self._present(self._named.get(("market", event_id), {}).values()):
            of_type = market.relations.get("marketTypeId")
            found.append((market, [each for each in left if each.relations.get("marketTypeId") == of_type]))
            left = [each for each in left if each.relations.get("marketTypeId") != of_type]
        return found

    def selection_templates(self, ids: Iterable[int]) -> list[Entity]:
        """Return the templates of the selections that exist."""
        return self._picked("selection-template", None, ids)

    def market_type_templates(self, sport_id: int, ids: Iterable[int]) -> list[Entity]:
        """Return the templates of the market types that a sport has."""
        return self._picked("market-type-template", sport_id, ids)

    def _picked(self, kind: Kind, within: int | None, ids: Iterable[int]) -> list[Entity]:
        known = self._named.get((kind, within), {})
        return self._present(known[number] for number in ids if number in known)

    def _all(self) -> Iterator[Entity]:
        for entities in self._named.values():
            yield from self._present(entities.values())

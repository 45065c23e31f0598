"""The ids that settled bets refer to, and that readers of the topic need names for.

0 counts as an id: the interface does not say that it stands for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from bridge.avro.schemas import Schema, load
from bridge.config.api import LISTED, Kind, Listed
from bridge.rest.endpoints import MAX_SYMBOL_CHARACTERS
from bridge.snapshots.model import Job, key_of

Fields = Mapping[str, "Fields"]
"""Names of fields of a record, and of the records within."""

_FIELDS: Final[dict[Job, Fields]] = {
    "translations": {
        "selections": {
            "event": {"id": {}},
            "market": {"id": {}, "type": {}},
            "selectionId": {},
            "competitionId": {},
            "countryId": {},
            "sportId": {},
            "betBuilderItems": {"market": {}, "selectionId": {}},
        }
    },
    "currencies": {"amount": {"currency": {}}},
}


def references_schema(job: Job) -> Schema:
    """Return a reader schema for settled bets, with the fields that a job needs."""
    found: Schema = _only(load("settled-bet"), _FIELDS[job])
    return found


def _only(schema: Any, fields: Fields) -> Any:
    match schema:
        case {"type": "record"}:
            kept = [x for x in schema["fields"] if x["name"] in fields]
            return schema | {"fields": [x | {"type": _only(x["type"], fields[x["name"]])} for x in kept]}
        case {"type": "array"}:
            return schema | {"items": _only(schema["items"], fields)}
        case list():
            return [_only(branch, fields) for branch in schema]
    return schema


class Place(NamedTuple):
    """Sport, competitionId and countryId of an event, according to its bets."""

    sport: int
    competition: int
    country: int


@dataclass(slots=True)
class References:
    """The ids that bets mention."""

    listed: dict[Listed, set[int]] = field(default_factory=lambda: {kind: set() for kind in LISTED})
    """Ids of the kinds with lists; none of competitors."""
    events: dict[int, Place] = field(default_factory=dict)
    """Event → its place in the last bet on it."""
    markets: dict[int, set[int]] = field(default_factory=dict)
    """Event → its markets."""
    selections: dict[int | None, set[int]] = field(default_factory=dict)
    """Event → its selections; None → selections without an event."""
    market_types: set[tuple[int, int]] = field(default_factory=set)
    """Sport and market type."""
    currencies: set[str] = field(default_factory=set)
    """Symbols. Longer texts than any symbol are ignored: a bet may hold megabytes."""

    def add(self, bet: Mapping[str, Any]) -> None:
        """Add a settled bet, decoded with a `references_schema`."""
        amount = bet.get("amount")
        symbol = amount and amount["currency"]
        if symbol and len(symbol) <= MAX_SYMBOL_CHARACTERS:
            self.currencies.add(symbol)
        for item in bet.get("selections") or ():
            self._add_item(item)

    def keys(self, kind: Kind) -> Iterator[bytes]:
        """Yield the keys of a kind that a join of these bets looks up; none for competitors."""
        match kind:
            case "sport" | "region" | "league" | "competitor":
                yield from (key_of(kind, number) for number in self.listed[kind])
            case "event":
                yield from (key_of(kind, number) for number in self.events)
            case "market":
                yield from (key_of(kind, m, event) for event, found in self.markets.items() for m in found)
            case "selection" | "selection-template":
                yield from (key_of(kind, number) for number in self.all_selections())
            case "market-type-template":
                yield from (key_of(kind, number, sport) for sport, number in self.market_types)

    def all_selections(self) -> set[int]:
        """Return all selections, with and without an event."""
        return set().union(*self.selections.values())

    def _add_item(self, item: Mapping[str, Any]) -> None:
        sport, league, region = item["sportId"], item["competitionId"], item["countryId"]
        self.listed["sport"].add(sport)
        self.listed["league"].add(league)
        self.listed["region"].add(region)
        event = item["event"]["id"] if item["event"] else None
        if event is not None:
            self.events[event] = Place(sport, league, region)
        for part in (item, *(item["betBuilderItems"] or ())):
            if market := part["market"]:
                if event is not None:
                    self.markets.setdefault(event, set()).add(market["id"])
                self.market_types.add((sport, market["type"]))
            self.selections.setdefault(event, set()).add(part["selectionId"])

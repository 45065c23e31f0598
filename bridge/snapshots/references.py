"""The ids that settled bets refer to, and that readers of the topic need names for.

0 counts as an id: the interface does not say that it stands for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from bridge.avro.schemas import Schema
from bridge.rest.endpoints import MAX_SYMBOL_CHARACTERS
from bridge.snapshots.model import Job, Kind, key_of

_MARKET: Final[Schema] = {
    "type": "record",
    "name": "Market",
    "fields": [{"name": "id", "type": "long"}, {"name": "type", "type": "long"}],
}
_EVENT: Final[Schema] = {"type": "record", "name": "EventInfo", "fields": [{"name": "id", "type": "long"}]}
_ITEM: Final[Schema] = {
    "type": "record",
    "name": "SettledBetItem",
    "fields": [
        {"name": "event", "type": ["null", _EVENT]},
        {"name": "market", "type": ["null", _MARKET]},
        {"name": "selectionId", "type": "long"},
        {"name": "competitionId", "type": "long"},
        {"name": "countryId", "type": "long"},
        {"name": "sportId", "type": "long"},
        {
            "name": "betBuilderItems",
            "type": [
                "null",
                {
                    "type": "array",
                    "items": {
                        "type": "record",
                        "name": "BetBuilderItem",
                        "fields": [
                            {"name": "market", "type": ["null", "Market"]},
                            {"name": "selectionId", "type": "long"},
                        ],
                    },
                },
            ],
        },
    ],
}
_AMOUNT: Final[Schema] = {
    "type": "record",
    "name": "BetAmount",
    "fields": [{"name": "currency", "type": ["null", "string"]}],
}


def _bet_with(field_: Schema) -> Schema:
    return {"type": "record", "name": "SettledBet", "namespace": "settlement", "fields": [field_]}


REFERENCES_SCHEMAS: Final[dict[Job, Schema]] = {
    "translations": _bet_with({"name": "selections", "type": ["null", {"type": "array", "items": _ITEM}]}),
    "currencies": _bet_with({"name": "amount", "type": ["null", _AMOUNT]}),
}
"""Reader schemas for settled bets, with the fields that a job needs."""


@dataclass(frozen=True, slots=True)
class Place:
    """Sport, competitionId and countryId of an event, according to its bets."""

    sport: int
    competition: int
    country: int


@dataclass(slots=True)
class References:
    """The ids that bets mention."""

    bets: int = 0
    sports: set[int] = field(default_factory=set)
    regions: set[int] = field(default_factory=set)
    leagues: set[int] = field(default_factory=set)
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
        """Add a settled bet, decoded with one of `REFERENCES_SCHEMAS`."""
        self.bets += 1
        amount = bet.get("amount")
        symbol = amount and amount["currency"]
        if symbol and len(symbol) <= MAX_SYMBOL_CHARACTERS:
            self.currencies.add(symbol)
        for item in bet.get("selections") or ():
            self._add_item(item)

    def keys(self, kind: Kind) -> Iterator[bytes]:
        """Yield the keys of a kind that a join of these bets looks up; none for competitors."""
        match kind:
            case "sport":
                yield from (key_of(kind, number) for number in self.sports)
            case "region":
                yield from (key_of(kind, number) for number in self.regions)
            case "league":
                yield from (key_of(kind, number) for number in self.leagues)
            case "event":
                yield from (key_of(kind, number) for number in self.events)
            case "market":
                yield from (key_of(kind, m, event) for event, found in self.markets.items() for m in found)
            case "selection" | "selection-template":
                yield from (key_of(kind, number) for number in self.all_selections())
            case "market-type-template":
                yield from (key_of(kind, number, sport) for sport, number in self.market_types)
            case "competitor":
                return

    def all_selections(self) -> set[int]:
        """Return all selections, with and without an event."""
        return set().union(*self.selections.values())

    def _add_item(self, item: Mapping[str, Any]) -> None:
        sport, league, region = item["sportId"], item["competitionId"], item["countryId"]
        self.sports.add(sport)
        self.leagues.add(league)
        self.regions.add(region)
        event = item["event"]["id"] if item["event"] else None
        if event is not None:
            self.events[event] = Place(sport, league, region)
        for part in (item, *(item["betBuilderItems"] or ())):
            if market := part["market"]:
                if event is not None:
                    self.markets.setdefault(event, set()).add(market["id"])
                self.market_types.add((sport, market["type"]))
            self.selections.setdefault(event, set()).add(part["selectionId"])

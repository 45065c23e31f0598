"""Step 1: the ids and symbols that settled bets use, and the hour in which a bet last did.

0 counts as an id: the interface does not say that it stands for none.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

from bridge.avro.schemas import Fields
from bridge.config.api import Kind
from bridge.rest.endpoints import MAX_SYMBOL_CHARACTERS
from bridge.snapshots.model import Job, key_of

HOUR_SECONDS: Final = 3_600
"""Resolution of the last use, which limits how often an entry is written again."""
MAX_IDS_OF_EVENT: Final = 20_000
"""Markets, and selections, kept for one event: they must fit into a record."""

_CURRENCY: Final[Fields] = {"amount": {"currency": {}}}
FIELDS: Final[dict[Job, Fields]] = {
    "translations": {
        **_CURRENCY,
        "selections": {
            "event": {"id": {}},
            "market": {"id": {}, "type": {}},
            "selectionId": {},
            "competitionId": {},
            "countryId": {},
            "sportId": {},
            "betBuilderItems": {"market": {}, "selectionId": {}},
        },
    },
    "currencies": _CURRENCY,
}
"""What a job learns from, of a settled bet."""


class EventPlace(NamedTuple):
    """Sport, competitionId and countryId of an event, according to its last bet."""

    sport: int
    competition: int
    country: int


Ids: TypeAlias = "set[int] | array[int] | tuple[()]"


@dataclass
class Use:
    """The last use of an id. Ids are sets while they are learnt, and else arrays: there may be millions."""

    at: int
    run: int
    place: EventPlace | None = None
    markets: Ids = ()
    selections: Ids = ()


Id: TypeAlias = Any
"""An int, a currency's symbol, or the sport and the number of a market type."""
IN_USE: Final = ("sport", "region", "league", "event", "selection", "market-type", "currency")
"""Selections here are those without an event."""


class Usage:
    """What some bets use: kind → id → its use."""

    def __init__(self) -> None:
        self.of: dict[str, dict[Id, Use]] = {kind: {} for kind in IN_USE}
        self.newest = 0
        """The hour of the newest bet; 0 without any."""
        self.changed: set[tuple[str, Id]] = set()
        """What `add` has changed."""

    def add(self, bet: Mapping[str, Any], hour: int = 0, run: int = 1) -> None:
        """Add a settled bet, with a job's `FIELDS`, received in the hour that begins at `hour`.

        `run` is noted wherever that is news.
        """
        self.newest = max(self.newest, hour)
        amount = bet.get("amount")
        symbol = amount and amount["currency"]
        if symbol and len(symbol) <= MAX_SYMBOL_CHARACTERS:  # a bet may hold megabytes
            self.note("currency", symbol, hour, run)
        for item in bet.get("selections") or ():
            sport, league, region = item["sportId"], item["competitionId"], item["countryId"]
            self.note("sport", sport, hour, run)
            self.note("league", league, hour, run)
            self.note("region", region, hour, run)
            markets, selections = set[int](), set[int]()
            for part in (item, *(item["betBuilderItems"] or ())):
                selections.add(part["selectionId"])
                if market := part["market"]:
                    markets.add(market["id"])
                    self.note("market-type", (sport, market["type"]), hour, run)
            if event := item["event"]:
                place = EventPlace(sport, league, region)
                self.note_event(event["id"], hour, run, place, markets, selections)
            else:
                for number in selections:
                    self.note("selection", number, hour, run)

    def note(self, kind: str, id_: Id, hour: int, run: int) -> Use:
        """Note one use."""
        uses = self.of[kind]
        use = uses.get(id_)
        if use is None:
            use = uses[id_] = Use(hour, run)
        elif hour <= use.at:  # nearly always
            return use
        use.at, use.run = hour, run
        self.changed.add((kind, id_))
        return use

    def note_event(
        self, id_: int, hour: int, run: int, place: EventPlace, markets: set[int], selections: set[int]
    ) -> None:
        """Note one use of an event, with its place and the markets and selections used."""
        use = self.note("event", id_, hour, run)
        if hour == use.at:
            use.place = place
        use.markets, more = _joined(use.markets, markets)
        use.selections, others = _joined(use.selections, selections)
        if more or others:
            use.run = run
            self.changed.add(("event", id_))

    def since(self, at: float, after_run: int | None) -> Usage:
        """Return what bets have used since `at`, or that is news of a run after that one."""
        found = Usage()
        for kind, uses in self.of.items():
            found.of[kind] = {
                id_: use
                for id_, use in uses.items()
                if use.at + HOUR_SECONDS > at or (after_run is not None and use.run > after_run)
            }
        return found

    def forget(self, before: float) -> None:
        """Drop what no bet has used since `before`."""
        for kind, uses in self.of.items():
            for id_ in [id_ for id_, use in uses.items() if use.at + HOUR_SECONDS <= before]:
                del uses[id_]
                self.changed.add((kind, id_))

    def selections(self) -> set[int]:
        """Return all selections, with and without an event."""
        return {*self.of["selection"]}.union(*(use.selections for use in self.of["event"].values()))

    def selections_among(self, some: Iterable[int]) -> set[int]:
        """Return which of these selections are used, without a set of them all."""
        wanted = {*some}
        found = wanted & self.of["selection"].keys()
        return found.union(*(wanted.intersection(use.selections) for use in self.of["event"].values()))

    def keys(self, kind: Kind) -> Iterator[bytes]:
        """Yield the keys of a kind that a join of these bets looks up; none for competitors."""
        match kind:
            case "sport" | "region" | "league" | "event":
                yield from (key_of(kind, number) for number in self.of[kind])
            case "market":
                events = self.of["event"].items()
                yield from (key_of(kind, market, event) for event, use in events for market in use.markets)
            case "selection" | "selection-template":
                yield from (key_of(kind, number) for number in self.selections())
            case "market-type-template":
                yield from (key_of(kind, number, sport) for sport, number in self.of["market-type"])


def _joined(have: Ids, more: set[int]) -> tuple[set[int], bool]:
    """Return the ids with as many more as there is room for, and whether there are any more."""
    found = have if isinstance(have, set) else {*have}
    if more <= found:
        return found, False
    new = sorted(more - found)[: MAX_IDS_OF_EVENT - len(found)]
    found.update(new)
    return found, bool(new)

"""What a run has to ask about: what bets mention and the topic does not have, or all of it in a full run."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridge.config import ApiSettings
from bridge.snapshots.mentions import Mentions
from bridge.snapshots.records import KINDS, LISTED, Kind, Listed, key_of
from bridge.snapshots.requests import MOST_IDS

OF_MARKETS: Final[frozenset[Kind]] = frozenset({"market", "selection"})
"""The kinds that the markets endpoints tell of."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of it a run is about."""

    languages: tuple[str, ...]
    kinds: frozenset[Kind] = frozenset(KINDS)
    events: frozenset[int] | None = None
    """Instead of those that bets mention."""
    narrowed: bool = False
    """Whether any of these leaves something out that the settings ask for."""

    @classmethod
    def of(
        cls,
        settings: ApiSettings,
        kinds: Sequence[Kind] = (),
        languages: Sequence[str] = (),
        events: Sequence[int] = (),
    ) -> Scope:
        """What the command line asks for; where it says nothing, all."""
        chosen = cls(
            tuple(languages) or settings.languages,
            frozenset(kinds or KINDS),
            frozenset(events) if events else None,
        )
        whole = chosen == cls(settings.languages)
        return cls(chosen.languages, chosen.kinds, chosen.events, narrowed=not whole)


@dataclass(frozen=True, slots=True)
class Wants:
    """Ids to ask about, in order. What lists answer for is not asked for one by one."""

    scope: Scope
    mentioned: Mapping[Listed, Sequence[int]] = field(default_factory=dict)
    """Sports, regions and leagues that bets mention."""
    events: Sequence[int] = ()
    """Whose names are asked for."""
    markets: Sequence[int] = ()
    """Events whose markets and selections are."""
    selection_templates: Sequence[int] = ()
    """Selections."""
    market_type_templates: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Sport → market types."""

    @classmethod
    def of(cls, scope: Scope, mentions: Mentions, present: Container[bytes], *, full: bool) -> Wants:
        """`present` has the keys of the topic."""

        def wanted(kind: Kind, number: int, within: int | None = None) -> bool:
            return kind in scope.kinds and (full or key_of(kind, number, within) not in present)

        def lacks(event: int) -> bool:
            """Whether the topic lacks a market or a selection of the event that a bet mentions."""
            markets = mentions.markets.get(event, ())
            selections = mentions.selections.get(event, ())
            return any(wanted("market", market, event) for market in markets) or any(
                wanted("selection", selection) for selection in selections
            )

        of_bets: list[tuple[Listed, set[int]]] = [
            ("sport", mentions.sports),
            ("region", mentions.regions),
            ("league", mentions.leagues),
        ]
        types: dict[int, list[int]] = {}
        for sport, number in sorted(mentions.market_types):
            if wanted("market-type-template", number, sport):
                types.setdefault(sport, []).append(number)
        chosen = None if scope.events is None else sorted(scope.events)
        return cls(
            scope,
            mentioned={kind: [x for x in sorted(found) if wanted(kind, x)] for kind, found in of_bets},
            events=([x for x in sorted(mentions.events) if wanted("event", x)] if chosen is None else chosen)
            if "event" in scope.kinds
            else (),
            markets=([x for x in sorted(mentions.events) if lacks(x)] if chosen is None else chosen)
            if scope.kinds & OF_MARKETS
            else (),
            selection_templates=[
                x for x in sorted(mentions.all_selections()) if wanted("selection-template", x)
            ],
            market_type_templates=types,
        )

    @property
    def lists(self) -> list[Listed]:
        """The kinds of which whole lists are read."""
        return [kind for kind in LISTED if kind in self.scope.kinds]


def chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """As many at once as one question may have (interface, "Limits")."""
    return (ids[start : start + MOST_IDS] for start in range(0, len(ids), MOST_IDS))


class Estimate(NamedTuple):
    """How many requests of one sort a run makes."""

    endpoint: str
    least: int
    most: int | None
    """None where only the answers of others tell."""


def estimate(wants: Wants) -> list[Estimate]:
    """What a run would ask, before it has asked anything. Retries are not in it."""
    languages = len(wants.scope.languages)
    rows = [Estimate(f"/api/translations/{{lang}}/{kind}s", languages, languages) for kind in wants.lists]
    rows += [
        # Only those for which the lists lack a language.
        Estimate(f"/api/translations/all/{kind}/{{{kind}Id}}", 0, len(ids))
        for kind, ids in wants.mentioned.items()
        if ids
    ]
    if "competitor" in wants.scope.kinds and wants.events:
        rows.append(Estimate("/api/translations/all/competitor/{competitorId}", 0, None))
    events, markets = len(wants.events), len(wants.markets)
    types = sum(len(list(chunks(ids))) for ids in wants.market_type_templates.values())
    selections = len(list(chunks(wants.selection_templates)))
    rows += [
        Estimate("/api/translations/all/event/{eventId}", events, events),
        Estimate("/api/translations/all/{eventId}/markets", markets, markets),
        Estimate("/api/translations/{lang}/{eventId}/markets", 0, markets * languages),
        Estimate("/api/translations/templates/selections", selections, selections),
        Estimate("/api/translations/templates/market-types", types, types),
    ]
    return [row for row in rows if row.most != 0]

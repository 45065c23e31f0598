"""What a run has to ask about: what bets mention and the topic does not have, or all of it in a full run."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridge.config import ApiSettings
from bridge.errors import SettingsError
from bridge.snapshots.mentions import Mentions
from bridge.snapshots.records import KINDS, LISTED, Kind, Listed, key_of
from bridge.snapshots.requests import MOST_IDS

OF_MARKETS: Final[frozenset[Kind]] = frozenset({"market", "selection"})
"""The kinds that the markets endpoints tell of."""
MOST_DOUBTED: Final = 100
"""So many things of a kind that its list has no more are asked about by id in a run that is not full."""


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
        """What the command line asks for; where it says nothing, all. Raises SettingsError."""
        if others := [language for language in languages if language not in settings.languages]:
            raise SettingsError(
                f"--language {others[0]} is not one of api.languages ({', '.join(settings.languages)}). "
                "Add it there (BRIDGE_API__LANGUAGES), or name one of them."
            )
        chosen = cls(
            tuple(dict.fromkeys(languages)) or settings.languages,
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
    known: Mapping[Listed, Sequence[int]] = field(default_factory=dict)
    """What the topic has of the kinds with lists, to be compared with these."""
    full: bool = False
    """Whether all of it is asked about anew."""

    @classmethod
    def of(cls, scope: Scope, mentions: Mentions, present: Collection[bytes], *, full: bool) -> Wants:
        """`present` has the keys of the topic."""

        def wanted(kind: Kind, number: int, within: int | None = None) -> bool:
            return kind in scope.kinds and (full or key_of(kind, number, within) not in present)

        def lacks_markets(event: int) -> bool:
            """Whether the topic lacks a market or a selection of the event that a bet mentions."""
            markets = mentions.markets.get(event, ())
            selections = mentions.selections.get(event, ())
            return any(wanted("market", market, event) for market in markets) or any(
                wanted("selection", selection) for selection in selections
            )

        def of_events(lacks: Callable[[int], bool]) -> list[int]:
            if scope.events is not None:
                return sorted(scope.events)
            return [event for event in sorted(mentions.events) if lacks(event)]

        of_bets: list[tuple[Listed, set[int]]] = [
            ("sport", mentions.sports),
            ("region", mentions.regions),
            ("league", mentions.leagues),
        ]
        types: dict[int, list[int]] = {}
        for sport, number in sorted(mentions.market_types):
            if wanted("market-type-template", number, sport):
                types.setdefault(sport, []).append(number)
        return cls(
            scope,
            mentioned={kind: [x for x in sorted(found) if wanted(kind, x)] for kind, found in of_bets},
            events=of_events(lambda event: wanted("event", event)) if "event" in scope.kinds else (),
            markets=of_events(lacks_markets) if scope.kinds & OF_MARKETS else (),
            selection_templates=[
                x for x in sorted(mentions.all_selections()) if wanted("selection-template", x)
            ],
            market_type_templates=types,
            known={kind: _ids_of(kind, present) for kind in LISTED if kind in scope.kinds},
            full=full,
        )

    @property
    def lists(self) -> list[Listed]:
        """The kinds of which whole lists are read."""
        return [kind for kind in LISTED if kind in self.scope.kinds]


def _ids_of(kind: Listed, keys: Iterable[bytes]) -> Sequence[int]:
    start = f"{kind}:".encode()
    ids = (key[len(start) :] for key in keys if key.startswith(start))
    return array("q", (int(number) for number in ids if number.isdigit()))


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
    """What a run would ask, before it has asked anything.

    Retries are not in it. What the provider gives no right to, or an event that it does not know, is not
    asked about again: that makes it less.
    """
    languages = len(wants.scope.languages)
    rows = [Estimate(f"/api/translations/{{lang}}/{kind}s", languages, languages) for kind in wants.lists]
    rows += [_by_id(wants, kind) for kind in wants.lists]
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


def _by_id(wants: Wants, kind: Listed) -> Estimate:
    """Only those for which the answers so far lack a language, and those that no list has any more."""
    doubted = len(wants.known[kind])
    is_open = (wants.full and doubted) or (kind == "competitor" and wants.events)
    most = len(wants.mentioned.get(kind, ())) + min(doubted, MOST_DOUBTED)
    return Estimate(f"/api/translations/all/{kind}/{{{kind}Id}}", 0, None if is_open else most)

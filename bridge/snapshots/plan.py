"""What a run has to ask about: what bets mention and the topic does not have, or all of it in a full run."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bridge.config import ApiSettings
from bridge.errors import SettingsError
from bridge.rest.endpoints import LISTED, MAX_IDS, Listed
from bridge.snapshots.model import KINDS, Kind, Snapshot, key_of
from bridge.snapshots.references import References

BELIEVED: Final = "so did the last full run, so it is believed"
DISBELIEVED: Final = "nothing is removed for it until another full run finds the same"
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
    cut: bool = False
    """Whether it leaves out a part of answers: kinds or languages."""

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
            tuple(x for x in settings.languages if x in languages or not languages),
            frozenset(kinds or KINDS),
            frozenset(events) if events else None,
        )
        whole = chosen == cls(settings.languages)
        cut = chosen.languages != settings.languages or chosen.kinds != frozenset(KINDS)
        return cls(chosen.languages, chosen.kinds, chosen.events, narrowed=not whole, cut=cut)


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """Ids to ask about, in order. What lists answer for is not asked for one by one."""

    scope: Scope
    mentioned: Mapping[Listed, Sequence[int]] = field(default_factory=dict)
    """Sports, regions and leagues that bets mention; competitors that are owed."""
    events: Sequence[int] = ()
    """Whose names are asked for."""
    markets: Sequence[int] = ()
    """Events whose markets and selections are."""
    selection_templates: Sequence[int] = ()
    """Selections."""
    market_type_templates: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Sport → market types."""
    owed: frozenset[str] = frozenset()
    """The names of what the last run was not told, which is all in here too, as far as the scope has it."""
    known: Mapping[Listed, Sequence[int]] = field(default_factory=dict)
    """What the topic has of the kinds with lists, to be compared with these."""
    used: Mapping[Listed, Collection[int]] | None = None
    """What is never gone, because bets use it; None where nothing may be found to be gone."""
    missing_before: frozenset[str] = frozenset()
    """The names of what lists lacked in the last full run, where they were too short to be believed."""
    sports: Collection[int] = ()
    """All that bets mention."""
    turn: int = 0
    """Counts the runs."""

    @classmethod
    def of(
        cls,
        scope: Scope,
        references: References,
        present: Collection[bytes],
        *,
        full: bool,
        owed: frozenset[str] = frozenset(),
    ) -> FetchPlan:
        """What is owed, and what is mentioned and, unless the run is full, not in the topic.

        `present` has the keys of the topic.
        """

        def wanted(kind: Kind, number: int, within: int | None = None) -> bool:
            return kind in scope.kinds and (full or key_of(kind, number, within) not in present)

        def lacks_markets(event: int) -> bool:
            """Whether the topic lacks a market or a selection of the event that a bet mentions."""
            markets = references.markets.get(event, set())
            selections = references.selections.get(event, set())
            if not (markets | selections) - {0}:
                # It may be how the provider writes that there is none: asked about as long as its event is.
                return bool(markets | selections) and wanted("event", event)
            # One answer has all of an event, a 0 too.
            return any(wanted("market", x, event) for x in markets if x) or any(
                wanted("selection", x) for x in selections if x
            )

        def events(kind: str, lacks: Callable[[int], bool]) -> list[int]:
            if scope.events is not None:
                return sorted(scope.events)
            return sorted({*filter(lacks, references.events), *_owed(owed, kind)})

        def numbers(kind: Kind, mentioned: Iterable[int]) -> list[int]:
            if kind not in scope.kinds:
                return []
            return sorted({x for x in mentioned if wanted(kind, x)}.union(_owed(owed, kind)))

        types: dict[int, list[int]] = {}
        for sport, number in sorted(
            {x for x in references.market_types if wanted("market-type-template", x[1], x[0])}
            | ({*_owed_types(owed)} if "market-type-template" in scope.kinds else set())
        ):
            types.setdefault(sport, []).append(number)
        return cls(
            scope,
            mentioned={
                "sport": numbers("sport", references.sports),
                "region": numbers("region", references.regions),
                "league": numbers("league", references.leagues),
                "competitor": numbers("competitor", ()),
            },
            events=events("event", lambda x: wanted("event", x)) if "event" in scope.kinds else (),
            markets=events("markets", lacks_markets) if scope.kinds & OF_MARKETS else (),
            selection_templates=numbers("selection-template", references.all_selections()),
            market_type_templates=types,
            owed=owed,
            sports=references.sports,
        )

    def sports_known(self, *listed: int) -> list[int]:
        """Those that bets mention, that the topic has, and that are `listed`."""
        return sorted({*listed, *self.known.get("sport", ()), *self.sports})

    @property
    def lists(self) -> list[Listed]:
        """The kinds of which whole lists are read."""
        return [kind for kind in LISTED if kind in self.scope.kinds]


def ids_of(kind: Listed, keys: Iterable[bytes]) -> Sequence[int]:
    """The ids in the keys of a kind."""
    start = f"{kind}:".encode()
    return array("q", (int(key[len(start) :]) for key in keys if key.startswith(start)))


def _owed(owed: Iterable[str], kind: str) -> Iterator[int]:
    start = f"{kind}:"
    return (int(name[len(start) :]) for name in owed if name.startswith(start))


def _owed_types(owed: Iterable[str]) -> Iterator[tuple[int, int]]:
    """Sport and market type."""
    for name in owed:
        kind, *ids = name.split(":")
        if kind == "market-type-template":
            yield int(ids[0]), int(ids[1])


def chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """As many at once as one question may have (interface, "Limits").

    A 0 stands alone: where it is no id, the others are not refused along with it.
    """
    if 0 in ids:
        yield [0]
    others = [x for x in ids if x]
    yield from (others[start : start + MAX_IDS] for start in range(0, len(others), MAX_IDS))


@dataclass(slots=True)
class JobInput:
    """What Kafka told at the beginning of a run."""

    last: Snapshot | None
    present: Mapping[bytes, bytes]
    """Key → value, of all records of the job's topic."""
    references: References
    """What bets mention that is new; in a full run all that recent ones mention."""
    full: bool
    """Whether everything is asked about anew."""
    kept: References | None = None
    """In a full run what all bets mention that names are kept for: more than what is asked about."""
    selections_in_use: Callable[[Collection[int]], set[int]] | None = None
    """Those of some selections that are among that; where it is None `kept` has them."""
    owed: frozenset[str] = frozenset()
    """The names of what the last run was not told."""
    missing: frozenset[str] = frozenset()
    """The names of what lists lacked in the last full run, where they were too short to be believed."""
    lost: bool = False
    """Whether the topic does not hold what the last snapshot left there."""
    turn: int = 0
    """Counts the runs."""


class Estimate(NamedTuple):
    """How many requests of one sort a run makes."""

    endpoint: str
    least: int
    most: int | None
    """None where only the answers of others tell."""


def estimate(wants: FetchPlan, by_sport: Callable[[Listed], bool] = lambda kind: False) -> list[Estimate]:
    """What a run would ask, before it has asked anything. Lists may go `by_sport`.

    Retries are not in it. What the provider gives no right to, or an event that it does not know, is not
    asked about again: that makes it less.
    """
    languages = len(wants.scope.languages)
    rows = [_list(wants, kind, by_sport(kind)) for kind in wants.lists]
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


def _list(wants: FetchPlan, kind: Listed, by_sport: bool) -> Estimate:
    sports = len(wants.sports_known()) if by_sport else 1
    least = len(wants.scope.languages) * sports
    # The list of sports, where it is asked for, may tell of others.
    most = None if by_sport and "sport" in wants.lists else least
    return Estimate(f"/api/translations/{{lang}}/{kind}s", least, most)


def _by_id(wants: FetchPlan, kind: Listed) -> Estimate:
    """Only those for which the answers so far lack a language, and those that no list has any more."""
    is_open = (wants.used is not None and wants.known.get(kind)) or (kind == "competitor" and wants.events)
    most = None if is_open else len(wants.mentioned.get(kind, ()))
    return Estimate(f"/api/translations/all/{kind}/{{{kind}Id}}", 0, most)

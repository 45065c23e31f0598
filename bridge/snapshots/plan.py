"""What a run fetches: what bets mention and the topic lacks; in a full run, all that recent bets mention."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from bridge.config import ApiSettings, env_name
from bridge.config.api import KINDS, LISTED, Kind, Listed
from bridge.errors import SettingsError
from bridge.rest.endpoints import MAX_IDS
from bridge.snapshots.model import key_of
from bridge.snapshots.references import References
from bridge.snapshots.state import JobState

OF_MARKETS: Final[frozenset[Kind]] = frozenset({"market", "selection"})
"""The kinds that the markets endpoints answer."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the translations that a run is about."""

    languages: tuple[str, ...]
    kinds: frozenset[Kind] = frozenset(KINDS)
    events: frozenset[int] | None = None
    """Events to fetch instead of those that bets mention."""
    cut: bool = False
    """Whether the run drops a part of the answers: kinds or languages."""

    @classmethod
    def of(
        cls,
        settings: ApiSettings,
        kinds: Sequence[Kind] = (),
        languages: Sequence[str] = (),
        events: Sequence[int] = (),
    ) -> Scope:
        """Return the scope of the command-line options; without any, everything. Raises SettingsError."""
        _must_be_of("language", languages, "languages", settings.languages)
        _must_be_of("kind", kinds, "kinds", settings.kinds)
        chosen = tuple(x for x in settings.languages if x in languages or not languages)
        kept = frozenset(kinds or settings.kinds)
        if events and kept.isdisjoint({"event", *OF_MARKETS}):
            raise SettingsError(
                "--event asks for nothing without the kinds event, market or selection: add one to --kind or "
                "api.kinds, or leave out --event"
            )
        cut = chosen != settings.languages or kept != frozenset(settings.kinds)
        return cls(chosen, kept, frozenset(events) if events else None, cut)

    def covers(self, name: str) -> bool:
        """Return whether it has the kind of a thing to ask about, such as `markets:77`."""
        kind = name.partition(":")[0]
        return not self.kinds.isdisjoint(OF_MARKETS) if kind == "markets" else kind in self.kinds

    @property
    def narrowed(self) -> bool:
        """Whether the run leaves out something that the settings ask for."""
        return self.cut or self.events is not None


def _must_be_of(option: str, given: Sequence[str], setting: str, known: Sequence[str]) -> None:
    """Raise SettingsError if an option names what the setting leaves out."""
    if others := [value for value in given if value not in known]:
        raise SettingsError(
            f"--{option} {others[0]} is not one of api.{setting} ({', '.join(known)}). "
            f"Add it there ({env_name('api', setting)}), or name one of them."
        )


@dataclass(frozen=True, slots=True)
class FetchPlan:
    """The ids to ask about, sorted. Ids that the lists cover are not asked about one by one."""

    scope: Scope
    mentioned: Mapping[Listed, Sequence[int]]
    """Sports, regions and leagues that bets mention; competitors that are owed."""
    events: Sequence[int]
    """Events whose names are fetched."""
    markets: Sequence[int]
    """Events whose markets and selections are fetched."""
    selection_templates: Sequence[int]
    """Selections whose templates are fetched."""
    market_type_templates: Mapping[int, Sequence[int]]
    """Sport → market types."""
    owed: frozenset[str]
    """Names of what the last run failed to learn. Their ids are planned, as far as they are in the scope."""
    in_topic: Mapping[Listed, Sequence[int]]
    """Ids in the topic, for comparison with the lists."""
    used: Mapping[Listed, Collection[int]] | None
    """Ids that are never removed, because bets use them; None if the run removes nothing."""
    missing_before: frozenset[str]
    """Names of what lists lacked in the last full run, if they were too short to be believed."""
    sports: Collection[int]
    """Sports that bets mention."""

    @classmethod
    def of(
        cls,
        scope: Scope,
        references: References,
        present: Collection[bytes],
        *,
        full: bool,
        owed: frozenset[str] = frozenset(),
        missing_before: frozenset[str] = frozenset(),
        used: Mapping[Listed, Collection[int]] | None = None,
    ) -> FetchPlan:
        """Plan what is owed and what is mentioned; unless the run is `full`, only what the topic lacks.

        `present` has the keys of the topic.
        """

        owed_ids = ids_in(owed)

        def wanted(kind: Kind, number: int, within: int | None = None) -> bool:
            return kind in scope.kinds and (full or key_of(kind, number, within) not in present)

        def lacks_markets(event: int) -> bool:
            """Return whether bets mention a market or a selection of the event that the topic lacks."""
            markets = references.markets.get(event, set())
            selections = references.selections.get(event, set())
            if not (markets | selections) - {0}:
                # 0 may be how the provider writes "none": it is asked about as long as its event is.
                return bool(markets | selections) and wanted("event", event)
            # One answer has all markets of an event, 0 included.
            return any(wanted("market", x, event) for x in markets if x) or any(
                wanted("selection", x) for x in selections if x
            )

        def events(kind: str, lacks: Callable[[int], bool]) -> list[int]:
            if scope.events is not None:
                return sorted(scope.events)
            return sorted({*filter(lacks, references.events), *(ids[0] for ids in owed_ids[kind])})

        def numbers(kind: Kind, mentioned: Iterable[int]) -> list[int]:
            if kind not in scope.kinds:
                return []
            return sorted({x for x in mentioned if wanted(kind, x)}.union(ids[0] for ids in owed_ids[kind]))

        template: Final = "market-type-template"
        types: dict[int, list[int]] = {}
        new = {x for x in references.market_types if wanted(template, x[1], x[0])}
        for sport, number in sorted(new | owed_ids[template] if template in scope.kinds else ()):
            types.setdefault(sport, []).append(number)
        return cls(
            scope,
            mentioned={kind: numbers(kind, found) for kind, found in references.listed.items()},
            events=events("event", lambda x: wanted("event", x)) if "event" in scope.kinds else (),
            markets=events("markets", lacks_markets) if scope.kinds & OF_MARKETS else (),
            selection_templates=numbers("selection-template", references.all_selections()),
            market_type_templates=types,
            owed=owed,
            in_topic={kind: ids_of(kind, present) for kind in LISTED},
            used=used,
            missing_before=missing_before,
            sports=references.listed["sport"],
        )

    def known_sports(self, *listed: int) -> list[int]:
        """Return the sports that bets mention, that the topic has, and that are `listed`."""
        return sorted({*listed, *self.in_topic.get("sport", ()), *self.sports})

    @property
    def lists(self) -> list[Listed]:
        """The kinds whose lists are read."""
        return [kind for kind in LISTED if kind in self.scope.kinds]


def ids_of(kind: Listed, keys: Iterable[bytes]) -> Sequence[int]:
    """Return the ids in the keys of a kind."""
    start = f"{kind}:".encode()
    return array("q", (int(key[len(start) :]) for key in keys if key.startswith(start)))


def ids_in(names: Iterable[str]) -> defaultdict[str, set[tuple[int, ...]]]:
    """Return the ids in the names of things, such as `market-type-template:1:18`, by kind."""
    found: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
    for name in names:
        kind, *ids = name.split(":")
        found[kind].add(tuple(map(int, ids)))
    return found


def chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Split ids into requests of at most `MAX_IDS` (interface, "Limits").

    0 gets a separate request: if it is invalid, the others are not refused with it.
    """
    if 0 in ids:
        yield [0]
    others = [x for x in ids if x]
    yield from (others[start : start + MAX_IDS] for start in range(0, len(others), MAX_IDS))


@dataclass(slots=True)
class JobInput:
    """What a run reads from Kafka before its first request."""

    present: Mapping[bytes, bytes]
    """Key → value of all records of the job's topic."""
    references: References
    """New references; in a full run, all references from bets within `api.recent_days`."""
    full: bool
    """Whether everything is fetched again."""
    kept: References
    """In a full run, references from all bets within `api.keep_days`, a superset of what is fetched."""
    state: JobState
    """The state of the job, with what the last run failed to learn."""
    bets: int = 0
    """Settled bets read to learn references."""
    note: str = ""
    """A note about records that are not bets; empty if there are none."""


class Estimate(NamedTuple):
    """The number of requests to one endpoint."""

    endpoint: str
    least: int
    most: int | None
    """None if it depends on other answers."""


def estimate(plan: FetchPlan, by_sport: Callable[[Listed], bool] = lambda _: False) -> list[Estimate]:
    """Estimate the requests of a run before it starts. Lists may go `by_sport`.

    Retries are not counted. Endpoints without a right and unknown events make it less.
    """
    languages = len(plan.scope.languages)
    rows = [_list(plan, kind, by_sport(kind)) for kind in plan.lists]
    rows += [_by_id(plan, kind) for kind in plan.lists]
    events, markets = len(plan.events), len(plan.markets)
    types = sum(len(list(chunks(ids))) for ids in plan.market_type_templates.values())
    selections = len(list(chunks(plan.selection_templates)))
    rows += [
        Estimate("/api/translations/all/event/{eventId}", events, events),
        Estimate("/api/translations/all/{eventId}/markets", markets, markets),
        Estimate("/api/translations/{lang}/{eventId}/markets", 0, markets * languages),
        Estimate("/api/translations/templates/selections", selections, selections),
        Estimate("/api/translations/templates/market-types", types, types),
    ]
    return [row for row in rows if row.most != 0]


def _list(plan: FetchPlan, kind: Listed, by_sport: bool) -> Estimate:
    sports = len(plan.known_sports()) if by_sport else 1
    least = len(plan.scope.languages) * sports
    # The list of sports may have others.
    most = None if by_sport and "sport" in plan.lists else least
    return Estimate(f"/api/translations/{{lang}}/{kind}s", least, most)


def _by_id(plan: FetchPlan, kind: Listed) -> Estimate:
    """Estimate lookups of ids that lack a language in other answers, or that their list no longer has."""
    is_open = (plan.used is not None and plan.in_topic.get(kind)) or (kind == "competitor" and plan.events)
    most = None if is_open else len(plan.mentioned.get(kind, ()))
    return Estimate(f"/api/translations/all/{kind}/{{{kind}Id}}", 0, most)

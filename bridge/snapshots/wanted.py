"""Step 2: what a run asks about: what bets use and the topic lacks; all of it when a refresh is due."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from bridge.config import ApiSettings, env_name
from bridge.config.api import LISTED, Kind, Listed
from bridge.errors import SettingsError
from bridge.rest.endpoints import MAX_IDS
from bridge.snapshots.model import Job, Translation, key_of, numbers_in
from bridge.snapshots.state import JobState
from bridge.snapshots.usage import Usage

OF_MARKETS: Final[frozenset[Kind]] = frozenset({"market", "selection"})
"""The kinds that the markets endpoints answer."""


@dataclass(frozen=True, slots=True)
class Task:
    """A job with its command-line options."""

    job: Job
    languages: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()
    """In the order of KINDS; like the languages, none for currencies."""
    events: frozenset[int] | None = None
    """Events to ask about instead of those that bets use."""
    cut: bool = False
    """Whether it drops a part of the answers: kinds or languages."""
    full: bool = False

    @classmethod
    def translations(
        cls,
        settings: ApiSettings,
        kinds: Sequence[str] = (),
        languages: Sequence[str] = (),
        events: Sequence[int] = (),
        *,
        full: bool = False,
    ) -> Task:
        """Return the task of these options; without any, everything. Raises SettingsError."""
        for option, given, known in (
            ("language", languages, settings.languages),
            ("kind", kinds, settings.kinds),
        ):
            if others := [value for value in given if value not in known]:
                raise SettingsError(
                    f"--{option} {others[0]} is not one of api.{option}s ({', '.join(known)}). "
                    f"Add it there ({env_name('api', f'{option}s')}), or name one of them."
                )
        chosen = tuple(x for x in settings.languages if x in languages or not languages)
        kept = tuple(x for x in settings.kinds if x in kinds or not kinds)
        if events and {"event", *OF_MARKETS}.isdisjoint(kept):
            raise SettingsError(
                "--event asks for nothing without the kinds event, market or selection: add one to --kind or "
                "api.kinds, or leave out --event"
            )
        cut = (chosen, kept) != (settings.languages, settings.kinds)
        return cls("translations", chosen, kept, frozenset(events) if events else None, cut, full)

    def covers(self, name: str) -> bool:
        """Return whether it has the kind of a thing to ask about, such as `markets:77`."""
        kind = name.partition(":")[0]
        return kind in self.kinds or (kind == "markets" and not OF_MARKETS.isdisjoint(self.kinds))

    @property
    def lists(self) -> list[Listed]:
        """The kinds whose lists are read."""
        return [kind for kind in LISTED if kind in self.kinds]

    @property
    def narrowed(self) -> bool:
        """Whether the run leaves out something that the settings ask for."""
        return self.cut or self.events is not None


@dataclass(slots=True)
class Found:
    """What a run reads from Kafka before its first request."""

    task: Task
    present: dict[bytes, bytes]
    """Key → value of all records of the job's topic."""
    usage: Usage
    """What new bets use; in a full run, all bets within `api.recent_days`."""
    state: JobState
    """What the last run left, and what all bets within `api.keep_days` use."""
    full: bool
    """Whether everything is asked about again."""
    refreshed_at: float | None = None
    """When the last run began that has asked about everything; None if records were lost since."""
    resumed: bool = False
    """Whether a first run goes on that has published portions."""
    bets: int = 0
    """Settled bets read to learn what they use."""
    note: str = ""
    """A note about records that are not bets; empty if there are none."""

    @property
    def refreshes(self) -> bool:
        """Whether the run asks about everything, and so about enough to learn what is gone."""
        return self.full and not self.task.narrowed


class Wanted:
    """The ids to ask about: what is owed and what is used; unless the run is full, only what the topic lacks.

    What the lists and other answers have is not asked about by its id. A run that is resumed has asked about
    its events before. `read` returns the topic's record of a key.
    """

    def __init__(self, found: Found, read: Callable[[bytes], Translation | None]) -> None:
        task, usage, refused = found.task, found.usage, found.state.refused
        self.used: dict[Listed, set[int]] = {}
        """What bets within `api.keep_days` use; empty unless the run may learn that something is gone."""
        self.owed = refused["owed"]
        """Names of what earlier runs failed to learn, as far as this one asks again."""
        if not task.narrowed:  # a narrowed one leaves what is not its own to the next whole run
            self.owed = {*filter(task.covers, refused["owed"] | refused["partial"])}
        if found.refreshes:
            self.used = _kinds_in_use(found.state.usage, read)
            self.owed = {*_still_wanted(self.owed, found.state.usage, self.used)}

        def wanted(kind: Kind, number: int, within: int | None = None) -> bool:
            is_asked = found.full and not (found.resumed and kind not in LISTED)
            return kind in task.kinds and (is_asked or key_of(kind, number, within) not in found.present)

        def lacks_markets(event: int) -> bool:
            """Return whether bets use a market or a selection of the event that the topic lacks."""
            use = usage.of["event"][event]
            if not any(use.markets) and not any(use.selections):
                # 0 may be how the provider writes "none": it is asked about as long as its event is.
                return bool(len(use.markets) + len(use.selections)) and wanted("event", event)
            # One answer has all markets of an event, 0 included.
            return any(wanted("market", x, event) for x in use.markets if x) or any(
                wanted("selection", x) for x in use.selections if x
            )

        names = _by_kind(filter(task.covers, self.owed))

        def events(kind: str, lacks: Callable[[int], bool]) -> list[int]:
            if task.events is not None:
                return sorted(task.events, reverse=True) if task.covers(f"{kind}:") else []
            return sorted({*filter(lacks, usage.of["event"]), *(x for (x,) in names[kind])}, reverse=True)

        def numbers(kind: Kind, used: Iterable[int]) -> set[int]:
            return {x for x in used if wanted(kind, x)}.union(x for (x,) in names[kind])

        self.known = {kind: _ids_of(kind, found.present) for kind in LISTED}
        """Ids that the topic has."""
        self.listed = {kind: numbers(kind, usage.of.get(kind, ())) for kind in LISTED}
        self.events = events("event", lambda x: wanted("event", x))
        """The newest first, by their ids: whose names are fetched."""
        self.markets = events("markets", lacks_markets)
        """Likewise: whose markets and selections are."""
        has_templates = "selection-template" in task.kinds
        self.selections = sorted(numbers("selection-template", usage.selections() if has_templates else ()))
        """Selections whose templates are."""
        self.types: dict[int, list[int]] = {}
        """Sport → market types."""
        template: Final = "market-type-template"
        new = {x for x in usage.of["market-type"] if wanted(template, x[1], x[0])}
        for sport, number in sorted(new | names[template]):
            self.types.setdefault(sport, []).append(number)


def _by_kind(names: Iterable[str]) -> defaultdict[str, set[tuple[int, ...]]]:
    """Return the ids in the names of things, by kind."""
    found: defaultdict[str, set[tuple[int, ...]]] = defaultdict(set)
    for kind, ids in map(numbers_in, names):
        found[kind].add(ids)
    return found


def _ids_of(kind: Listed, keys: Iterable[bytes]) -> Sequence[int]:
    """Return the ids in the keys of a kind."""
    start = f"{kind}:".encode()
    return array("q", (int(key[len(start) :]) for key in keys if key.startswith(start)))


def _kinds_in_use(usage: Usage, read: Callable[[bytes], Translation | None]) -> dict[Listed, set[int]]:
    """Return what bets use of the kinds with lists. Competitors are those of the events, by their records."""
    found: dict[Listed, set[int]] = {kind: {*usage.of.get(kind, ())} for kind in LISTED}
    for event in filter(None, map(read, usage.keys("event"))):
        for kind in ("sport", "region", "league"):
            found[kind].add(getattr(event, f"{kind}_id"))
        found["competitor"].update(event.competitor_ids or ())
    return found


def _still_wanted(
    owed: Collection[str], usage: Usage, used: Mapping[Listed, Collection[int]]
) -> Iterator[str]:
    """Yield what of the owed bets still use, of kinds with lists what is `used`."""
    events = usage.of["event"]
    selections = (x for (x,) in _by_kind(owed)["selection-template"])
    in_use: dict[str, Container[object]] = {
        **{str(kind): ids for kind, ids in used.items()},
        "event": events,
        "markets": events,
        "selection-template": usage.selections_among(selections),
        "market-type-template": usage.of["market-type"],
    }
    for name in owed:
        kind, ids = numbers_in(name)
        if (ids if len(ids) > 1 else ids[0]) in in_use.get(kind, ()) or not (events or usage.of["sport"]):
            yield name


def chunks(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    """Split ids into requests of at most `MAX_IDS` (interface, "Limits").

    0 gets a separate request: if it is invalid, the others are not refused with it.
    """
    if 0 in ids:
        yield [0]
    others = [x for x in ids if x]
    yield from (others[start : start + MAX_IDS] for start in range(0, len(others), MAX_IDS))


class Estimate(NamedTuple):
    """The number of requests to one endpoint, without retries."""

    endpoint: str
    least: int
    most: int | None
    """None if it depends on other answers."""

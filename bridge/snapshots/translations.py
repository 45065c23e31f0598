"""The translations: what is asked in which order, what of it is published, and how well it covers the bets.

Lists are read first; then come events and markets, each from the newest backwards; then what these lack, by
its id; then the templates, a hundred ids at a time. A list that fails ends the run before anything is
published; for all other failures see `bridge.snapshots.asking`.

A long run publishes on its way. Texts of the kinds with lists are only added until its end: until then
another answer may have them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import filterfalse
from typing import Final, TypeVar

from bridge import clock as instant
from bridge.avro.codec import Codec
from bridge.clock import Clock
from bridge.config import ApiSettings
from bridge.config.api import KINDS, LISTED, Template
from bridge.errors import ApiError, Forbidden
from bridge.rest.endpoints import (
    EntityTranslation,
    EventTranslations,
    MarketTranslationItem,
    MarketTranslations,
    Questions,
    Request,
)
from bridge.snapshots.asking import Account, Asks, ProgressCallback, Thing
from bridge.snapshots.forgotten import forgotten
from bridge.snapshots.lists import ListedKinds
from bridge.snapshots.model import Translation, kind_of, numbers_in
from bridge.snapshots.published import Portion, Published, PublishIfDue
from bridge.snapshots.report import IdComparison, cover, some
from bridge.snapshots.texts import Merged
from bridge.snapshots.wanted import Estimate, Found, Wanted, chunks

T = TypeVar("T")

LARGE: Final = 20_000
"""Records that a long run publishes at once, however soon: they are in memory in several forms."""
Markets = tuple[list[MarketTranslations], list[MarketTranslationItem]]
"""In all languages at once, and in one."""


class Translations:
    """One run of the job. `codec` decodes the records of its topic."""

    def __init__(self, settings: ApiSettings, codec: Codec, found: Found, clock: Clock = instant.now) -> None:
        self._settings, self._found, self._task, self._clock = settings, found, found.task, clock
        self._questions = Questions(settings)
        self._published = Published(found.present, codec, Translation, KINDS)
        self.wanted = Wanted(found, self._published.get)
        if found.refreshes and settings.keep_names == "days" and found.state.usage.of["event"]:
            self._published.gone = forgotten(found.present, self._published.get, found.state.usage)
        self._merged = Merged(self._task, settings.language_keys, self._published.get)
        self._lists = ListedKinds(settings, found, self.wanted, self._published, self._merged)
        self._unknown_events: set[int] = set()
        self._unnamed: set[str] = set()
        self._looked_up = {name.encode() for name in self.wanted.owed}
        """Keys of what was owed."""
        self._comparisons = (
            IdComparison("countryId", "region's id"),
            IdComparison("competitionId", "league's id"),
        )

    async def run(
        self, asks: Asks, snapshot_id: str, progress: ProgressCallback, publish: PublishIfDue
    ) -> Portion:
        """Ask about everything and merge it. Raises ApiError, AuthError and ClockError."""
        wanted = self.wanted
        self._account = account = Account(
            asks,
            self._settings,
            wanted.owed,
            progress,
            lambda: publish(self._portion, len(self._merged.fresh) >= LARGE),
            self._clock,
        )
        account.asked = set() if self._task.cut else None
        for kind in self._task.lists:
            await self._lists.read(kind, account)
        events = [Thing("event", x) for x in wanted.events]
        await account.ask_each("events", events, self._event, self._take_event)
        markets = [Thing("markets", x) for x in wanted.markets]
        await account.ask_each("markets", markets, self._markets, self._take_markets)
        for kind in self._task.lists:
            await self._lists.ask_by_id(kind, account)
        await self._templates("selection-template", [(None, wanted.selections)])
        await self._templates("market-type-template", [*wanted.types.items()])
        self._lists.leave_out_flaws(account)
        return self._last_portion(snapshot_id)

    def estimate(self) -> list[Estimate]:
        """Estimate the requests of a run before it starts, without retries.

        Endpoints without a right and unknown events make it less.
        """
        task, wanted, rows = self._task, self.wanted, list[Estimate]()
        languages, sports = len(task.languages), len(self._lists.sports())
        for kind in task.lists:
            by_sport = self._questions.by_sport(kind)
            least = languages * (sports if by_sport else 1)
            most = None if by_sport and "sport" in task.lists else least  # their list may have others
            rows.append(Estimate(f"/api/translations/{{lang}}/{kind}s", least, most))
        for kind in task.lists:
            is_open = (self._found.refreshes and wanted.known[kind]) or (
                kind == "competitor" and wanted.events
            )
            most = None if is_open else len(wanted.listed[kind])
            rows.append(Estimate(f"/api/translations/all/{kind}/{{{kind}Id}}", 0, most))
        events, markets = len(wanted.events), len(wanted.markets)
        selections = len([*chunks(wanted.selections)])
        types = sum(len([*chunks(ids)]) for ids in wanted.types.values())
        rows += [
            Estimate("/api/translations/all/event/{eventId}", events, events),
            Estimate("/api/translations/all/{eventId}/markets", markets, markets),
            Estimate("/api/translations/{lang}/{eventId}/markets", 0, markets * languages),
            Estimate("/api/translations/templates/selections", selections, selections),
            Estimate("/api/translations/templates/market-types", types, types),
        ]
        return [row for row in rows if row.most != 0]

    # Events.

    async def _event(self, thing: Thing) -> EventTranslations | None:
        request = self._questions.event(int(thing.id))
        answer = await self._account.ask_about(thing, request, lambda event: event["eventTranslation"]["id"])
        if answer is None:
            self._unknown_events.add(int(thing.id))
        return answer

    def _take_event(self, thing: Thing, event: EventTranslations) -> None:
        number = int(thing.id)
        self._lists.competitors.update(self._merged.event(event, not thing.flawed))
        if (use := self._found.usage.of["event"].get(number)) and use.place:
            regions, leagues = self._comparisons
            regions.see(number, use.place.country, event["region"]["id"])
            leagues.see(number, use.place.competition, event["league"]["id"])

    async def _markets(self, thing: Thing) -> Markets:
        number, more = int(thing.id), list[MarketTranslationItem]()
        if number in self._unknown_events:
            return [], []
        use = self._found.usage.of["event"].get(number)
        sport = use.place.sport if use and use.place else 0
        refusals: list[ApiError] = []

        async def answer_of(request: Request[list[T]]) -> list[T]:
            """Return nothing if the request is refused: the others may make up for it."""
            try:
                return await self._account.ask_about(thing, request) or []
            except ApiError as error:
                refusals.append(error)
                return []

        in_all = self._questions.all_markets(number, sport)
        found = await answer_of(in_all)
        texts_found = [
            self._merged.normalize(entity["translations"])
            for market in found
            for entity in (market["marketTranslations"], *market["selections"])
        ]
        for language in self._task.languages:
            if not texts_found or any(language not in texts for texts in texts_found):
                more += await answer_of(self._questions.markets(number, language, sport))
        match refusals:
            case [Forbidden(endpoint=in_all.endpoint)]:
                return found, more  # the single languages make up for the missing right to all of them
            case [first, *_] if not found and not more:
                raise first
        for error in refusals:
            thing.flawed = True
            self._account.leave_out(error.endpoint, str(number), str(error))
        return found, more

    def _take_markets(self, thing: Thing, answers: Markets) -> None:
        keys = self._merged.markets(int(thing.id), *answers, not thing.flawed)
        if self._account.was_owed(thing):
            self._looked_up |= keys

    # Templates.

    async def _templates(self, kind: Template, by_sport: Iterable[tuple[int | None, Sequence[int]]]) -> None:
        def request_of(things: Sequence[Thing]) -> Request[list[EntityTranslation]]:
            ids, sport = [int(thing.id) for thing in things], things[0].sport
            if sport is None:
                return self._questions.selection_templates(ids)
            return self._questions.market_type_templates(sport, ids)

        def take(things: Sequence[Thing], found: list[EntityTranslation]) -> None:
            by_id = {thing.id: thing for thing in things}
            for entity in found:
                # A provider that does not know the parameters may answer with any ids.
                if thing := by_id.get(entity["id"]):
                    type_ = None if thing.sport is None else thing.id
                    belongs = {"sport_id": thing.sport, "market_type_id": type_}
                    self._merged.entity(kind, entity, not thing.flawed, belongs)

        of_sport: dict[int | None, dict[int, Thing]] = {}
        for thing in self._account.begin([Thing(kind, x, sport) for sport, ids in by_sport for x in ids]):
            of_sport.setdefault(thing.sport, {})[int(thing.id)] = thing
        asked = [[of[x] for x in part] for of in of_sport.values() for part in chunks([*of])]
        await self._account.ask_chunks(f"{kind.replace('-', ' ')}s", asked, request_of, take)

    # What is published.

    def _portion(self, snapshot_id: str) -> Portion | None:
        """Return what is new since the last portion, as written; None if nothing is."""
        # An ordinary run asks by its id only about what the topic lacks: it must not have it by half.
        keys = {x for x in self._merged.fresh if self._found.full or self._is_whole(x)}
        self._merged.fresh.clear()
        changed = self._changed(keys, {*KINDS} - {*LISTED})
        portion = self._published.change(snapshot_id, changed, self._account)
        # Nothing in the topic of a first run is older than this one: it need not be in memory twice.
        if self._found.resumed or self._published.was_empty:
            self._merged.records.update((key, b"") for key in keys & self._merged.records.keys())
        return portion if portion.written else None

    def _is_whole(self, key: bytes) -> bool:
        record = self._merged.record(key)
        return kind_of(key) not in LISTED or not {*self._task.languages} - {*(record.texts if record else ())}

    def _changed(self, keys: Iterable[bytes], reliable: Collection[str]) -> Iterator[Translation]:
        """Yield the records that differ from the topic's. Only the `reliable` kinds lose texts."""
        is_refresh, gone = self._found.refreshes, self._published.gone
        for key in keys:
            kind, old = kind_of(key), None if key in gone else self._published.get(key)
            # What is owed has texts that only a request that failed may have.
            removes = is_refresh and kind in reliable and key.decode() not in self._account.owed
            new = self._merged.against(key, old, removes=removes)
            gone.discard(key)
            if kind in reliable:  # else it may be added to
                del self._merged.records[key]
                self._merged.complete.discard(key)
            if new is not None:
                if kind == "event" and not new.texts:
                    self._unnamed.add(key.decode())
                yield new

    def _last_portion(self, snapshot_id: str) -> Portion:
        """Return all that is left to publish; note what is refused for longer than until the next run."""
        account, found, task = self._account, self._found, self._task
        pending = [key for key, packed in self._merged.records.items() if packed]
        changed = self._changed(pending, {*task.kinds} - self._lists.unreliable(account))
        portion = self._published.change(snapshot_id, changed, account, whole=True)
        portion.coverage = cover(found.usage, task, self._published.get, self._looked_up)
        portion.notes = self._notes()
        refused, missing, partial = found.state.refused, self._lists.vanished.missing, set[str]()
        if task.narrowed:  # the next whole run asks again: this one may keep only a part of each answer
            missing |= {*filterfalse(task.covers, refused["missing"])}
            events = found.state.usage.of["event"]
            partial = {
                name
                for name in refused["partial"] | (account.asked or set())
                if not name.startswith(("event:", "markets:")) or numbers_in(name)[1][0] in events
            }
        refused |= {"partial": partial, "missing": missing}
        return portion

    def _notes(self) -> list[str]:
        notes = [str(comparison) for comparison in self._comparisons if comparison.seen]
        notes += self._lists.vanished.notes
        notes += self._published.notes()
        if unknown := self._unknown_events:
            notes.append(f"{len(unknown):,} events are unknown to the provider, {some(unknown)}")
        if unnamed := self._unnamed:
            notes.append(f"{len(unnamed):,} events have no name, {some(unnamed)}")
        return notes + self._merged.notes(self._settings.languages, all_=self._found.full)

"""Fetches all translations of a run, in the order that needs the fewest requests.

    lists        sports, regions, leagues, competitors, in each language
    events       with their sport, region, league and competitors
    markets      of events, with their selections: in all languages at once, then in those still missing
    by id        things that bets or events mention and that lack a language; things that the topic has and
                 the lists lack, to learn whether they are gone
    templates    of selections and of market types, a hundred ids at a time

Interface, "Translations". A list that fails ends the run before anything is published; for all other failures
see `bridge.snapshots.asking`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from bridge import clock as instant
from bridge.clock import Clock
from bridge.config import ApiSettings
from bridge.config.api import Kind, Listed, Template
from bridge.errors import ApiError, Forbidden, Rejected
from bridge.rest.answers import Flaw
from bridge.rest.endpoints import (
    EntityTranslation,
    EventTranslations,
    MarketTranslationItem,
    MarketTranslations,
    Questions,
    Request,
    TranslationItem,
)
from bridge.snapshots.asking import Account, Asks, ProgressCallback, Thing
from bridge.snapshots.merge import MergedNames
from bridge.snapshots.model import key_of
from bridge.snapshots.plan import FetchPlan, chunks
from bridge.snapshots.references import Place
from bridge.snapshots.results import IdComparison
from bridge.snapshots.vanished import Vanished

T = TypeVar("T")
A = TypeVar("A")

AHEAD = 8
"""So many times the concurrency are asked about ahead of one that is late: several may be late at once."""


class Fetcher:
    """Fetches what one run needs. `places` has the league and region of events according to the bets."""

    def __init__(
        self,
        asks: Asks,
        settings: ApiSettings,
        plan: FetchPlan,
        places: Mapping[int, Place],
        progress: ProgressCallback = lambda what, done, total: None,
        clock: Clock = instant.now,
    ) -> None:
        self.names = MergedNames(plan.scope, settings.language_keys)
        self.account = Account(asks, settings, plan.owed, clock)
        self.gone: set[bytes] = set()
        """Keys of what the topic has and the provider neither lists nor names any more."""
        self.vanished = Vanished(settings.max_shrink_share, plan.missing_before, full=plan.used is not None)
        self.unknown_events: set[int] = set()
        self.comparisons = {
            "region": IdComparison("countryId", "region's id"),
            "league": IdComparison("competitionId", "league's id"),
        }
        self._settings = settings
        self._questions = Questions(settings)
        self._plan = plan
        self._places = places
        self._progress = progress
        self._listed: dict[Listed, set[int]] = {}
        """Kind → the ids of its list, if it was read completely."""
        self._flawed: list[tuple[Listed, str, str, Flaw]] = []
        """Invalid items of lists: kind, language, endpoint and flaw."""
        self._competitors: set[int] = set()
        """Competitors of the fetched events: bets do not mention them."""

    @property
    def unreliable_kinds(self) -> set[Kind]:
        """Kinds with failed or invalid answers: a text that is missing may be among those."""
        lists = set(self._plan.lists)
        if any(name.startswith("event:") for name in self.account.owed):
            return {*lists}
        return {*(lists - self._listed.keys()), *(kind for kind, *_ in self._flawed)}

    async def run(self) -> MergedNames:
        """Fetch everything. Raises ApiError, AuthError and ClockError."""
        plan = self._plan
        for kind in plan.lists:
            await self._list(kind)
        events = [Thing("event", number) for number in plan.events]
        await self._each("events", events, self._event, self._take_event)
        markets = [Thing("markets", number) for number in plan.markets]
        await self._each("markets", markets, self._markets, self._take_markets)
        for kind in plan.lists:
            await self._by_id(kind)
        of_selections = [Thing("selection-template", number) for number in plan.selection_templates]
        await self._templates("selection-template", of_selections)
        types = [(number, sport) for sport, found in plan.market_type_templates.items() for number in found]
        await self._templates("market-type-template", [Thing("market-type-template", *x) for x in types])
        self._report_flawed_items()
        return self.names

    # Lists.

    async def _list(self, kind: Listed) -> None:
        languages = self._plan.scope.languages
        sports: Sequence[int | None] = [None]
        if self._questions.by_sport(kind):
            sports = self._plan.known_sports(*self._listed.get("sport", ()))
        whole, listed = bool(sports), set[int]()
        parts = [(language, sport) for language in languages for sport in sports]
        for done, (language, sport) in enumerate(parts, 1):
            request = self._questions.listed(kind, language, sport)
            answered = await self.account.ask_list(request, language)
            whole = whole and answered is not None and all(flaw.id is not None for flaw in answered.flaws)
            if answered is not None:
                self._flawed += ((kind, language, request.endpoint, flaw) for flaw in answered.flaws)
                self._take_list(kind, answered.content or [], listed)
                listed.update(flaw.id for flaw in answered.flaws if flaw.id is not None)
            self._progress(f"{kind}s", done, len(parts))
        if whole:
            self._listed[kind] = listed

    def _take_list(self, kind: Listed, items: list[TranslationItem], listed: set[int]) -> None:
        items.reverse()
        while items:  # freed one by one: a list may be long
            item = items.pop()
            listed.add(item["id"])
            self.names.item(kind, item)

    def _report_flawed_items(self) -> None:
        """Report invalid items, unless another answer had their text."""
        for kind, language, endpoint, flaw in self._flawed:
            if flaw.id is None or self.names.lacks(kind, flaw.id, (language,)):
                self.account.leave_out(endpoint, None if flaw.id is None else str(flaw.id), flaw.why)

    # By id.

    async def _by_id(self, kind: Listed) -> None:
        """Fetch what is mentioned and lacks a language, and check what is missing from the list."""
        missing = self._missing_from_lists(kind)
        mentioned = {*self._plan.mentioned.get(kind, ())}
        if kind == "competitor":
            mentioned |= self._competitors
        languages = self._plan.scope.languages
        lacking = {number for number in mentioned if self.names.lacks(kind, number, languages)}
        # Owed things may be in a list by now, in each language.
        whole = {x for x in mentioned if not self.names.lacks(kind, x, self._settings.languages)}
        self.account.owed -= {str(Thing(kind, number)) for number in whole}

        async def ask(thing: Thing) -> EntityTranslation | None:
            request = self._questions.single(kind, int(thing.id))
            try:
                answer = await self.account.ask_about(thing, request)
            except Rejected as error:
                if thing.suspected and error.status == 404:  # gone
                    return {"id": int(thing.id), "translations": {}}
                raise
            return _about(thing, request, answer, lambda entity: entity)

        def take(thing: Thing, entity: EntityTranslation) -> None:
            self.names.entity(kind, entity, complete=not thing.flawed)
            if thing.id in missing and not thing.flawed and not self.names.normalize(entity["translations"]):
                self.gone.add(key_of(kind, int(thing.id)))

        things = [Thing(kind, x, suspected=x not in lacking) for x in sorted(lacking | missing)]
        await self._each(f"{kind}s by id", things, ask, take)

    def _missing_from_lists(self, kind: Listed) -> set[int]:
        """Return the ids that the topic has, no bet mentions, and neither the list nor another answer has."""
        known = self._plan.in_topic.get(kind)
        if known is None or kind not in self._listed or self._plan.scope.narrowed:
            return set()
        missing = [number for number in known if number not in self._listed[kind]]
        gone = self.vanished.believed(kind, known, missing, f"{kind}s")
        used = {*(self._plan.used or {}).get(kind, ())}
        if kind == "competitor":
            used |= self._competitors
        return {x for x in gone if x not in used and self.names.lacks(kind, x, ())}

    # Events.

    async def _event(self, thing: Thing) -> EventTranslations | None:
        request = self._questions.event(int(thing.id))
        answer = await self.account.ask_about(thing, request)
        if answer is None:
            self.unknown_events.add(int(thing.id))
        return _about(thing, request, answer, lambda event: event["eventTranslation"])

    def _take_event(self, thing: Thing, event: EventTranslations) -> None:
        number = int(thing.id)
        self.names.event(event, complete=not thing.flawed)
        self._competitors.update(competitor["id"] for competitor in event["competitors"])
        if place := self._places.get(number):
            self.comparisons["region"].see(number, place.country, event["region"]["id"])
            self.comparisons["league"].see(number, place.competition, event["league"]["id"])

    async def _markets(self, thing: Thing) -> tuple[list[MarketTranslations], list[MarketTranslationItem]]:
        number, more = int(thing.id), list[MarketTranslationItem]()
        if number in self.unknown_events:
            return [], []
        place = self._places.get(number)
        sport = place.sport if place else 0
        refusals: list[ApiError] = []

        async def answer_of(request: Request[list[T]]) -> list[T]:
            """Return nothing if the request is refused: the others may make up for it."""
            try:
                return await self.account.ask_about(thing, request) or []
            except ApiError as error:
                refusals.append(error)
                return []

        in_all = self._questions.all_markets(number, sport)
        found = await answer_of(in_all)
        texts_found = [
            self.names.normalize(entity["translations"])
            for market in found
            for entity in (market["marketTranslations"], *market["selections"])
        ]
        for language in self._plan.scope.languages:
            if not texts_found or any(language not in texts for texts in texts_found):
                more += await answer_of(self._questions.markets(number, language, sport))
        match refusals:
            case [Forbidden(endpoint=in_all.endpoint)]:
                return found, more  # the single languages make up for the missing right to all of them
            case [first, *_] if not found and not more:
                raise first
        for error in refusals:
            thing.flawed = True
            self.account.leave_out(error.endpoint, str(number), str(error))
        return found, more

    def _take_markets(
        self, thing: Thing, answers: tuple[list[MarketTranslations], list[MarketTranslationItem]]
    ) -> None:
        found, more = answers
        self.names.all_markets(int(thing.id), found, complete=not thing.flawed)
        self.names.markets(int(thing.id), more)

    # Templates.

    async def _templates(self, kind: Template, things: Sequence[Thing]) -> None:
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
                    self.names.entity(
                        kind,
                        entity,
                        complete=not thing.flawed,
                        sport_id=thing.sport,
                        market_type_id=None if thing.sport is None else thing.id,
                    )

        by_sport: dict[int | None, list[int]] = {}
        for thing in self.account.begin(things):
            by_sport.setdefault(thing.sport, []).append(int(thing.id))
        asked = [
            [Thing(kind, x, sport) for x in part] for sport, ids in by_sport.items() for part in chunks(ids)
        ]
        what = f"{kind.replace('-', ' ')}s"
        await self._in_order(what, asked, lambda things: self.account.ask_chunk(things, request_of), take)

    # Concurrency.

    async def _each(
        self,
        what: str,
        things: Sequence[Thing],
        ask: Callable[[Thing], Coroutine[Any, Any, A | None]],
        take: Callable[[Thing, A], None],
    ) -> None:
        things = self.account.begin(things)
        await self._in_order(what, things, lambda thing: self.account.attempt(thing, ask), take)

    async def _in_order(
        self,
        what: str,
        things: Sequence[T],
        ask: Callable[[T], Coroutine[Any, Any, A | None]],
        take: Callable[[T, A], None],
    ) -> None:
        """Ask about each thing, some at a time. An exception cancels all of them.

        Answers are taken in the order of the things, so that the result does not depend on their timing.
        """
        turns = asyncio.Semaphore(self._settings.concurrency)

        async def ask_in_turn(thing: T) -> A | None:
            await turns.acquire()
            answer = await ask(thing)
            turns.release()  # not after a failure, which ends the run
            return answer

        todo = iter(things)
        asked: deque[tuple[T, asyncio.Task[A | None]]] = deque()
        try:
            for done in range(1, len(things) + 1):
                for thing in islice(todo, AHEAD * self._settings.concurrency - len(asked)):
                    asked.append((thing, asyncio.create_task(ask_in_turn(thing))))
                thing, task = asked[0]
                if (answer := await task) is not None:
                    take(thing, answer)
                asked.popleft()
                self._progress(what, done, len(things))
        finally:
            tasks = [task for _, task in asked]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


def _about(
    thing: Thing, request: Request[T], answer: T | None, entity: Callable[[T], EntityTranslation]
) -> T | None:
    """Return the answer if it is about the requested id. Raises ApiError."""
    if answer is not None and (other := entity(answer)["id"]) != thing.id:
        raise ApiError(f"{request} answered about another id: {other}", request.endpoint)
    return answer

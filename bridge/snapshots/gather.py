"""Asks the provider all that a run wants to know, in the order that needs the fewest questions.

    lists        sports, regions, leagues, competitors, in each language
    events       names, and what they belong to
    markets      of events, with their selections: all languages at once, then those still missing
    by id        what bets and events mention and all that lacks a language for; what the topic has and the
                 lists do not, to learn whether it is gone
    templates    of selections and of market types, a hundred ids at a time

Interface, "Translations". What the provider gives no right to is left out and told; what it does not know
of an event is not asked for again; any other failure ends the run, before anything is published.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, TypeVar

from bridge.config import ApiSettings
from bridge.errors import ApiError, Forbidden
from bridge.snapshots.collected import Collected
from bridge.snapshots.mentions import Place
from bridge.snapshots.records import LISTED, Kind, Listed
from bridge.snapshots.requests import (
    Answered,
    EntityTranslation,
    EventTranslations,
    MarketTranslationItem,
    MarketTranslations,
    Questions,
    Request,
    TranslationItem,
)
from bridge.snapshots.verdict import Verdict
from bridge.snapshots.wants import MOST_DOUBTED, OF_MARKETS, Wants, chunks

T = TypeVar("T")
A = TypeVar("A")


Progress = Callable[[str, int, int], None]
"""Told what is asked about, how many of these are done, and of how many."""


class Asks(Protocol):
    """The provider, as `bridge.snapshots.client.Client`."""

    async def ask(self, request: Request[T], attempts: int | None = None) -> Answered[T]:
        """The answer. Raises ApiError, AuthError."""


class Gatherer:
    """One run's questions. `places` is where bets say that events are."""

    def __init__(
        self,
        asks: Asks,
        settings: ApiSettings,
        wants: Wants,
        places: Mapping[int, Place],
        progress: Progress = lambda what, done, total: None,
    ) -> None:
        self.collected = Collected(wants.scope, settings.language_keys)
        self.forbidden: dict[str, Forbidden] = {}
        """Path of an endpoint → how it was refused."""
        self.gone: dict[Listed, set[int]] = {}
        """What the topic has, and the provider neither lists nor names any more."""
        self.unknown_events: set[int] = set()
        self.verdicts = {
            "region": Verdict("countryId", "region's id"),
            "league": Verdict("competitionId", "league's id"),
        }
        self._asks = asks
        self._settings = settings
        self._questions = Questions(settings)
        self._wants = wants
        self._places = places
        self._progress = progress
        self._listed: dict[Listed, set[int]] = {}
        """Of the kinds whose lists were read in every language."""
        self._competitors: set[int] = set()
        """Those of the events: bets do not name them."""

    @property
    def untouched(self) -> set[Kind]:
        """The kinds of which something was not told: what is not in the answers proves nothing."""
        return {kind for path in self.forbidden for kind in _KINDS_OF[path]}

    async def run(self) -> Collected:
        """Ask it all. Raises ApiError and AuthError."""
        wants = self._wants
        for kind in wants.lists:
            await self._list(kind)
        await self._each("events", wants.events, self._event, self._take_event)
        await self._each("markets", wants.markets, self._markets, self._take_markets)
        for kind in wants.lists:
            await self._by_id(kind)
        await self._each(
            "selection templates",
            list(chunks(wants.selection_templates)),
            lambda ids: self._ask(self._questions.selection_templates(ids)),
            self._take_selections,
        )
        await self._each(
            "market type templates",
            [(sport, ids) for sport, found in wants.market_type_templates.items() for ids in chunks(found)],
            lambda types: self._ask(self._questions.market_type_templates(*types)),
            self._take_market_types,
        )
        return self.collected

    async def _list(self, kind: Listed) -> None:
        whole, listed = True, set[int]()

        def take(language: str, items: list[TranslationItem] | None) -> None:
            nonlocal whole
            whole = whole and items is not None
            while items:  # let go one by one: a list may be long
                item = items.pop()
                listed.add(item["id"])
                self.collected.item(kind, item)

        languages = self._wants.scope.languages
        await self._each(
            f"{kind}s",
            languages,
            lambda language: self._ask(self._questions.listed(kind, language)),
            take,
            at_once=1,  # one long list in memory is enough
        )
        if whole and set(languages) >= set(self._settings.languages):
            self._listed[kind] = listed

    async def _by_id(self, kind: Listed) -> None:
        """What is mentioned and not told in every language; and what the topic has and nobody has told of."""
        doubted = self._doubted(kind)
        mentioned = self._competitors if kind == "competitor" else self._wants.mentioned[kind]
        lacking = {number for number in mentioned if self._lacks(kind, number)}

        async def ask(number: int) -> EntityTranslation | None:
            request = self._questions.single(kind, number)
            answer = await self._ask(request)
            return _about(number, request, answer, lambda entity: entity)

        def take(number: int, entity: EntityTranslation | None) -> None:
            if entity is None:
                return
            self.collected.entity(kind, entity)
            if number in doubted and not self.collected.named(entity["translations"]):
                self.gone.setdefault(kind, set()).add(number)

        await self._each(f"{kind}s by id", sorted(lacking | doubted), ask, take)

    def _doubted(self, kind: Listed) -> set[int]:
        """What the topic has, and neither the list nor anything else has told of."""
        if kind not in self._listed:
            return set()
        unlisted = (number for number in self._wants.known[kind] if number not in self._listed[kind])
        doubted = {number for number in unlisted if self.collected.lacks(kind, number, ())}
        # So many are more likely a list that is not whole than gone. Once in a while all are asked about.
        return doubted if self._wants.full or len(doubted) <= MOST_DOUBTED else set()

    async def _event(self, number: int) -> EventTranslations | None:
        request = self._questions.event(number)
        answer = await self._of_event(number, request)
        return _about(number, request, answer, lambda event: event["eventTranslation"])

    def _take_event(self, number: int, event: EventTranslations | None) -> None:
        if event is None:
            return
        self.collected.event(event)
        self._competitors.update(competitor["id"] for competitor in event["competitors"])
        if place := self._places.get(number):
            self.verdicts["region"].see(number, place.country, event["region"]["id"])
            self.verdicts["league"].see(number, place.competition, event["league"]["id"])

    async def _markets(self, number: int) -> tuple[list[MarketTranslations], list[MarketTranslationItem]]:
        found = await self._of_event(number, self._questions.all_markets(number)) or []
        told = [
            self.collected.named(entity["translations"])
            for market in found
            for entity in (market["marketTranslations"], *market["selections"])
        ]
        more: list[MarketTranslationItem] = []
        for language in self._wants.scope.languages:
            if not told or any(language not in texts for texts in told):
                one = await self._of_event(number, self._questions.markets(number, language))
                more += one or ()
        return found, more

    def _take_markets(
        self, number: int, answers: tuple[list[MarketTranslations], list[MarketTranslationItem]]
    ) -> None:
        found, more = answers
        self.collected.all_markets(number, found)
        self.collected.markets(number, more)

    def _take_selections(self, ids: Sequence[int], found: list[EntityTranslation] | None) -> None:
        for entity in _asked_for(ids, found):
            self.collected.entity("selection-template", entity)

    def _take_market_types(
        self, types: tuple[int, Sequence[int]], found: list[EntityTranslation] | None
    ) -> None:
        sport, ids = types
        for entity in _asked_for(ids, found):
            self.collected.entity("market-type-template", entity, sport_id=sport, market_type_id=entity["id"])

    # How it is asked.

    async def _ask(self, request: Request[T]) -> T | None:
        """The answer; None too where there is no right to it, which is asked about once."""
        if request.endpoint in self.forbidden:
            return None
        try:
            return (await self._asks.ask(request)).content
        except Forbidden as error:
            self.forbidden.setdefault(request.endpoint, error)
            return None

    async def _of_event(self, number: int, request: Request[T]) -> T | None:
        """The same, about an event that the provider may not know."""
        if number in self.unknown_events:
            return None
        answer = await self._ask(request)
        if answer is None and request.endpoint not in self.forbidden:
            self.unknown_events.add(number)
        return answer

    async def _each(
        self,
        what: str,
        things: Sequence[T],
        ask: Callable[[T], Coroutine[Any, Any, A]],
        take: Callable[[T, A], None],
        at_once: int | None = None,
    ) -> None:
        """Ask about each, some at a time. The first failure ends them all.

        Answers are taken in the order of the questions: what comes of a run depends on what the provider
        says, not on what it says first.
        """
        todo = iter(things)
        asked: deque[tuple[T, asyncio.Task[A]]] = deque()
        try:
            for done in range(1, len(things) + 1):
                for thing in islice(todo, (at_once or self._settings.concurrency) - len(asked)):
                    asked.append((thing, asyncio.create_task(ask(thing))))
                thing, task = asked[0]
                take(thing, await task)
                asked.popleft()
                self._progress(what, done, len(things))
        finally:
            tasks = [task for _, task in asked]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _lacks(self, kind: Listed, number: int) -> bool:
        return self.collected.lacks(kind, number, self._wants.scope.languages)


def _about(
    number: int, request: Request[T], answer: T | None, entity: Callable[[T], EntityTranslation]
) -> T | None:
    """The answer, which must be about what was asked. Raises ApiError."""
    if answer is not None and (other := entity(answer)["id"]) != number:
        raise ApiError(f"{request} answered about another id: {other}")
    return answer


def _asked_for(ids: Collection[int], found: Iterable[EntityTranslation] | None) -> list[EntityTranslation]:
    """Only what was asked for: a provider that does not understand the parameters may give anything."""
    return [entity for entity in found or () if entity["id"] in ids]


_KINDS_OF: dict[str, frozenset[Kind]] = {
    **{f"/api/translations/{{lang}}/{kind}s": frozenset({kind}) for kind in LISTED},
    **{f"/api/translations/all/{kind}/{{{kind}Id}}": frozenset({kind}) for kind in LISTED},
    "/api/translations/all/event/{eventId}": frozenset({"event", "sport", "region", "league", "competitor"}),
    "/api/translations/all/{eventId}/markets": OF_MARKETS,
    "/api/translations/{lang}/{eventId}/markets": OF_MARKETS,
    "/api/translations/templates/selections": frozenset({"selection-template"}),
    "/api/translations/templates/market-types": frozenset({"market-type-template"}),
}
"""Path of an endpoint → the kinds that it tells of."""

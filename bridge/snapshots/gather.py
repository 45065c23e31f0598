"""Asks the provider all that a run wants to know, in the order that needs the fewest questions.

    lists         sports, regions, leagues, competitors, in each language
    one by one    what bets mention and the lists lack a language for; what the topic has and the lists do not
    events        names, and what they belong to
    markets       of events, with their selections: all languages at once, then those still missing
    competitors   that the events name and neither lists nor events give all languages for
    templates     of selections and of market types, a hundred ids at a time

Interface, "Translations". What the provider gives no right to is left out and told; what it does not know
of an event is not asked for again; any other failure ends the run, before anything is published.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Protocol, TypeVar

from bridge.config import ApiSettings
from bridge.errors import ApiError, Forbidden
from bridge.snapshots.collected import Collected
from bridge.snapshots.mentions import Place
from bridge.snapshots.records import LISTED, Kind, Listed
from bridge.snapshots.requests import EntityTranslation, EventTranslations, Questions, Request
from bridge.snapshots.wants import OF_MARKETS, Wants, chunks

T = TypeVar("T")

Progress = Callable[[str, int, int], None]
"""Told what is asked about, how many of these are done, and of how many."""


class Asks(Protocol):
    """The provider, as `bridge.snapshots.client.Client`."""

    async def ask(self, request: Request[T]) -> T | None:
        """The answer; None where the provider knows nothing of it and may. Raises ApiError, AuthError."""


class Verdict:
    """Whether two ids are the same thing, by as many cases as there were."""

    def __init__(self, ours: str, theirs: str) -> None:
        self.ours, self.theirs = ours, theirs
        self.same = self.other = 0
        self.example = ""

    def see(self, event: int, ours: int, theirs: int) -> None:
        """A bet on the event says `ours`, the event itself `theirs`."""
        if ours == theirs:
            self.same += 1
        else:
            self.other += 1
            self.example = self.example or f"event {event}: {self.ours} {ours}, {self.theirs} {theirs}"

    def __str__(self) -> str:
        if not self.same + self.other:
            return f"{self.ours}: no event has told yet whether it is the {self.theirs}"
        if not self.other:
            return f"{self.ours} is the {self.theirs}: so it is in all {self.same:,} events asked about"
        return (
            f"{self.ours} is NOT the {self.theirs} in {self.other:,} of {self.same + self.other:,} events "
            f"({self.example})"
        )


class Gatherer:
    """One run's questions.

    `places` is where bets say that events are, `known` the ids that the topic has of the kinds with lists.
    """

    def __init__(
        self,
        asks: Asks,
        settings: ApiSettings,
        wants: Wants,
        places: Mapping[int, Place],
        known: Mapping[Listed, Collection[int]],
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
        self._known = known
        self._progress = progress
        self._listed: dict[Listed, set[int]] = {}
        """Of the kinds whose lists were read in every language."""
        self._competitors: set[int] = set()

    @property
    def untouched(self) -> set[Kind]:
        """The kinds of which something was not told: what is not in the answers proves nothing."""
        return {kind for path in self.forbidden for kind in _KINDS_OF[path]}

    async def run(self) -> Collected:
        """Ask it all. Raises ApiError and AuthError."""
        wants = self._wants
        for kind in wants.lists:
            await self._list(kind)
        for kind in wants.lists:
            await self._each(f"{kind}s by id", self._singles(kind), self._single(kind))
        await self._each("events", wants.events, self._event)
        await self._each("markets", wants.markets, self._markets)
        competitors = [c for c in sorted(self._competitors) if self._lacks("competitor", c)]
        await self._each("competitors of events", competitors, self._single("competitor"))
        await self._each("selection templates", list(chunks(wants.selection_templates)), self._selections)
        types = [(sport, c) for sport, ids in wants.market_type_templates.items() for c in chunks(ids)]
        await self._each("market type templates", types, lambda chunk: self._market_types(*chunk))
        return self.collected

    async def _list(self, kind: Listed) -> None:
        whole, listed = True, set[int]()

        async def one(language: str) -> None:
            nonlocal whole
            items = await self._ask(self._questions.listed(kind, language))
            if items is None:
                whole = False
                return
            listed.update(item["id"] for item in items)
            self.collected.items(kind, items)

        await self._each(f"{kind}s", self._wants.scope.languages, one)
        if whole and set(self._wants.scope.languages) >= set(self._settings.languages):
            self._listed[kind] = listed

    def _singles(self, kind: Listed) -> list[int]:
        """Mentioned and not told in every language; or had by the topic and in no list."""
        lacking = {number for number in self._wants.mentioned.get(kind, ()) if self._lacks(kind, number)}
        if kind in self._listed:
            lacking |= set(self._known.get(kind, ())) - self._listed[kind]
        return sorted(lacking)

    def _single(self, kind: Listed) -> Callable[[int], Awaitable[None]]:
        async def one(number: int) -> None:
            request = self._questions.single(kind, number)
            entity = await self._ask(request)
            if entity is None:
                return
            self._is_about(request, number, entity)
            self.collected.entity(kind, entity)
            unlisted = kind in self._listed and number not in self._listed[kind]
            if unlisted and not entity["translations"] and number in self._known.get(kind, ()):
                self.gone.setdefault(kind, set()).add(number)

        return one

    async def _event(self, number: int) -> None:
        request = self._questions.event(number)
        event = await self._of_event(number, request)
        if event is None:
            return
        self._is_about(request, number, event["eventTranslation"])
        self.collected.event(event)
        self._competitors.update(competitor["id"] for competitor in event["competitors"])
        self._compare(number, event)

    def _compare(self, number: int, event: EventTranslations) -> None:
        if place := self._places.get(number):
            self.verdicts["region"].see(number, place.country, event["region"]["id"])
            self.verdicts["league"].see(number, place.competition, event["league"]["id"])

    async def _markets(self, number: int) -> None:
        found = await self._of_event(number, self._questions.all_markets(number))
        self.collected.all_markets(number, found or ())
        told = [
            self.collected.codes(entity["translations"])
            for market in found or ()
            for entity in (market["marketTranslations"], *market["selections"])
        ]
        for language in self._wants.scope.languages:
            if found is None or not all(language in codes for codes in told):
                one = await self._of_event(number, self._questions.markets(number, language))
                self.collected.markets(number, one or ())

    async def _selections(self, ids: Collection[int]) -> None:
        found = await self._ask(self._questions.selection_templates(list(ids)))
        for entity in self._asked_for(ids, found):
            self.collected.entity("selection-template", entity)

    async def _market_types(self, sport: int, ids: Collection[int]) -> None:
        found = await self._ask(self._questions.market_type_templates(sport, list(ids)))
        for entity in self._asked_for(ids, found):
            self.collected.entity("market-type-template", entity, sport_id=sport, market_type_id=entity["id"])

    # How it is asked.

    async def _ask(self, request: Request[T]) -> T | None:
        """The answer; None too where there is no right to it, which is asked about once."""
        if request.endpoint in self.forbidden:
            return None
        try:
            return await self._asks.ask(request)
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

    async def _each(self, what: str, things: Collection[T], do: Callable[[T], Awaitable[None]]) -> None:
        """Do it for each, some at a time. The first failure ends them all."""
        todo, done = iter(things), 0

        async def work() -> None:
            nonlocal done
            for thing in todo:
                await do(thing)
                done += 1
                self._progress(what, done, len(things))

        workers = [asyncio.ensure_future(work()) for _ in range(min(self._settings.concurrency, len(things)))]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    def _lacks(self, kind: Listed, number: int) -> bool:
        return self.collected.lacks(kind, number, self._wants.scope.languages)

    @staticmethod
    def _is_about(request: Request[T], number: int, entity: EntityTranslation) -> None:
        if entity["id"] != number:
            raise ApiError(f"{request} answered about another id: {entity['id']}")

    @staticmethod
    def _asked_for(
        ids: Collection[int], found: Iterable[EntityTranslation] | None
    ) -> list[EntityTranslation]:
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

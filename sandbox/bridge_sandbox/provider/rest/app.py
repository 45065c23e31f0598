"""The REST side without its sockets: answers a request at a moment (interface, "Endpoints").

It checks the token (401), the request rate (429), the rights (403), then the request itself (400, 404).
`settings` decides what the interface leaves open, such as the names of parameters.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from math import ceil, inf
from typing import Any, get_args
from urllib.parse import parse_qs, urlsplit

import orjson

from bridge_sandbox.provider.clock import Clock
from bridge_sandbox.provider.rest.faults import Answer, RestFaults, problem
from bridge_sandbox.provider.rest.routes import CURRENCIES, Endpoint, Route, number_of, route
from bridge_sandbox.provider.rest.settings import RestPolicy
from bridge_sandbox.provider.rest.tokens import InvalidToken, Tokens
from bridge_sandbox.provider.world import currencies
from bridge_sandbox.provider.world.catalogue import Catalogue, WorldCatalogue
from bridge_sandbox.provider.world.entities import Entity, Indexed, World
from bridge_sandbox.provider.world.recorded import Names, RecordedCatalogue
from bridge_sandbox.provider.world.words import Language

Query = Mapping[str, list[str]]

MOST_IDS = 100
"""Limit of a collection (interface, "Limits")."""
_REMEMBERED = 100_000

_KINDS: dict[str, Indexed] = {
    endpoint: kind for kind in get_args(Indexed) for endpoint in (f"{kind}s", f"all-{kind}")
}


@dataclass(frozen=True)
class Exchange:
    """A request in the log."""

    at: float
    target: str
    """Path and query."""
    endpoint: Endpoint | None
    """None for an unknown path."""
    status: int
    fault: bool
    """Whether an injected fault affected it."""


class _Refused(Exception):
    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class Rest:
    """The translations and currencies of one world, or `names` that were recorded.

    Tokens expire by the provider's `clock`, which may step. The request rate is that of `now`.
    """

    def __init__(
        self,
        world: World,
        policy: RestPolicy | None = None,
        clock: Clock | None = None,
        names: Names | None = None,
    ) -> None:
        self.policy = policy = policy or RestPolicy()
        only = {"only_in_lists": policy.only_in_lists, "only_in_all": policy.only_in_all}
        self.catalogue: Catalogue = (
            RecordedCatalogue(names.translations, **only)
            if names and names.translations
            else WorldCatalogue(world, policy.languages, **only)
        )
        recorded = names.currencies if names else []
        self._currencies = recorded or [
            *currencies.ACTIVE,
            *(currencies.ODD if policy.odd_currencies else ()),
        ]
        self._precisions = {one.symbol: one.precision for one in recorded} or currencies.PRECISIONS
        self.tokens = Tokens(policy.secret.get_secret_value())
        self._clock = clock or Clock()
        self.faults = RestFaults()
        self.requests: deque[Exchange] = deque(maxlen=_REMEMBERED)
        """The newest requests."""
        self._whole_lists: dict[tuple[Indexed, Language, int], bytes] = {}
        self._bucket = _TokenBucket(policy.rate, policy.burst)

    def answer(self, now: float, target: str, authorization: str | None) -> Answer:
        """Answer a GET of `target` (path and query) at `now` (Unix seconds)."""
        address = urlsplit(target)
        found = route(address.path)
        if found is None:
            fault, answer = None, problem(404, f"there is nothing at {address.path}")
        else:
            query = parse_qs(address.query, keep_blank_values=True)
            fault = self.faults.strike(found.endpoint)
            proper = partial(self._proper, now, found, query, authorization)
            answer = fault.spoil(proper) if fault else proper()
        endpoint = found.endpoint if found else None
        self.requests.append(Exchange(now, target, endpoint, answer.status, fault is not None))
        return answer

    def _proper(self, now: float, found: Route, query: Query, authorization: str | None) -> Answer:
        try:
            self._admit(now, found.endpoint, authorization)
            return Answer(200, orjson.dumps(self._content(found, query)))
        except _Refused as refused:
            return refused.answer

    def _admit(self, now: float, endpoint: Endpoint, authorization: str | None) -> None:
        try:
            scopes = self.tokens.scopes(self._clock.reading(now), authorization)
        except InvalidToken as error:
            raise _Refused(problem(401, str(error), {"WWW-Authenticate": "Bearer"})) from None
        if wait := self._bucket.take(now):
            seconds = {"Retry-After": str(ceil(wait))}
            raise _Refused(problem(429, f"{self.policy.rate:g} requests a second are allowed", seconds))
        scope = "currencies" if endpoint in CURRENCIES else "translations"
        if scope not in scopes or endpoint in self.policy.forbidden:
            raise _Refused(problem(403, f"the token gives no right to {endpoint}"))

    def _content(self, found: Route, query: Query) -> object:
        match found.endpoint:
            case "sports" | "regions" | "leagues" | "competitors" as endpoint:
                return self._list(_KINDS[endpoint], found.language, query)
            case "all-sport" | "all-region" | "all-league" | "all-competitor" as endpoint:
                return self._single(_KINDS[endpoint], number_of(found.id) or 0)
            case "all-event":
                return self._event(found.id)
            case "markets" | "all-markets":
                return self._markets(found, query)
            case "selection-templates":
                query = self._asked(found, query)
                selections = self._collection(query, self.policy.selection_ids)
                return self._all_of(self.catalogue.selection_templates(selections))
            case "market-type-templates":
                query = self._asked(found, query)
                sport = self._sport(query)
                types = self._collection(query, self.policy.market_type_ids)
                return self._all_of(self.catalogue.market_type_templates(sport, types))
            case "active-currencies":
                return self._active_currencies(query)
            case "currency-precision":
                return self._precision(query)

    def _list(self, kind: Indexed, code: str, query: Query) -> object:
        language = self._spoken(code)
        if language is None:
            return []
        ids, sports = _filter(query, self.policy.ids), _filter(query, self.policy.sport_id)
        if ids is None and sports is None:
            return self._whole_list(kind, language)
        wanted = (
            entry
            for entry in self.catalogue.entries(kind)
            if (ids is None or entry.id in ids)
            and (sports is None or entry.relations.get("sportId") in {None, *sports})
        )
        return self._items(wanted, language)

    def _whole_list(self, kind: Indexed, language: Language) -> orjson.Fragment:
        """Return a whole list, cached until an entity changes: encoding 20,000 of them delays the feed."""
        key = kind, language, self.catalogue.changes
        if key not in self._whole_lists:
            items = self._items(self.catalogue.entries(kind), language)
            self._whole_lists = {k: v for k, v in self._whole_lists.items() if k[2] == key[2]}
            self._whole_lists[key] = orjson.dumps(items)
        return orjson.Fragment(self._whole_lists[key])

    def _markets(self, found: Route, query: Query) -> list[object]:
        event = self._known_event(found.id)
        ids, name, form = None, "marketTranslations", self._all_of
        if found.endpoint == "markets":
            if (language := self._spoken(found.language)) is None:
                return []
            ids, name = _filter(query, self.policy.ids), "market"
            form = partial(self._items, language=language)
        return [
            {
                "marketTypeId": market.relations.get("marketTypeId", 0),
                name: item,
                "selections": form(selections),
            }
            for market, selections in self.catalogue.markets(event.id)
            if ids is None or market.id in ids
            for item in form([market])
        ]

    def _event(self, event_id: str) -> object:
        event = self._known_event(event_id)
        related: Mapping[str, Any] = event.relations
        return {
            "eventTranslation": self._all(event),
            "sport": self._member("sport", related.get("sportId", 0)),
            "region": self._member("region", related.get("regionId", 0)),
            "league": self._member("league", related.get("leagueId", 0)),
            "competitors": [self._member("competitor", it) for it in related.get("competitorIds", ())],
        }

    def _known_event(self, text: str) -> Entity:
        number = number_of(text)
        if number is not None and (event := self.catalogue.entry("event", number)):
            return event
        raise _Refused(problem(404, f"there is no event {text}"))

    def _member(self, kind: Indexed, number: int) -> object:
        """Return an entity that an event refers to, with or without its names."""
        named = self.policy.event_members == "names"
        return self._single(kind, number) if named else {"id": number, "translations": {}}

    def _single(self, kind: Indexed, number: int) -> object:
        """Return an entity with its names; an unknown one has none, as the interface has no 404 here.

        What is no number is 0.
        """
        entry = self.catalogue.entry(kind, number)
        return self._all(entry) if entry else {"id": number, "translations": {}}

    def _items(self, entities: Iterable[Entity], language: Language) -> list[object]:
        """A TranslationItem of each entity that has a name in the language."""
        return [
            {"id": entity.id, "language": language, "translation": text}
            for entity in entities
            if (text := self.catalogue.text(entity, language))
        ]

    def _all_of(self, entities: Iterable[Entity]) -> list[object]:
        return list(map(self._all, entities))

    def _all(self, entity: Entity) -> object:
        """An EntityTranslation."""
        keys = self.policy.language_keys
        texts = self.catalogue.texts(entity)
        return {"id": entity.id, "translations": {keys.get(x, x): text for x, text in texts.items()}}

    def _spoken(self, code: str) -> Language | None:
        """Return the language of a code, or None: its list is empty, as the interface has no error here."""
        return next((language for language in self.catalogue.languages_of_lists if language == code), None)

    def _active_currencies(self, query: Query) -> object:
        wanted = query.get("type")
        listed = (one for one in self._currencies if one.type)  # a recorded one that was not listed has 0
        return [asdict(one) for one in listed if wanted is None or str(one.type) in wanted]

    def _precision(self, query: Query) -> object:
        symbol = query.get("symbol", ["EUR"])[-1]
        if symbol not in self._precisions:
            raise _Refused(problem(500, f"there is no currency {symbol}"))
        return {"precision": self._precisions[symbol]}

    def _asked(self, found: Route, query: Query) -> Query:
        """Return the parameters of the templates, from the path or the query."""
        policy = self.policy
        if policy.template_ids == "path":
            ids = [found.several] if found.several else []
            return {policy.selection_ids: ids, policy.sport_id: [found.id], policy.market_type_ids: ids}
        if found.several:
            raise _Refused(problem(404, "templates take no ids in the path"))
        return query

    def _collection(self, query: Query, name: str) -> list[int]:
        """Return the ids of templates; only their endpoints answer 400 (interface, "Errors")."""
        numbers = _numbers(query, name)
        if not numbers:
            raise _Refused(problem(400, f"{name} is missing"))
        if len(numbers) > MOST_IDS:
            raise _Refused(problem(400, f"{name} has {len(numbers)} ids, {MOST_IDS} are allowed"))
        return numbers

    def _sport(self, query: Query) -> int:
        numbers = _numbers(query, self.policy.sport_id)
        if len(numbers) != 1:
            raise _Refused(problem(400, f"{self.policy.sport_id} must be given once"))
        return numbers[0]


def _given(query: Query, name: str) -> list[str]:
    """Return the values of a parameter that is repeated, comma-separated, or both."""
    return [text for value in query.get(name, []) for text in value.split(",")]


def _numbers(query: Query, name: str) -> list[int]:
    given = _given(query, name)
    numbers = [number for text in given if (number := number_of(text)) is not None]
    if len(numbers) < len(given):
        raise _Refused(problem(400, f"{name} must be ids"))
    return numbers


def _filter(query: Query, name: str) -> set[int] | None:
    """Return the ids that filter a list, or None for no filter. A value that is not an id matches nothing."""
    found = {number_of(text) for text in _given(query, name)} if name in query else None
    return None if found is None else {number for number in found if number is not None}


class _TokenBucket:
    """Admits `burst` requests at once and `rate` a second in the long run."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, burst
        self._level, self._at = float(burst), -inf

    def take(self, now: float) -> float:
        """Return 0 if a request is admitted at `now`, else the seconds until one would be."""
        self._level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        if self._level < 1:
            return (1 - self._level) / self._rate
        self._level -= 1
        return 0

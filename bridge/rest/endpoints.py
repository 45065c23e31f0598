"""The endpoints of the provider's REST API: a request for each, and the shape of its answer.

One method an endpoint: 13 of translations, 2 of currencies (interface, "Endpoints"). Nothing is sent from
here. Parameter names that the interface leaves open come from the settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final, Generic, TypeVar
from urllib.parse import quote, urlencode

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, TypeAdapter, with_config
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from bridge.config import ApiSettings
from bridge.config.api import LISTED, Listed, ListEndpoint, placeholders
from bridge.formatting import shortened
from bridge.rest.answers import AnswerReader, shown

T_co = TypeVar("T_co", covariant=True)

MAX_SHOWN_CHARACTERS: Final = 150
"""Length of a request in messages."""
MAX_SYMBOL_CHARACTERS: Final = 100
"""Length limit of a currency's symbol."""
MAX_IDS: Final = 100
"""Ids in one request to a templates endpoint (interface, "Limits")."""


def _is_short(symbol: str) -> str:
    if len(symbol) > MAX_SYMBOL_CHARACTERS:
        raise PydanticCustomError(
            "symbol_too_long",
            "it begins with '{beginning}' and has {length} characters, {most} are allowed",
            {"beginning": shown(symbol), "length": f"{len(symbol):,}", "most": MAX_SYMBOL_CHARACTERS},
        )
    return symbol


def _with_symbol(currency: Any) -> Any:
    """Treat a missing symbol as null."""
    return {"symbol": None} | currency if isinstance(currency, dict) else currency


Id = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Places = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
"""Decimal places."""
Text = Annotated[str, Field(max_length=10_000)]
"""Valid Unicode: with a length limit pydantic also rejects unpaired surrogates."""
Symbol = Annotated[str, Field(max_length=2**31), AfterValidator(_is_short)]


# Unknown fields are ignored: they are not published.
@with_config(ConfigDict(strict=True, extra="ignore"))
class _AsSent(TypedDict):
    """What the provider sends."""


class TranslationItem(_AsSent):
    """A text in one language."""

    id: Id
    language: Text
    translation: Text


class EntityTranslation(_AsSent):
    """Texts in all languages."""

    id: Id
    translations: dict[Text, Text]


class MarketTranslationItem(_AsSent):
    """A market of an event in one language."""

    marketTypeId: Id
    market: TranslationItem
    selections: list[TranslationItem]


class MarketTranslations(_AsSent):
    """A market of an event in all languages."""

    marketTypeId: Id
    marketTranslations: EntityTranslation
    selections: list[EntityTranslation]


class EventTranslations(_AsSent):
    """An event with its sport, region, league and competitors, in all languages."""

    eventTranslation: EntityTranslation
    sport: EntityTranslation
    region: EntityTranslation
    league: EntityTranslation
    competitors: list[EntityTranslation]


class ListedCurrency(_AsSent):
    """An active currency. Types 1 to 3 are fiat, crypto and custom."""

    symbol: Symbol | None
    type: int
    precision: Places


class CurrencyPrecision(_AsSent):
    """Decimal places of a currency."""

    precision: Places


@dataclass(frozen=True)
class Request(Generic[T_co]):
    """A request, with the shape of its answer."""

    endpoint: str
    """The path as the interface writes it, with placeholders."""
    target: str
    """Path and query, relative to the base address."""
    shape: TypeAdapter[T_co]
    may_be_unknown: bool = False
    """Whether the interface allows a 404: for an event and its markets."""
    body: str = ""
    """JSON, if the ids are neither in the path nor in the query."""

    def __str__(self) -> str:
        # A hundred ids would hide the reason.
        return shortened(f"GET {self.target}{self.body and ' '}{self.body}", MAX_SHOWN_CHARACTERS)

    def reader(self, most_bytes: int) -> AnswerReader[T_co]:
        """Return a reader of the answer, up to a size."""
        return AnswerReader(str(self), self.shape, most_bytes)


_ITEMS: Final = TypeAdapter(list[TranslationItem])
_ENTITY: Final = TypeAdapter(EntityTranslation)
_ENTITIES: Final = TypeAdapter(list[EntityTranslation])
_EVENT: Final = TypeAdapter(EventTranslations)
_MARKETS: Final = TypeAdapter(list[MarketTranslationItem])
_ALL_MARKETS: Final = TypeAdapter(list[MarketTranslations])
_CURRENCIES: Final = TypeAdapter(list[Annotated[ListedCurrency, BeforeValidator(_with_symbol)]])
_PRECISION: Final = TypeAdapter(CurrencyPrecision)
_LISTS: Final[dict[Listed, ListEndpoint]] = dict(
    zip(LISTED, ("sports", "regions", "leagues", "competitors"), strict=True)
)


class Questions:
    """Builds the requests according to the settings."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings

    def by_sport(self, kind: Listed) -> bool:
        """Return whether the list is requested for each sport separately."""
        parameters = self._settings.query.get(_LISTS[kind], {}).values()
        return any("sportId" in placeholders(value) for given in parameters for value in _each(given))

    def listed(
        self, kind: Listed, language: str, sport_id: int | None = None
    ) -> Request[list[TranslationItem]]:
        """The whole list of a kind, in one language; of one sport, if it goes `by_sport`."""
        assert (sport_id is not None) == self.by_sport(kind)
        name = _LISTS[kind]
        query = self._query(name, language=language, sportId=sport_id)
        return _request(f"/api/translations/{{lang}}/{name}", _ITEMS, query, lang=language)

    def single(self, kind: Listed, number: int) -> Request[EntityTranslation]:
        """One sport, region, league or competitor, in all languages."""
        return _request(f"/api/translations/all/{kind}/{{{kind}Id}}", _ENTITY, (), **{f"{kind}Id": number})

    def event(self, event_id: int) -> Request[EventTranslations]:
        """An event with its sport, region, league and competitors, in all languages."""
        return _request("/api/translations/all/event/{eventId}", _EVENT, eventId=event_id)

    def markets(
        self, event_id: int, language: str, sport_id: int = 0
    ) -> Request[list[MarketTranslationItem]]:
        """The markets of an event with their selections, in one language. `sport_id` is the event's."""
        query = self._query("markets", language=language, eventId=event_id, sportId=sport_id)
        endpoint = "/api/translations/{lang}/{eventId}/markets"
        return _request(endpoint, _MARKETS, query, lang=language, eventId=event_id)

    def all_markets(self, event_id: int, sport_id: int = 0) -> Request[list[MarketTranslations]]:
        """The markets of an event with their selections, in all languages. `sport_id` is the event's."""
        query = self._query("all-markets", eventId=event_id, sportId=sport_id)
        return _request("/api/translations/all/{eventId}/markets", _ALL_MARKETS, query, eventId=event_id)

    def selection_templates(self, ids: Sequence[int]) -> Request[list[EntityTranslation]]:
        """Templates of at most `MAX_IDS` selections, in all languages."""
        path = "/api/translations/templates/selections"
        return self._templates(path, (), self._settings.selection_ids_parameter, ids)

    def market_type_templates(self, sport_id: int, ids: Sequence[int]) -> Request[list[EntityTranslation]]:
        """Templates of at most `MAX_IDS` market types in a sport, in all languages."""
        path = "/api/translations/templates/market-types"
        sport = (self._settings.sport_id_parameter, sport_id)
        return self._templates(path, [sport], self._settings.market_type_ids_parameter, ids)

    def active_currencies(self, type_: int | None = None) -> Request[list[ListedCurrency]]:
        """All active currencies, or those of one type."""
        query = [] if type_ is None else [("type", type_)]
        return _request("/api/CurrencyExchange/active-currencies", _CURRENCIES, query)

    def currency_precision(self, symbol: str) -> Request[CurrencyPrecision]:
        """The precision of any currency."""
        return _request("/api/CurrencyExchange/currency-precision", _PRECISION, [("symbol", symbol)])

    def _query(self, endpoint: ListEndpoint, **asked: object) -> list[tuple[str, object]]:
        given = self._settings.query.get(endpoint, {})
        return [(name, value.format(**asked)) for name, values in given.items() for value in _each(values)]

    def _templates(
        self, path: str, of: Sequence[tuple[str, int]], name: str, ids: Sequence[int]
    ) -> Request[list[EntityTranslation]]:
        """Build a request for templates. `of` has the parameters besides the ids."""
        assert 0 < len(ids) <= MAX_IDS
        settings, target, body = self._settings, path, dict[str, Any]()
        query: list[tuple[str, object]] = []
        sport_place = settings.template_sport or settings.template_ids
        places = [(sport_place, key, [number]) for key, number in of]
        for place, key, numbers in (*places, (settings.template_ids, name, [*ids])):
            with_commas = ",".join(map(str, numbers))
            match place:
                case "path":
                    target = f"{target}/{with_commas}"
                case "body":
                    body[key] = numbers if key == name else numbers[0]
                case "query" if settings.collections == "commas":
                    query.append((key, with_commas))
                case "query":
                    query += [(key, number) for number in numbers]
        request = _request(target, _ENTITIES, query)
        return replace(request, endpoint=path, body=json.dumps(body) if body else "")


def _each(values: str | list[str]) -> list[str]:
    return [values] if isinstance(values, str) else values


def _request(
    endpoint: str, shape: TypeAdapter[T_co], query: Iterable[tuple[str, object]] = (), **path: object
) -> Request[T_co]:
    """Build a request. `path` has the values of the endpoint's placeholders."""
    target = endpoint.format_map({name: quote(str(value), safe="") for name, value in path.items()})
    # A space is %20: not every server reads + as one.
    encoded = urlencode(list(query), safe=",", quote_via=quote)
    return Request(endpoint, f"{target}?{encoded}" if encoded else target, shape, "eventId" in path)

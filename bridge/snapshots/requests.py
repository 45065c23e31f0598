"""The questions that the provider's REST side answers, and the shape of each answer.

One function an endpoint: 13 of translations, 2 of currencies (interface, "Endpoints"). Nothing is sent
from here. Names of parameters that the interface leaves open come from the settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Generic, TypeVar, cast
from urllib.parse import quote, urlencode

import orjson
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict

from bridge.config import ApiSettings
from bridge.errors import ApiError
from bridge.snapshots.records import Listed

T_co = TypeVar("T_co", covariant=True)

_SLICE: Final = 1_000
"""Of a long answer so much is checked at once."""
MOST_IDS: Final = 100
"""In one collection of a templates endpoint (interface, "Limits")."""

Id = Annotated[int, Field(ge=-(2**63), le=2**63 - 1)]
Places = Annotated[int, Field(ge=0, le=2**31 - 1)]
"""Decimal places."""

# A field that the interface does not know is let pass: nothing is lost by not publishing it.
_AS_SENT = with_config(ConfigDict(strict=True, extra="ignore"))


@_AS_SENT
class TranslationItem(TypedDict):
    """A text in one language."""

    id: Id
    language: str
    translation: str


@_AS_SENT
class EntityTranslation(TypedDict):
    """Texts in all languages."""

    id: Id
    translations: dict[str, str]


@_AS_SENT
class MarketTranslationItem(TypedDict):
    """A market of an event in one language."""

    marketTypeId: Id
    market: TranslationItem
    selections: list[TranslationItem]


@_AS_SENT
class MarketTranslations(TypedDict):
    """A market of an event in all languages."""

    marketTypeId: Id
    marketTranslations: EntityTranslation
    selections: list[EntityTranslation]


@_AS_SENT
class EventTranslations(TypedDict):
    """An event and what it belongs to, in all languages."""

    eventTranslation: EntityTranslation
    sport: EntityTranslation
    region: EntityTranslation
    league: EntityTranslation
    competitors: list[EntityTranslation]


@_AS_SENT
class ListedCurrency(TypedDict):
    """An active currency. Types 1 to 3 are fiat, crypto and custom."""

    symbol: str | None
    type: int
    precision: Places


@_AS_SENT
class CurrencyPrecision(TypedDict):
    """Decimal places of a currency."""

    precision: Places


@dataclass(frozen=True)
class Request(Generic[T_co]):
    """A question, with the shape of its answer."""

    endpoint: str
    """Its path as the interface writes it, without what it asks about."""
    target: str
    """Path and query, to be added to the base address."""
    answer: TypeAdapter[T_co]
    may_be_missing: bool = False
    """Whether the interface has a 404 there."""

    def __str__(self) -> str:
        return f"GET {self.target}"

    def read(self, body: bytes | bytearray) -> T_co:
        """The answer in a body. Raises ApiError, which names the endpoint, the ids and the field."""
        try:
            content = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise ApiError(f"{self} answered what is no JSON: {error}") from None
        if not isinstance(content, list):
            return self._validated(content)
        # Slice by slice, in place: a long answer is never there twice.
        for start in range(0, max(1, len(content)), _SLICE):
            content[start : start + _SLICE] = cast(
                list[Any], self._validated(content[start : start + _SLICE], start)
            )
        return cast(T_co, content)

    def _validated(self, content: Any, start: int = 0) -> T_co:
        """What is checked to have the shape. `start` is the place of a slice in its list."""
        try:
            return self.answer.validate_python(content)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place, *rest = first["loc"] or ("",)
            where = [place + start if isinstance(place, int) else place, *rest]
            more = f", and {error.error_count() - 1} more" if error.error_count() > 1 else ""
            raise ApiError(f"{self} answered another shape: {_path(where)}: {first['msg']}{more}") from None


def _path(location: Sequence[int | str]) -> str:
    """`[3].market.id`: where in an answer."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return "".join(parts).removeprefix(".") or "the whole"


_ITEMS: Final = TypeAdapter(list[TranslationItem])
_ENTITY: Final = TypeAdapter(EntityTranslation)
_ENTITIES: Final = TypeAdapter(list[EntityTranslation])
_EVENT: Final = TypeAdapter(EventTranslations)
_MARKETS: Final = TypeAdapter(list[MarketTranslationItem])
_ALL_MARKETS: Final = TypeAdapter(list[MarketTranslations])
_CURRENCIES: Final = TypeAdapter(list[ListedCurrency])
_PRECISION: Final = TypeAdapter(CurrencyPrecision)

_LISTS: Final[dict[Listed, Any]] = {
    "sport": "sports",
    "region": "regions",
    "league": "leagues",
    "competitor": "competitors",
}


class Questions:
    """Makes the questions, by the settings."""

    def __init__(self, settings: ApiSettings) -> None:
        self._settings = settings

    def listed(self, kind: Listed, language: str) -> Request[list[TranslationItem]]:
        """Everything of a kind, in one language."""
        name = _LISTS[kind]
        path = f"/api/translations/{quote(language)}/{name}"
        query = self._settings.query.get(name, {})
        return Request(f"/api/translations/{{lang}}/{name}", _with(path, query.items()), _ITEMS)

    def single(self, kind: Listed, number: int) -> Request[EntityTranslation]:
        """One sport, region, league or competitor, in all languages."""
        path = f"/api/translations/all/{kind}"
        return Request(f"{path}/{{{kind}Id}}", f"{path}/{number}", _ENTITY)

    def event(self, event_id: int) -> Request[EventTranslations]:
        """An event with all that it belongs to, in all languages."""
        path = "/api/translations/all/event"
        return Request(f"{path}/{{eventId}}", f"{path}/{event_id}", _EVENT, may_be_missing=True)

    def markets(self, event_id: int, language: str) -> Request[list[MarketTranslationItem]]:
        """The markets of an event with their selections, in one language."""
        path = f"/api/translations/{quote(language)}/{event_id}/markets"
        query = self._settings.query.get("markets", {})
        endpoint = "/api/translations/{lang}/{eventId}/markets"
        return Request(endpoint, _with(path, query.items()), _MARKETS, may_be_missing=True)

    def all_markets(self, event_id: int) -> Request[list[MarketTranslations]]:
        """The markets of an event with their selections, in all languages."""
        path = f"/api/translations/all/{event_id}/markets"
        query = self._settings.query.get("all-markets", {})
        endpoint = "/api/translations/all/{eventId}/markets"
        return Request(endpoint, _with(path, query.items()), _ALL_MARKETS, may_be_missing=True)

    def selection_templates(self, ids: Sequence[int]) -> Request[list[EntityTranslation]]:
        """Templates of at most `MOST_IDS` selections, in all languages."""
        path = "/api/translations/templates/selections"
        query = self._collection(self._settings.selection_ids_parameter, ids)
        return Request(path, _with(path, query), _ENTITIES)

    def market_type_templates(self, sport_id: int, ids: Sequence[int]) -> Request[list[EntityTranslation]]:
        """Templates of at most `MOST_IDS` market types in a sport, in all languages."""
        path = "/api/translations/templates/market-types"
        sport = (self._settings.sport_id_parameter, str(sport_id))
        query = self._collection(self._settings.market_type_ids_parameter, ids)
        return Request(path, _with(path, [sport, *query]), _ENTITIES)

    def active_currencies(self, type_: int | None = None) -> Request[list[ListedCurrency]]:
        """All active currencies, or those of one type."""
        path = "/api/CurrencyExchange/active-currencies"
        return Request(path, _with(path, [] if type_ is None else [("type", str(type_))]), _CURRENCIES)

    def currency_precision(self, symbol: str) -> Request[CurrencyPrecision]:
        """Decimal places of any currency."""
        path = "/api/CurrencyExchange/currency-precision"
        return Request(path, _with(path, [("symbol", symbol)]), _PRECISION)

    def _collection(self, name: str, ids: Sequence[int]) -> list[tuple[str, str]]:
        assert 0 < len(ids) <= MOST_IDS
        if self._settings.collections == "commas":
            return [(name, ",".join(map(str, ids)))]
        return [(name, str(number)) for number in ids]


def _with(path: str, query: Iterable[tuple[str, str]]) -> str:
    # A space is %20: what reads + as one in a query is common, but not certain.
    encoded = urlencode(list(query), safe=",", quote_via=quote)
    return f"{path}?{encoded}" if encoded else path

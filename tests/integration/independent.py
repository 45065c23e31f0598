"""A provider of the REST side for tests alone: its truth is plain data, and it can misbehave on demand.

It knows the interface and shares nothing with the bridge nor with the simulator, so that neither is its own
judge. Everything is numbered from 0.
"""

from __future__ import annotations

import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit

from tests.tools import serves

LANGUAGES: Final = ("en", "sv", "de")
TOKEN: Final = "independent-token"
LISTED: Final = ("sport", "region", "league", "competitor")
LISTS: Final = {kind: f"/api/translations/{{lang}}/{kind}s" for kind in LISTED}
SINGLES: Final = {kind: f"/api/translations/all/{kind}/{{{kind}Id}}" for kind in LISTED}
EVENT: Final = "/api/translations/all/event/{eventId}"
ALL_MARKETS: Final = "/api/translations/all/{eventId}/markets"
MARKETS: Final = "/api/translations/{lang}/{eventId}/markets"
SELECTIONS: Final = "/api/translations/templates/selections"
MARKET_TYPES: Final = "/api/translations/templates/market-types"
ACTIVE: Final = "/api/CurrencyExchange/active-currencies"
PRECISION: Final = "/api/CurrencyExchange/currency-precision"
ENDPOINTS: Final = (
    *SINGLES.values(),
    EVENT,
    SELECTIONS,
    MARKET_TYPES,
    ALL_MARKETS,
    *LISTS.values(),
    MARKETS,
    ACTIVE,
    PRECISION,
)
"""As the interface writes them; of two that match a path the first counts."""
MAX_IDS: Final = 100
HALF: Final = "\ud83d"
"""Half a surrogate pair: in JSON an escape that stands for no character."""

Texts = dict[str, str]
Datum = dict[str, Any]


def texts(name: str) -> Texts:
    """A name in each language."""
    return {language: f"{name} på {language}" for language in LANGUAGES}


@dataclass
class Market:
    """A market of an event."""

    type: int
    texts: Texts
    selections: dict[int, Texts]


@dataclass
class Event:
    """An event and its relations."""

    texts: Texts
    sport: int
    region: int
    league: int
    competitors: list[int]
    markets: dict[int, Market]


@dataclass
class Truth:
    """Everything that the provider knows."""

    names: dict[str, dict[int, Texts]]
    """Kind → id → name, of the kinds with lists. No event has the last sport, region and league."""
    events: dict[int, Event]
    selections: dict[int, Texts]
    """Templates. None for the selection 0: whether that is worth asking about is nobody's business here."""
    market_types: dict[tuple[int, int], Texts]
    """Templates, by sport and type."""
    currencies: dict[str, tuple[int, int]]
    """Symbol → type and precision, of the active ones."""
    precisions: dict[str, int] = field(default_factory=lambda: {"KWD": 3, "OLD": 0, "XAU": 6})
    """Of those that are not."""

    @classmethod
    def of(cls, events: int = 8, competitors: int = 24) -> Truth:
        """Events with two markets of two selections each, and the first 16 competitors."""
        counts = zip(LISTED, (4, 5, 7, competitors), strict=True)
        found = {
            n: Event(
                texts(f"event {n}"),
                n % 3,
                n % 4,
                n % 6,
                [2 * n % 16, 2 * n % 16 + 1],
                {m: Market(1 + m % 2, texts(f"market {m}"), _selections(m)) for m in (2 * n, 2 * n + 1)},
            )
            for n in range(events)
        }
        used = {"EUR": (1, 2), "SEK": (1, 2), "BTC": (2, 8)}
        return cls(
            {kind: {n: texts(f"{kind} {n}") for n in range(count)} for kind, count in counts},
            found,
            {n: texts(f"{{name}} {n}") for n in range(1, 4 * events)},
            {(sport, type_): texts(f"type {type_} of {sport}") for sport in range(3) for type_ in (1, 2)},
            used | {f"X{n}": (1 + n % 3, n % 9) for n in range(38)},
        )

    def translations(self, events: Iterable[int] | None = None) -> dict[str, Datum]:
        """Key → record, of a topic that has all names that bets on these events, or on all, refer to."""
        found = [_record(kind, n, t) for kind, known in self.names.items() for n, t in known.items()]
        played: dict[int, Datum] = {}
        types: dict[tuple[int, int], Datum] = {}
        for number in sorted(self.events if events is None else events):
            event = self.events[number]
            place = {"sportId": event.sport, "regionId": event.region, "leagueId": event.league}
            found.append(_record("event", number, event.texts, competitorIds=event.competitors, **place))
            for id_, market in event.markets.items():
                belongs = {"eventId": number, "marketTypeId": market.type}
                found.append(_record("market", id_, market.texts, **belongs))
                played |= {n: _record("selection", n, t, **belongs) for n, t in market.selections.items()}
                type_ = event.sport, market.type
                within = {"sportId": event.sport, "marketTypeId": market.type}
                types[type_] = _record(
                    "market-type-template", market.type, self.market_types[type_], **within
                )
        found += [*played.values(), *types.values()]
        found += [_record("selection-template", n, t) for n, t in self.selections.items() if n in played]
        return {_key(datum): datum for datum in found}

    def exchanged(self, *unlisted: str) -> dict[str, Datum]:
        """Symbol → record, of the active currencies and of these."""
        types = ("Unknown", "Fiat", "Crypto", "Custom")
        known = {**self.currencies, **{symbol: (0, self.precisions[symbol]) for symbol in unlisted}}
        return {s: {"symbol": s, "type": types[t], "precision": p} for s, (t, p) in known.items()}


def _selections(market: int) -> dict[int, Texts]:
    return {n: texts(f"selection {n}") for n in (2 * market, 2 * market + 1)}


_BELONGING: Final = ("eventId", "sportId", "regionId", "leagueId", "competitorIds", "marketTypeId")


_WITHIN: Final = {"market": "eventId", "market-type-template": "sportId"}


def _key(datum: Datum) -> str:
    parts = ("kind", _WITHIN.get(datum["kind"]), "id")
    return ":".join(str(datum[part]) for part in parts if part)


def _record(kind: str, number: int, named: Texts, **belongs: Any) -> Datum:
    return {"kind": kind, "id": number, "translations": named} | dict.fromkeys(_BELONGING) | belongs


@dataclass
class Wrong:
    """A status, or a change of the correct answer. An id also stands for any collection that contains it."""

    answer: int | Callable[[Any], Any]
    endpoint: str
    id: int | str | None = None
    """None for any."""
    language: str | None = None
    times: int | None = None
    """None for ever."""

    def matches(self, endpoint: str, ids: tuple[int | str, ...], language: str | None) -> bool:
        """Whether it replaces the correct answer."""
        return (
            self.times != 0
            and self.endpoint == endpoint
            and (self.id is None or self.id in ids)
            and self.language in (None, language)
        )


def changed(value: Any, *place: Any) -> Callable[[Any], Any]:
    """Puts a value at a place in an answer, given by keys and indices."""

    def change(content: Any) -> Any:
        inner = content
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = value
        return content

    return change


class Provider:
    """Answers by its truth, except for what is in `wrong`."""

    def __init__(self, truth: Truth, url: str = "") -> None:
        self.truth, self.url = truth, url
        self.wrong: list[Wrong] = []
        self.asked: Counter[tuple[str, int | str | None, str | None]] = Counter()
        """Endpoint, id and language → how often. A collection counts for each of its ids."""
        self._lock = threading.Lock()

    def ids(self, endpoint: str) -> set[int | str | None]:
        """The ids requested from an endpoint."""
        return {id_ for path, id_, _ in self.asked if path == endpoint}

    def mend(self) -> None:
        """Answer correctly from now on, and reset the counts."""
        self.wrong.clear()
        self.asked.clear()

    def answer(self, target: str, authorization: str | None) -> tuple[int, bytes]:
        """Status and body."""
        path, query = unquote(urlsplit(target).path), parse_qs(urlsplit(target).query)
        for endpoint in ENDPOINTS:
            if found := re.fullmatch(re.sub(r"{(\w+)}", r"(?P<\1>[^/]+)", endpoint), path):
                break
        else:
            return 404, b""
        if authorization != f"Bearer {TOKEN}":
            return 401, b""
        language = found.groupdict().get("lang")
        ids: tuple[int | str, ...] = tuple(int(x) for k, x in found.groupdict().items() if k != "lang")
        for name, collection in query.items():
            if name != "sportId":
                ids += tuple(x if name == "symbol" else int(x) for x in collection)
        with self._lock:
            self.asked.update((endpoint, id_, language) for id_ in ids or (None,))
            status, content = self._right(endpoint, ids, language, query)
            for wrong in self.wrong:
                if wrong.matches(endpoint, ids, language):
                    wrong.times = None if wrong.times is None else wrong.times - 1
                    status, content = (
                        (wrong.answer, None)
                        if isinstance(wrong.answer, int)
                        else (status, wrong.answer(content))
                    )
        return status, json.dumps(content).encode()

    def _right(
        self, endpoint: str, ids: tuple[Any, ...], language: str | None, query: dict[str, list[str]]
    ) -> tuple[int, Any]:
        truth = self.truth
        for kind, names in truth.names.items():
            if endpoint == LISTS[kind]:
                return 200, [_item(n, names[n], language) for n in names if language in names[n]]
            if endpoint == SINGLES[kind]:
                return 200, _entity(ids[0], names.get(ids[0], {}))
        if endpoint == ACTIVE:
            return 200, [
                {"symbol": symbol, "type": type_, "precision": precision}
                for symbol, (type_, precision) in truth.currencies.items()
                if not ids or type_ in ids
            ]
        if endpoint == PRECISION:
            known = truth.precisions | {symbol: places for symbol, (_, places) in truth.currencies.items()}
            return (200, {"precision": known[ids[0]]}) if ids and ids[0] in known else (500, None)
        if endpoint in (SELECTIONS, MARKET_TYPES):
            return self._templates(endpoint, ids, query)
        if (event := truth.events.get(ids[0])) is None:
            return 404, None
        return 200, self._event(ids[0], event) if endpoint == EVENT else _markets(event, language)

    def _templates(self, endpoint: str, ids: tuple[int, ...], query: dict[str, list[str]]) -> tuple[int, Any]:
        if not 0 < len(ids) <= MAX_IDS:
            return 400, None
        if endpoint == SELECTIONS:
            known = self.truth.selections
        else:
            (sport,) = map(int, query["sportId"])
            known = {type_: t for (place, type_), t in self.truth.market_types.items() if place == sport}
        return 200, [_entity(n, known[n]) for n in ids if n in known]

    def _event(self, number: int, event: Event) -> Datum:
        places = {"sport": event.sport, "region": event.region, "league": event.league}
        names = self.truth.names
        return {
            "eventTranslation": _entity(number, event.texts),
            **{kind: _entity(n, names[kind][n]) for kind, n in places.items()},
            "competitors": [_entity(n, names["competitor"][n]) for n in event.competitors],
        }


def _markets(event: Event, language: str | None) -> list[Datum]:
    """Markets, in all languages if none is given."""
    if language is None:
        return [
            {
                "marketTypeId": market.type,
                "marketTranslations": _entity(n, market.texts),
                "selections": [_entity(x, named) for x, named in market.selections.items()],
            }
            for n, market in event.markets.items()
        ]
    return [
        {
            "marketTypeId": market.type,
            "market": _item(n, market.texts, language),
            "selections": [_item(x, t, language) for x, t in market.selections.items() if language in t],
        }
        for n, market in event.markets.items()
    ]


def _item(number: int, named: Texts, language: str | None) -> Datum:
    assert language is not None
    return {"id": number, "language": language, "translation": named[language]}


def _entity(number: int, named: Texts) -> Datum:
    return {"id": number, "translations": dict(named)}


@contextmanager
def provided(truth: Truth | None = None) -> Iterator[Provider]:
    """A provider that answers at its address."""
    provider = Provider(truth or Truth.of())

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            status, body = provider.answer(self.path, self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    with serves(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as provider.url:
        yield provider

"""The endpoints of the REST side, by short names of their own, and their paths (interface, "Endpoints")."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple, get_args

ROOT = "/api/"
"""What every path begins with."""

OneLanguage = Literal["sports", "regions", "leagues", "competitors"]
AllLanguages = Literal["all-sport", "all-region", "all-league", "all-competitor"]
OfEvent = Literal["markets", "all-markets", "all-event"]
Templates = Literal["selection-templates", "market-type-templates"]
Currencies = Literal["active-currencies", "currency-precision"]
Endpoint = Literal[OneLanguage, AllLanguages, OfEvent, Templates, Currencies]

CURRENCIES: frozenset[Endpoint] = frozenset(get_args(Currencies))

_PATHS: dict[Endpoint, str] = {
    # Before those of one language, which would take `all` and `templates` for one.
    "all-sport": "translations/all/sport/ID",
    "all-event": "translations/all/event/ID",
    "all-markets": "translations/all/ID/markets",
    "all-region": "translations/all/region/ID",
    "all-league": "translations/all/league/ID",
    "all-competitor": "translations/all/competitor/ID",
    "selection-templates": "translations/templates/selections(?:/IDS)?",
    "market-type-templates": "translations/templates/market-types(?:/ID/IDS)?",
    "sports": "translations/LANG/sports",
    "regions": "translations/LANG/regions",
    "leagues": "translations/LANG/leagues",
    "competitors": "translations/LANG/competitors",
    "markets": "translations/LANG/ID/markets",
    "active-currencies": "CurrencyExchange/active-currencies",
    "currency-precision": "CurrencyExchange/currency-precision",
}
ENDPOINTS = tuple(_PATHS)
_PATTERNS = {
    endpoint: re.compile(
        ROOT
        + path.replace("IDS", "(?P<several>[^/]+)")
        .replace("ID", "(?P<id>[^/]+)")
        .replace("LANG", "(?P<language>[^/]+)")
    )
    for endpoint, path in _PATHS.items()
}


class Route(NamedTuple):
    """An endpoint with the parameters of its path; empty where the path has none."""

    endpoint: Endpoint
    language: str
    id: str
    several: str
    """Ids with commas."""


def route(path: str) -> Route | None:
    """Return the endpoint of a path, or None."""
    for endpoint, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(path):
            found = match.groupdict()
            return Route(endpoint, *(found.get(x) or "" for x in ("language", "id", "several")))
    return None


def number_of(text: str) -> int | None:
    """Return the id that a text is, a signed integer of 64 bits; None if it is none."""
    found = int(text) if re.fullmatch(r"-?[0-9]{1,19}", text, re.ASCII) else None
    return found if found is not None and -(2**63) <= found < 2**63 else None

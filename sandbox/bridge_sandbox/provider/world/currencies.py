"""The currencies of the provider (interface, "Currency records")."""

from __future__ import annotations

from dataclasses import dataclass

FIAT, CRYPTO, CUSTOM = 1, 2, 3


@dataclass(frozen=True)
class Currency:
    """A currency that is listed. The interface has types 1 (fiat), 2 (crypto) and 3 (custom)."""

    symbol: str | None
    type: int
    precision: int
    """Decimal places of an amount."""


ACTIVE = (
    Currency("EUR", FIAT, 2),
    Currency("GBP", FIAT, 2),
    Currency("JPY", FIAT, 0),
    Currency("SEK", FIAT, 2),
    Currency("USD", FIAT, 2),
    Currency("BTC", CRYPTO, 8),
    Currency("ETH", CRYPTO, 18),
    Currency("FREEBET", CUSTOM, 2),
)
ODD = (Currency(None, FIAT, 2), Currency("XTS", 9, 2))
"""No symbol, though the interface allows that; a type that it does not have."""
UNLISTED = {"KWD": 3, "PTS": 0}
"""Symbol → precision of what bets are placed in, but the list does not have."""
PRECISIONS = {currency.symbol: currency.precision for currency in ACTIVE + ODD} | UNLISTED

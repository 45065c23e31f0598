"""Amounts of money as decimals, and in words.

A stake is exact. A payout is a double, as the provider sends it, with traces of its arithmetic
(784.1062000000001): a double holds 15 digits, and what lies beyond them, or beyond 8 decimals or those of the
stake if it has more, is rounded off.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

MOST_DECIMALS: Final = 8
"""Decimals of a payout, unless the stake has more, and of a stake that is shown, unless more are not zero."""
_MOST_PRECISION: Final = 30
"""No currency has more; a bet may claim two thousand million."""
_EXACT_DIGITS: Final = 15
_ROUNDED_BELOW: Final = 1e13
_LONGEST: Final = 400
"""Digits of a decimal that is written without an exponent."""
_FIRST_PLACE: Final = -330
_PLACES: Final = [float(f"1e{place}") for place in range(_FIRST_PLACE, 14)]
"""The smallest number whose first digit is in a place, by places: -1 is that of tenths."""


def stake_of(amount: Mapping[str, Any] | None) -> Decimal | None:
    """Return a bet's `amount` as a decimal, exactly; None without one.

    An impossible precision gives a decimal that is as impossible: do not format it with `f`.
    """
    if amount is None:
        return None
    value: int = amount["value"]
    digits = tuple(map(int, str(abs(value))))
    return Decimal((int(value < 0), digits, -int(amount["precision"])))


def precision_of(amount: Mapping[str, Any] | None) -> int | None:
    """Return the precision of a bet's `amount`; None without one."""
    return None if amount is None else int(amount["precision"])


def stake_text(amount: Mapping[str, Any] | None) -> str | None:
    """Return the same in digits; one of an impossible precision with its exponent."""
    if amount is None:
        return None
    value, precision = amount["value"], amount["precision"]
    if not 0 <= precision <= _MOST_PRECISION:
        number = stake_of(amount)
        return f"{number:f}" if number is not None and abs(number.adjusted()) < _LONGEST else str(number)
    digits = f"{abs(value):0{precision + 1}}"
    whole, decimals = digits[: len(digits) - precision], digits[len(digits) - precision :]
    return f"{'-' if value < 0 else ''}{whole}{'.' if precision else ''}{decimals}"


def payout_of(value: float, amount: Mapping[str, Any] | None = None) -> Decimal:
    """Return the decimal that a payout or a partial refund of a bet with this `amount` stands for.

    One whose cents are beyond the digits of a double is returned as it is, and so is one that is no number.
    """
    return Decimal(payout_text(value, precision_of(amount)) if abs(value) < _ROUNDED_BELOW else repr(value))


def payout_text(value: float, precision: int | None) -> str:
    """Return the same in digits, of a bet whose amount has this precision; None without one."""
    if not value:
        return "0"
    if not abs(value) < _ROUNDED_BELOW:
        return f"{Decimal(repr(value)):f}"
    most = _most_decimals(value, precision)
    return f"{round(value, most) + 0.0:.{most}f}".rstrip("0").rstrip(".")  # + 0.0: no -0.00


def format_stake(amount: Mapping[str, Any] | None) -> str:
    """Return a bet's `amount` for people; with an impossible precision, as an integer and a power of ten."""
    if amount is None:
        return "—"
    value, precision = amount["value"], amount["precision"]
    number = f"{value}e{-precision}"
    if 0 <= precision <= _MOST_PRECISION:
        whole, _, decimals = f"{stake_of(amount):,f}".partition(".")
        decimals = decimals[:MOST_DECIMALS] + decimals[MOST_DECIMALS:].rstrip("0")
        number = f"{whole}.{decimals}".rstrip(".")
    return f"{number} {amount['currency'] or ''}".rstrip()


def format_payout(value: float, amount: Mapping[str, Any] | None) -> str:
    """Return a payout for people, with at least the decimals of the stake."""
    if not abs(value) < _ROUNDED_BELOW:
        return f"{value:,}"
    payout, most = payout_of(value, amount), _most_decimals(value, precision_of(amount))
    least = 2 if amount is None else max(0, min(amount["precision"], MOST_DECIMALS, most))
    return f"{payout:,.{max(least, -int(payout.as_tuple().exponent))}f}"


def _most_decimals(value: float, precision: int | None) -> int:
    first = _FIRST_PLACE - 1 + bisect_right(_PLACES, abs(value)) if value else 0
    return min(max(MOST_DECIMALS, min(precision or 0, _MOST_PRECISION)), _EXACT_DIGITS - 1 - first)

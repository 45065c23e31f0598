"""Amounts of money as decimals, and in words.

A stake is exact. A payout is a double, as the provider sends it, with traces of its arithmetic
(784.1062000000001): it is rounded to the 15 significant digits that any double holds, then to 8 decimals, or
those of the stake if it has more.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

PAYOUTS: Final = ("payout", "partialRefund")
"""The fields of a bet that are doubles of money: no format shows them as they are."""
MOST_DECIMALS: Final = 8
"""Decimals of a payout, unless the stake has more, and of a stake that is shown, unless more are not zero."""
_MOST_PRECISION: Final = 30
"""No currency has more; a bet may claim two thousand million."""
_ROUNDED_BELOW: Final = 1e13
_LONGEST: Final = 400
"""Digits of a decimal that is written without an exponent."""


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
    digits, most = f"{value:.15g}", max(MOST_DECIMALS, min(precision or 0, _MOST_PRECISION))
    if "e" in digits or len(digits.partition(".")[2]) > most:
        digits = f"{round(Decimal(digits), most) + 0:f}".rstrip("0").rstrip(".")  # + 0: no -0
    return digits


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
    payout = payout_of(value, amount)
    least = 2 if amount is None else max(0, min(amount["precision"], MOST_DECIMALS))
    return f"{payout:,.{max(least, -int(payout.as_tuple().exponent))}f}"

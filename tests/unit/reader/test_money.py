"""Amounts of money, exact and in words."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.avro.schemas import load
from bridge.reader.money import PAYOUTS, format_payout, format_stake, payout_of, stake_of


@pytest.mark.parametrize(
    ("value", "places", "shown"),
    [
        (784.1062000000001, 2, "784.1062"),
        (0.1 + 0.2, 2, "0.30"),
        (73863.0, 0, "73,863"),
        (100.0, 0, "100"),
        (-12.5, 2, "-12.50"),
        (0.0, 2, "0.00"),
        (-0.0, 2, "0.00"),
        (1e-8, 2, "0.00000001"),
        (149262000.17, 2, "149,262,000.17"),
        (999_999_999_999_999.9, 2, "999,999,999,999,999.9"),
        (1e13, 2, "10,000,000,000,000.0"),
        (1.7e308, 2, "1.7e+308"),
        (12.5, 2**31 - 1, "12.50000000"),
        (12.5, -1, "12.5"),
    ],
)
def test_a_payout_is_the_decimal_that_its_double_stands_for(value: float, places: int, shown: str) -> None:
    assert format_payout(value, {"precision": places}) == shown


@pytest.mark.parametrize(
    ("value", "exact"), [(784.1062000000001, "784.1062"), (100.0, "100"), (0.1 + 0.2, "0.3"), (-0.0, "0")]
)
def test_a_payout_prints_as_people_write_it(value: float, exact: str) -> None:
    assert str(payout_of(value)) == exact


def test_a_payout_has_the_decimals_of_its_stake() -> None:
    stake = {"value": 123456789012000000, "precision": 18, "currency": "ETH"}
    assert str(payout_of(0.123456789012, stake)) == "0.123456789012"
    assert str(payout_of(0.1 + 0.2, stake)) == "0.3"
    assert f"{payout_of(1.234e-9, stake):f}" == "0.000000001234"
    assert f"{payout_of(1.234567890123e-6, stake):f}" == "0.000001234567890123"
    assert f"{payout_of(1e-15, stake):f}" == "0.000000000000001"
    assert format_payout(0.5, stake) == "0.50000000"
    assert f"{payout_of(1.234e-9):f}" == "0"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_shown_as_such(value: float) -> None:
    assert not payout_of(value).is_finite()
    assert format_payout(value, None) == str(value)


@given(st.integers(-(10**12), 10**12), st.integers(0, 4))
def test_cents_survive_a_double(cents: int, places: int) -> None:
    exact = Decimal(cents).scaleb(-places)
    assert payout_of(float(exact)) == exact


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
def test_a_stake_is_exact_whatever_its_precision(value: int, precision: int) -> None:
    stake = stake_of({"value": value, "precision": precision, "currency": None})
    assert stake is not None
    sign, digits, exponent = stake.as_tuple()
    assert (int("".join(map(str, digits))) * (-1 if sign else 1), exponent) == (value, -precision)
    assert len(format_stake({"value": value, "precision": precision, "currency": None})) < 80


@pytest.mark.parametrize(
    ("value", "precision", "currency", "text"),
    [
        (1_500_000_000_000_000_000, 18, "ETH", "1.50000000 ETH"),
        (1_500_000_000_000_000_007, 18, "ETH", "1.500000000000000007 ETH"),
        (40, 18, "ETH", "0.00000000000000004 ETH"),
        (0, 18, "ETH", "0.00000000 ETH"),
        (2**63 - 1, 2, "EUR", "92,233,720,368,547,758.07 EUR"),
        (7, 2**31 - 1, None, "7e-2147483647"),
        (1000, -2, "EUR", "1000e2 EUR"),
    ],
)
def test_no_digit_of_a_stake_is_hidden(value: int, precision: int, currency: str | None, text: str) -> None:
    assert format_stake({"value": value, "precision": precision, "currency": currency}) == text
    assert (format_stake(None), stake_of(None)) == ("—", None)


def test_a_double_of_a_bet_is_a_factor_or_money() -> None:
    doubles = (x["name"] for x in load("settled-bet")["fields"] if "double" in x["type"])
    assert ("payoutMultiplier", *PAYOUTS) == (*doubles,)

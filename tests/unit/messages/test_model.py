"""The types of the feed's messages, one at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import PydanticCustomError

from bridge.messages import model, scalars

DATE_TIMES = (model.parse_date_time, scalars.DateTimes(model.not_a_date_time).parse)
"""What reads them as plain Python, and what does when it is compiled."""
STRICT = ConfigDict(strict=True, allow_inf_nan=False)


def read(type_: Any, json: str) -> Any:
    return TypeAdapter(Annotated[type_, None], config=STRICT).validate_json(json)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01T02:30:00+02:30", 0),
        ("1969-12-31T14:00:00-10:00", 0),
        ("1970-01-01T00:00:00.1Z", 100_000),
        ("1970-01-01T00:00:00.12", 120_000),
        ("1970-01-01T00:00:00.1234567Z", 123_456),
        ("1970-01-01T00:00:00.123456999+00:00", 123_456),
        ("1969-12-31T23:59:59.9999999Z", -1),
        ("2000-02-29T00:00:00Z", 951_782_400_000_000),
        ("2026-01-31T12:34:56.000001Z", 1_769_862_896_000_001),
        ("0001-01-01T00:00:00", -62_135_596_800_000_000),
        ("0001-01-01T00:00:00+14:00", -62_135_647_200_000_000),
        ("0001-01-01T00:00:00-14:00", -62_135_546_400_000_000),
        ("9999-12-31T23:59:59.9999999", 253_402_300_799_999_999),
        ("9999-12-31T23:59:59.9999999-14:00", 253_402_351_199_999_999),
    ],
)
def test_date_times_become_microseconds(text: str, micros: int) -> None:
    assert [parse(text) for parse in DATE_TIMES] == [micros, micros]


@pytest.mark.parametrize(
    "value",
    [
        *("", "0", "1769860800", "2026-01-31", "2026-01-31T12:00", "2026-01-31 12:00:00Z"),
        *("2026-01-31t12:00:00Z", "2026-01-31T12:00:00z", "2026-01-31T12:00:00.Z"),
        *("2026-01-31T12:00:00,5Z", "2026-01-31T12:00:00.1234567890Z", "2026-01-31T12:00:00+0200"),
        *("2026-01-31T12:00:00+24:00", "2026-01-31T12:00:00+01:60", "2026-01-31T12:00:00+02:00:30"),
        *("2026-01-31T24:00:00Z", "2026-01-31T12:60:00Z", "2026-01-31T12:00:60Z", "2026-02-29T12:00:00Z"),
        *("2026-13-01T12:00:00Z", "0000-01-01T00:00:00Z", "20260131T120000Z", "2026-W05-6T12:00:00Z"),
        *("12026-01-31T12:00:00Z", "2026-01-31T12:00:00Z\n", "２026-01-31T12:00:00Z", 1769860800),
        *(None, True),
    ],
)
@pytest.mark.parametrize("parse", DATE_TIMES)
def test_other_date_times_are_refused(parse: Callable[[object], int], value: object) -> None:
    with pytest.raises(PydanticCustomError, match="Input should be a date-time such as"):
        parse(value)


@pytest.mark.parametrize(
    ("json", "value"),
    [
        ("0.1", 0.1),
        ("5", 5.0),
        ("-0.0", -0.0),
        ("1E5", 1e5),
        ("9007199254740993", 9007199254740992.0),
        ("9007199254740993.0000000000000000000000000000001", 9007199254740994.0),
        ("18446744073709551617", 18446744073709551616.0),
        ("36893488147419107329", 36893488147419111424.0),
        ("2.2250738585072011e-308", 2.225073858507201e-308),
        ("5e-324", 5e-324),
        ("1e-400", 0.0),
        ("0." + "0" * 400 + "1e401", 1.0),
        ("1" + "0" * 308, 1e308),
    ],
)
def test_doubles_are_the_nearest_ones(json: str, value: float) -> None:
    read_value = read(model.Double, json)
    assert (read_value, math.copysign(1, read_value)) == (value, math.copysign(1, value))
    assert type(read_value) is float


@pytest.mark.parametrize(
    "json", ["1e400", "-1e400", "1" + "0" * 309, "NaN", "Infinity", "-Infinity", '"1"', "true", "null"]
)
def test_other_doubles_are_refused(json: str) -> None:
    with pytest.raises(ValidationError):
        read(model.Double, json)


@pytest.mark.parametrize(("type_", "bits"), [(model.Int32, 32), (model.Int64, 64)])
def test_integers_are_exact_within_their_range(type_: Any, bits: int) -> None:
    for edge, step in ((2 ** (bits - 1) - 1, 1), (-(2 ** (bits - 1)), -1)):
        assert read(type_, str(edge)) == edge
        with pytest.raises(ValidationError):
            read(type_, str(edge + step))


@pytest.mark.parametrize("json", ["5.0", "5e0", '"5"', "true", "null", "1e400", "NaN", "[5]"])
def test_other_integers_are_refused(json: str) -> None:
    with pytest.raises(ValidationError):
        read(model.Int64, json)


def test_enums_become_symbols() -> None:
    results = [read(model.SettlementResult, str(n)) for n in range(8)]
    types = [read(model.BetItemType, str(n)) for n in range(1, 9)]
    assert results == ["None", "Win", "Lose", "Refund", "HalfWin", "HalfLose", "CashOut", "PlaceWin"]
    assert types == [
        *("Standard", "StartingPrice", "ToteExotics", "FixedExotics", "BetBuilder", "Pickem"),
        *("EachWay", "ToteSingleRunner"),
    ]


@pytest.mark.parametrize(
    "json", ["-1", "0", "9", "1.0", "true", '"1"', '"Standard"', "null", "9" * 40, "[1]", "{}"]
)
def test_other_enums_are_refused(json: str) -> None:
    with pytest.raises(ValidationError, match="Input should be 1, 2, 3, 4, 5, 6, 7 or 8"):
        read(model.BetItemType, json)


def test_maps_are_sorted_by_key() -> None:
    assert list(read(model.StringMap, '{"é": "1", "b": "2", "a": "3", "B": "4", "😀": "5", "": "6"}')) == [
        *("", "B", "a", "b", "é", "😀")
    ]


def test_a_missing_nullable_is_null() -> None:
    assert model.read_feed_message(b"{}") == {"pingId": None, "data": None}

"""Where and why a datum does not fit."""

from __future__ import annotations

from typing import Any

import pytest
from fastavro import parse_schema

from bridge.avro.mismatch import mismatch

COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
LEG = {
    "type": "record",
    "name": "Leg",
    "fields": [
        {"name": "colour", "type": COLOUR},
        {"name": "price", "type": ["double", "null"]},
        {"name": "names", "type": {"type": "map", "values": "string"}, "default": {}},
    ],
}
TICKET: Any = {
    "type": "record",
    "name": "Ticket",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "legs", "type": ["null", {"type": "array", "items": LEG}]},
        {"name": "first", "type": ["null", "Leg"], "default": None},
        {"name": "paid", "type": "boolean", "default": False},
    ],
}
GOOD: dict[str, Any] = {"id": 1, "legs": [{"colour": "RED"}]}
NUMBER = "must be a number that a double can hold, got 'x'"
STRING = "must be a string that UTF-8 can encode, got 5"
LEG_3 = [{"colour": "RED"}, {"colour": "RED"}]


def mismatch_of(datum: object, schema: Any = TICKET) -> Any:
    named: dict[str, Any] = {}
    return mismatch(parse_schema(schema, named), named, datum)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"id": True}, "id: must be an integer of 64 bits, got True"),
        ({"id": 2**63}, "id: must be an integer of 64 bits, got 9223372036854775808"),
        ({"paid": "no"}, "paid: must be True or False, got 'no'"),
        ({"legs": "abc"}, "legs: must be a list, got 'abc'"),
        ({"legs": ()}, "legs: must be a list, got ()"),
        ({"legs": [*LEG_3, {"colour": "BLUE"}]}, "legs[2].colour: must be one of RED, GREEN, got 'BLUE'"),
        ({"legs": [*LEG_3, {"price": 1.0}]}, "legs[2].colour: is missing, and has no default"),
        ({"legs": [None]}, "legs[0]: must be an object, got None"),
        ({"first": {"colour": "RED", "price": "x"}}, f"first.price: {NUMBER}"),
        ({"first": {"colour": "RED", "names": {"a": "b", "c": 5}}}, f"first.names['c']: {STRING}"),
        ({"first": {"colour": "RED", "names": {5: "b"}}}, f"first.names: the key 5: {STRING}"),
    ],
)
def test_the_first_mismatch_is_named_with_its_path(change: dict[str, Any], said: str) -> None:
    assert mismatch_of(GOOD | change) == said


def test_a_datum_that_is_no_record_has_no_path() -> None:
    assert mismatch_of(None) == "must be an object, got None"
    assert mismatch_of(10**400, "double").startswith("must be a number that a double can hold, got 1")
    assert mismatch_of("\ud800", "string") == r"must be a string that UTF-8 can encode, got '\ud800'"


def test_long_values_are_cut() -> None:
    said = mismatch_of(GOOD | {"id": "x" * 10_000})
    assert len(said) < 100


@pytest.mark.parametrize(
    "datum",
    [GOOD, {"id": 1, "legs": None}, GOOD | {"first": {"colour": "GREEN", "price": 5}, "new": object()}],
)
def test_values_of_the_types_fit(datum: dict[str, Any]) -> None:
    assert mismatch_of(datum) is None

"""What the encoder makes of a schema: defaults, names, and types that it does not know.

That values are written and refused as by fastavro is shown in tests/property/test_encoder.py.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest
from fastavro import parse_schema

from bridge.avro.encoder import Encoder, UnknownSchema

COLOUR = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
POINT = {
    "type": "record",
    "name": "Point",
    "fields": [
        {"name": "x", "type": "long"},
        {"name": "label", "type": ["null", "string"]},
        {"name": "tags", "type": {"type": "array", "items": "string"}, "default": ["new"]},
    ],
}


def encoded(schema: Any, datum: object, header: bytes = b"") -> bytes:
    return Encoder(parse_schema(schema), header).encode(datum)


@pytest.mark.parametrize(
    ("schema", "unusual"),
    [
        ("boolean", 1),
        ({"type": "array", "items": "string"}, ("a",)),
        ({"type": "map", "values": "long"}, MappingProxyType({"a": 1})),
    ],
)
def test_what_fastavro_takes_for_another_type_is_refused(schema: Any, unusual: object) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        encoded(schema, unusual)


def test_a_record_is_its_fields_in_the_order_of_the_schema() -> None:
    assert encoded(POINT, {"extra": 1, "tags": [], "label": "a", "x": 1}) == b"\x02\x02\x02a\x00"
    assert encoded(POINT, {"x": 1}) == b"\x02\x00\x02\x06new\x00"


def test_a_default_of_another_type_is_none() -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": COLOUR, "default": "BLUE"}]}
    assert encoded(schema, {"a": "RED"}) == b"\x00"
    with pytest.raises(ValueError, match=r"^$"):
        encoded(schema, {})


def test_a_named_type_may_be_used_after_its_definition() -> None:
    fields = [{"name": "a", "type": COLOUR}, {"name": "b", "type": ["null", "Colour"]}]
    inner = {"type": "record", "name": "Inner", "fields": [{"name": "c", "type": "Colour"}]}
    schema = {
        "type": "record",
        "name": "R",
        "namespace": "paint",
        "fields": [*fields, {"name": "d", "type": inner}],
    }
    assert encoded(schema, {"a": "RED", "b": "GREEN", "d": {"c": "GREEN"}}) == b"\x00\x02\x02\x02"


@pytest.mark.parametrize(
    ("field", "said"),
    [
        *((kind, f"type {kind}") for kind in ("null", "int", "float", "bytes")),
        ({"type": "fixed", "name": "Pair", "size": 2}, "type fixed"),
        (["null", "int", "string"], "union"),
        (["int"], "union"),
        (["int", "string"], "union"),
        (["null", {"type": "array", "items": "R"}], "type R"),
        ({"type": "long", "logicalType": "timestamp-micros"}, "timestamp-micros"),
        ({"type": "string", "logicalType": "ours"}, "logical type ours"),
        ({"type": "error", "name": "E", "fields": []}, "type error"),
    ],
)
def test_an_unsupported_schema_is_refused_at_once(field: Any, said: str) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": field}]}
    with pytest.raises(UnknownSchema, match=said):
        Encoder(parse_schema(schema), b"")

"""The encoder writes each type as the Avro specification says, and refuses other values."""

from __future__ import annotations

import struct
from collections import OrderedDict
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Any

import pytest
from fastavro import parse_schema

from bridge.avro.encoder import Encoder, UnknownSchema
from bridge.avro.schemas import TOPICS, load

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


class Number(IntEnum):
    """An int of a subclass."""

    SEVEN = 7


class Text(StrEnum):
    """A str of a subclass."""

    RED = "RED"


def encoded(schema: Any, datum: object, header: bytes = b"") -> bytes:
    return Encoder(parse_schema(schema), header).encode(datum)


@pytest.mark.parametrize(
    ("schema", "datum", "expected"),
    [
        ("boolean", True, b"\x01"),
        ("boolean", False, b"\x00"),
        ("long", 0, b"\x00"),
        ("long", -1, b"\x01"),
        ("long", 63, b"\x7e"),
        ("long", -64, b"\x7f"),
        ("long", 64, b"\x80\x01"),
        ("long", Number.SEVEN, b"\x0e"),
        ("long", 2**62, b"\x80" * 9 + b"\x01"),
        ("long", 2**63 - 1, b"\xfe" + b"\xff" * 8 + b"\x01"),
        ("long", -(2**63), b"\xff" * 9 + b"\x01"),
        ("double", -0.0, struct.pack("<d", -0.0)),
        ("double", 2**60, struct.pack("<d", 2**60)),
        ("string", "", b"\x00"),
        ("string", "é€😀", b"\x12" + "é€😀".encode()),
        ("string", "x" * 64, b"\x80\x01" + b"x" * 64),
        (COLOUR, "GREEN", b"\x02"),
        (COLOUR, Text.RED, b"\x00"),
        (["null", "long"], None, b"\x00"),
        (["null", "long"], 1, b"\x02\x02"),
        (["long", "null"], None, b"\x02"),
        (["long", "null"], 1, b"\x00\x02"),
        ({"type": "array", "items": "long"}, [], b"\x00"),
        ({"type": "array", "items": "long"}, [1, 2], b"\x04\x02\x04\x00"),
        ({"type": "map", "values": "long"}, {}, b"\x00"),
        ({"type": "map", "values": "long"}, OrderedDict(b=1, a=2), b"\x04\x02b\x02\x02a\x04\x00"),
        ({"type": "string"}, "a", b"\x02a"),
    ],
)
def test_each_type_is_written_as_the_specification_says(schema: Any, datum: object, expected: bytes) -> None:
    assert encoded(schema, datum, b"head") == b"head" + expected


@pytest.mark.parametrize(
    ("schema", "datum"),
    [
        ("boolean", 1),
        ("boolean", None),
        ("long", True),
        ("long", "1"),
        ("long", 2**63),
        ("long", -(2**63) - 1),
        ("long", 2**64 + 1),
        ("long", -(2**80)),
        ("long", 1.0),
        ("double", "NaN"),
        ("double", None),
        ("double", False),
        ("double", 10**400),
        ("string", b"ab"),
        ("string", "\ud800"),
        (COLOUR, "BLUE"),
        (COLOUR, 0),
        (COLOUR, ["RED"]),
        (["null", "long"], "1"),
        ({"type": "array", "items": "string"}, "ab"),
        ({"type": "array", "items": "string"}, ("a",)),
        ({"type": "array", "items": "string"}, ["a", None]),
        ({"type": "map", "values": "long"}, [("a", 1)]),
        ({"type": "map", "values": "long"}, {1: 1}),
        ({"type": "map", "values": "long"}, MappingProxyType({"a": 1})),
        (POINT, {}),
        (POINT, {"x": None}),
        (POINT, [("x", 1)]),
        (POINT, None),
    ],
)
def test_values_not_exactly_of_the_type_are_refused(schema: Any, datum: object) -> None:
    with pytest.raises((ValueError, OverflowError)):
        encoded(schema, datum)


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


@pytest.mark.parametrize("name", TOPICS)
def test_our_own_schemas_are_supported(name: str) -> None:
    def plain(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: plain(value) for key, value in node.items() if key != "logicalType"}
        return [plain(item) for item in node] if isinstance(node, list) else node

    Encoder(parse_schema(plain(load(name))), b"")

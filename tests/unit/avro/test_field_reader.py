"""One field is read without decoding the rest of a record."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.avro.field_layout import FieldLayout, RecordLayout
from bridge.avro.field_reader import FieldReader
from bridge.avro.schemas import load
from bridge.errors import SchemaError
from tests.bets import BARE_BET

HEADER = b"\0\0\0\0\7"
LONGS = st.integers(-(2**63), 2**63 - 1)
Typed = tuple[Any, st.SearchStrategy[Any]]
"""A type and what fits it."""

SIMPLE: list[Typed] = [
    ("null", st.none()),
    ("boolean", st.booleans()),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("long", LONGS),
    ({"type": "long", "logicalType": "timestamp-micros", "unit": "µs"}, LONGS),
    ("float", st.floats(width=32)),
    ("double", st.floats()),
    ("string", st.text(max_size=200)),
    ("bytes", st.binary(max_size=200)),
    ({"type": "bytes", "logicalType": "unknown"}, st.binary()),
    ("Suit", st.sampled_from(["hearts", "spades"])),
    ("Hash", st.binary(min_size=16, max_size=16)),
    ("Pair", st.fixed_dictionaries({"left": st.booleans(), "right": st.floats()})),
]
DEFINITIONS = [
    {"name": "e", "type": {"type": "enum", "name": "Suit", "symbols": ["hearts", "spades"]}},
    {"name": "h", "type": {"type": "fixed", "name": "Hash", "size": 16}},
    {
        "name": "p",
        "type": {
            "type": "record",
            "name": "Pair",
            "fields": [{"name": "left", "type": "boolean"}, {"name": "right", "type": "double"}],
        },
    },
]
DEFINED: dict[str, Any] = {"e": "spades", "h": bytes(16), "p": {"left": True, "right": 1.0}}


def wrapped(inner: Typed) -> st.SearchStrategy[Typed]:
    """Return an array, a map, a nullable and a record of a type."""
    schema, data = inner
    options: list[Typed] = [
        ({"type": "array", "items": schema}, st.lists(data, max_size=70)),
        ({"type": "map", "values": schema}, st.dictionaries(st.text(max_size=3), data)),
    ]
    if schema != "null" and not isinstance(schema, list):
        options.append((["null", schema], st.none() | data))
    return st.sampled_from(options) | st.uuids().map(
        lambda name: (
            {"type": "record", "name": f"R{name.hex}", "fields": [{"name": "only", "type": schema}]},
            st.fixed_dictionaries({"only": data}),
        )
    )


TYPES = st.recursive(st.sampled_from(SIMPLE), lambda inner: inner.flatmap(wrapped), max_leaves=3)


def record(*fields: dict[str, Any]) -> dict[str, Any]:
    """Return a schema."""
    return {"type": "record", "name": "R", "namespace": "a.b", "fields": [*fields]}


def written(schema: dict[str, Any], datum: dict[str, Any]) -> bytes:
    """Return a record in wire format, written by fastavro."""
    out = io.BytesIO()
    schemaless_writer(out, parse_schema(schema), datum)
    return HEADER + out.getvalue()


def read(schema: dict[str, Any], data: bytes, field: str = "n") -> int:
    """Return the field's number."""
    name = f"{schema['namespace']}.{schema['name']}" if "name" in schema else "a.b.R"
    return FieldReader(name, lambda found: FieldLayout(found, field).read, lambda _: schema).read(data)


def read_record(schema: dict[str, Any], data: bytes) -> list[bytes | int]:
    """Return the value of `n`, once all others were checked."""
    return FieldReader("a.b.R", lambda found: RecordLayout(found, ["n"]).read, lambda _: schema).read(data)


@settings(deadline=None, max_examples=150)
@given(data=st.data(), types=st.lists(TYPES, max_size=3), place=st.integers(0, 3), number=LONGS)
def test_the_number_is_found_among_fields_of_any_type(
    data: st.DataObject, types: list[Typed], place: int, number: int
) -> None:
    fields = [{"name": f"f{n}", "type": schema} for n, (schema, _) in enumerate(types)]
    datum = {f"f{n}": data.draw(values) for n, (_, values) in enumerate(types)}
    place = min(place, len(fields))
    schema = record(*DEFINITIONS, *fields[:place], {"name": "n", "type": "long"}, *fields[place:])
    body = written(schema, DEFINED | datum | {"n": number})
    assert read(schema, body) == number
    assert read_record(schema, body) == [number]


@settings(deadline=None, max_examples=300)
@given(junk=st.binary(max_size=400), cut=st.integers(0, 60))
def test_garbage_is_a_number_or_an_error(junk: bytes, cut: int) -> None:
    schema = load("settled-bet")
    for data in (HEADER + junk, HEADER + b"\x02a" + junk, junk[:cut]):
        with suppress(SchemaError):
            assert isinstance(read(schema, data, "settlementVersion"), int)


BET = BARE_BET | {"betId": "a", "settlementTime": 2**50, "settlementVersion": 300}


def test_a_record_of_the_bridge_is_read() -> None:
    whole = Codec(load("settled-bet"), 7).encode(BET)
    assert read(load("settled-bet"), whole, "settlementVersion") == 300
    assert read(load("settled-bet"), whole, "settlementTime") == 2**50
    for cut in range(len(whole)):
        with pytest.raises(SchemaError):
            read(load("settled-bet"), whole[:cut], "settlementVersion")
    with pytest.raises(SchemaError, match="1 bytes too many"):
        read(load("settled-bet"), whole + b"\0", "settlementVersion")


def test_each_record_is_read_with_the_schema_it_was_written_with() -> None:
    asked = []

    def by_id(schema_id: int) -> dict[str, Any]:
        asked.append(schema_id)
        before = [{"name": "s", "type": "string"}] if schema_id == 8 else []
        return record(*before, {"name": "n", "type": "int"})

    reader = FieldReader("a.b.R", lambda schema: FieldLayout(schema, "n").read, by_id)
    assert [reader.read(HEADER + b"\x06") for _ in range(2)] == [3, 3]
    assert [reader.read(b"\0\0\0\0\x08\x02a\x08") for _ in range(2)] == [4, 4]
    assert asked == [7, 8]


@pytest.mark.parametrize("items", ["string", {"type": "record", "name": "P", "fields": []}, "double"])
@pytest.mark.parametrize("kind", ["items", "values"])
def test_blocks_with_a_size_are_skipped(items: Any, kind: str) -> None:
    of = {"type": "array" if kind == "items" else "map", kind: items}
    schema = record({"name": "a", "type": of}, {"name": "n", "type": "long"})
    one = {"string": b"\x02x", "double": bytes(8)}.get(str(items), b"")
    item = one if kind == "items" else b"\x02k" + one
    sized = b"\x03" + bytes([4 * len(item)]) + item * 2
    assert read(schema, HEADER + sized + b"\x02" + item + sized + b"\0" + b"\x0e") == 7


@pytest.mark.parametrize(
    ("before", "body"),
    [
        ("string", b"\x01" + b"\x02"),  # a string of −1 bytes
        ("string", b"\x02"),  # none of its one byte
        ("string", b"\xff" * 9 + b"\x01"),  # −2^63 bytes
        ("string", b"\xfe" + b"\xff" * 8 + b"\x01" + b"\x02"),  # 2^63 − 1 bytes
        ("string", b"\xff" * 50),
        ("string", b"\x02a" + b"\xff" * 9 + b"\x02"),  # a number of 65 bits
        ("string", b"\x02a" + b"\xff" * 10 + b"\x01"),
        ("string", b"\x02a" + b"\xff" * 9 + b"\x81"),
        ({"type": "array", "items": "long"}, b"\x02\x02\x01\x01\x02\x02\x00\x02"),  # a block of −1 bytes
        (["null", "boolean"], b"\x04\x02"),  # an unknown branch of the union
        (["null", "boolean"], b"\x01\x02"),
        (["null", "boolean"], b"\x03\x02\x02"),
    ],
)
def test_an_impossible_length_branch_or_number_is_an_error(before: Any, body: bytes) -> None:
    schema = record({"name": "a", "type": before}, {"name": "n", "type": "long"})
    with pytest.raises(SchemaError):
        read(schema, HEADER + body)


@pytest.mark.parametrize("length", [0, 1, 63, 64, 65, 8_191, 8_192])
def test_strings_of_any_length_are_skipped(length: int) -> None:
    schema = record({"name": "s", "type": "string"}, {"name": "n", "type": "long"})
    assert read(schema, written(schema, {"s": "x" * length, "n": -5})) == -5


def test_a_truncated_last_field_is_an_error() -> None:
    schema = record({"name": "n", "type": "long"}, {"name": "s", "type": "string"})
    with pytest.raises(SchemaError, match="ends too early"):
        read(schema, HEADER + b"\x02\x06ab")


def test_a_union_of_many_branches_is_read() -> None:
    fixed = [{"type": "fixed", "name": f"F{n}", "size": n} for n in range(1, 100)]
    schema = record({"name": "u", "type": fixed}, {"name": "n", "type": "long"})
    assert read(schema, HEADER + b"\x80\x01" + bytes(65) + b"\x02") == 1


def test_items_without_bytes_cost_nothing() -> None:
    schema = record({"name": "a", "type": {"type": "array", "items": "null"}}, {"name": "n", "type": "long"})
    assert read(schema, HEADER + b"\x80" * 8 + b"\x80\x01" + b"\0" + b"\x02") == 1


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (record({"name": "m", "type": "long"}), "has no n"),
        (record({"name": "n", "type": "string"}), "has no n"),
        (record({"name": "n", "type": ["null", "long"]}), "has no n"),
        (record({"name": "n", "type": {"type": "enum", "name": "E", "symbols": ["A"]}}), "has no n"),
        (record({"name": "r", "type": ["null", "R"]}, {"name": "n", "type": "long"}), "is recursive"),
        (record({"name": "r", "type": "Missing"}, {"name": "n", "type": "long"}), "Missing"),
        ({"type": "string"}, "not a a.b.R"),
        ({"type": {"type": "int"}}, "not an Avro schema"),
    ],
)
def test_a_schema_without_a_readable_field_is_an_error(schema: dict[str, Any], named: str) -> None:
    with pytest.raises(SchemaError, match=named):
        read(schema, HEADER + b"\x02")


def test_bytes_not_in_wire_format_are_an_error() -> None:
    with pytest.raises(SchemaError, match="wire format"):
        read(record({"name": "n", "type": "long"}), b"\1\0\0\0\7\2")


FULL_BET = json.loads((Path(__file__).parents[3] / "examples" / "settled-bet.record.json").read_text("utf-8"))
CODEC = Codec(load("settled-bet"), 7)
BETS = FieldReader(
    "settlement.SettledBet",
    lambda schema: RecordLayout(schema, ["betId", "settlementVersion", "betId"]).read,
    lambda _: load("settled-bet"),
)


def test_fields_are_read_in_the_order_asked_for() -> None:
    assert BETS.read(CODEC.encode(FULL_BET | {"betId": "ä", "settlementVersion": 9})) == [
        *("ä".encode(), 9, "ä".encode())
    ]


@settings(deadline=None, max_examples=500)
@given(at=st.integers(5, len(CODEC.encode(FULL_BET)) - 1), byte=st.integers(0, 255))
def test_what_is_read_of_a_damaged_record_can_be_decoded(at: int, byte: int) -> None:
    damaged = bytearray(CODEC.encode(FULL_BET))
    damaged[at] = byte
    try:
        found = BETS.read(bytes(damaged))
    except SchemaError:
        return
    datum = CODEC.decode(bytes(damaged))
    assert found[:2] == [datum["betId"].encode(), datum["settlementVersion"]]


@pytest.mark.parametrize(
    ("type_", "body"),
    [
        ("string", b"\x04\xc3\x28"),  # not UTF-8
        ({"type": "map", "values": "null"}, b"\x02\x02\xff\0"),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x04"),  # no third symbol
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\x01"),  # -1
        ({"type": "array", "items": {"type": "enum", "name": "E", "symbols": ["A"]}}, b"\x03\x04\0\x02\0"),
        (["null", "string"], b"\x02\x02\xff"),
        ("string", b"\x04a"),
    ],
)
def test_a_value_that_does_not_fit_its_type_is_an_error(type_: Any, body: bytes) -> None:
    schema = record({"name": "a", "type": type_}, {"name": "n", "type": "long"})
    with pytest.raises(SchemaError):
        read_record(schema, HEADER + body + b"\x02")


@pytest.mark.parametrize("type_", ["double", ["null", "string"], "bytes"])
def test_a_schema_without_a_field_asked_for_is_an_error(type_: Any) -> None:
    schema = record({"name": "n", "type": type_})
    with pytest.raises(SchemaError, match="has no n"):
        read_record(schema, HEADER + bytes(8))

"""Fields are read without making the rest of a record, and what no record can be is refused.

That values are those of fastavro is shown in tests/property/test_decoder.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastavro import parse_schema

from bridge.avro.codec import Codec, reading
from bridge.avro.columns import Longs
from bridge.avro.decoder import Decoder
from bridge.avro.schemas import Fields, Schema, load
from bridge.errors import SchemaError
from tests.bets import BARE_BET

FULL_BET = json.loads((Path(__file__).parents[3] / "examples" / "settled-bet.record.json").read_text("utf-8"))
CODEC = Codec(load("settled-bet"), 7)


def record(*fields: dict[str, Any]) -> Schema:
    return {"type": "record", "name": "R", "namespace": "a.b", "fields": [*fields]}


def read(schema: Schema, body: bytes, *, strict: bool = False) -> int:
    """Return the field `n`."""
    reader = record({"name": "n", "type": "long"})
    decoder = Decoder(parse_schema(schema, {}), parse_schema(reader, {}), strict=strict)
    found: int = decoder.read(b"*" + body, 1)["n"]
    return found


def test_a_field_of_a_bet_is_read() -> None:
    whole = CODEC.encode(BARE_BET | {"betId": "a", "settlementTime": 2**50, "settlementVersion": 300})
    wanted: Fields = {"settlementTime": {}, "settlementVersion": {}}
    fields = reading("settled-bet", lambda _: load("settled-bet"), wanted)
    assert fields.decode(whole) == {"settlementTime": 2**50, "settlementVersion": 300}
    for cut in range(len(whole)):
        with pytest.raises(SchemaError):
            fields.decode(whole[:cut])
    with pytest.raises(SchemaError, match="1 bytes too many"):
        fields.decode(whole + b"\0")


def test_each_record_is_read_with_the_schema_it_was_written_with() -> None:
    asked = []

    def by_id(schema_id: int) -> Schema:
        asked.append(schema_id)
        before = [{"name": "s", "type": "string"}] if schema_id == 8 else []
        return record(*before, {"name": "n", "type": "int"})

    codec = Codec(record({"name": "n", "type": "long"}), 0, by_id)
    assert [codec.decode(b"\0\0\0\0\x07\x06") for _ in range(2)] == [{"n": 3}] * 2
    assert [codec.decode(b"\0\0\0\0\x08\x02a\x08") for _ in range(2)] == [{"n": 4}] * 2
    assert asked == [7, 8]


@pytest.mark.parametrize("items", ["string", {"type": "record", "name": "P", "fields": []}, "double"])
@pytest.mark.parametrize("kind", ["items", "values"])
def test_blocks_with_a_size_are_passed_over(items: Any, kind: str) -> None:
    of = {"type": "array" if kind == "items" else "map", kind: items}
    schema = record({"name": "a", "type": of}, {"name": "n", "type": "long"})
    one = {"string": b"\x02x", "double": bytes(8)}.get(str(items), b"")
    item = one if kind == "items" else b"\x02k" + one
    sized = b"\x03" + bytes([4 * len(item)]) + item * 2
    assert read(schema, sized + b"\x02" + item + sized + b"\0" + b"\x0e") == 7


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
        ("long", b"\xff" * 9 + b"\x02" + b"\x02"),
        ({"type": "array", "items": "double"}, b"\xfe" + b"\xff" * 8 + b"\x01" + b"\0\x02"),
        ({"type": "array", "items": "long"}, b"\xff" * 9 + b"\x01" + b"\0\0\x02"),  # −2^63 items
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02\x02"),
        (["null", "boolean"], b"\x04\x02"),  # an unknown branch of the union
        (["null", "boolean"], b"\x01\x02"),
        (["null", "boolean"], b"\x03\x02\x02"),
    ],
)
def test_an_impossible_length_branch_or_number_is_an_error(before: Any, body: bytes) -> None:
    schema = record({"name": "a", "type": before}, {"name": "n", "type": "long"})
    with pytest.raises(ValueError):  # noqa: PT011
        read(schema, body)


@pytest.mark.parametrize("at", [0, 3, 7, 8, 12])
def test_text_that_is_passed_over_is_checked_on_request(at: int) -> None:
    schema = record({"name": "a", "type": ["null", "string"]}, {"name": "n", "type": "long"})
    text = b"x" * at + b"\xff" + b"x" * (12 - at)
    assert read(schema, b"\x02\x1a" + text + b"\x0e") == 7
    with pytest.raises(UnicodeDecodeError):
        read(schema, b"\x02\x1a" + text + b"\x0e", strict=True)
    assert read(schema, b"\x02\x1a" + "é".encode() * 6 + b"x\x0e", strict=True) == 7


def test_a_union_of_many_branches_is_passed_over() -> None:
    fixed = [{"type": "fixed", "name": f"F{n}", "size": n} for n in range(1, 100)]
    schema = record({"name": "u", "type": fixed}, {"name": "n", "type": "long"})
    assert read(schema, b"\x80\x01" + bytes(65) + b"\x02") == 1


def test_items_without_bytes_cost_nothing() -> None:
    schema = record({"name": "a", "type": {"type": "array", "items": "null"}}, {"name": "n", "type": "long"})
    assert read(schema, b"\x80" * 8 + b"\x80\x01" + b"\0" + b"\x02") == 1


def test_a_number_of_items_that_is_a_lie_makes_none() -> None:
    schema = record({"name": "a", "type": {"type": "array", "items": "P"}})
    schema["fields"].insert(0, {"name": "p", "type": {"type": "record", "name": "P", "fields": []}})
    parsed = parse_schema(schema, {})
    with pytest.raises(ValueError, match="items in fewer bytes"):
        Decoder(parsed, parsed).read(b"\x80" * 8 + b"\x80\x01" + b"\0", 0)


@pytest.mark.parametrize(
    ("schema", "body", "why"),
    [
        (record({"name": "m", "type": "long"}), b"\x02", "a.b.R was written without n"),
        (record({"name": "n", "type": "string"}), b"\x02a", "string cannot be read as long"),
        (record({"name": "n", "type": ["null", "long"]}), b"\0", "null cannot be read as long"),
    ],
)
def test_a_record_that_lacks_what_is_wanted_is_an_error(schema: Schema, body: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read(schema, body)


def test_a_recursive_schema_is_an_error() -> None:
    schema = record({"name": "r", "type": ["null", "R"]}, {"name": "n", "type": "long"})
    with pytest.raises(ValueError, match=r"a\.b\.R is recursive"):
        read(schema, b"\0\x02")
    with pytest.raises(SchemaError, match="is recursive"):
        Codec(record({"name": "n", "type": "long"}), 0, lambda _: schema).decode(b"\0\0\0\0\7\0\2")


def test_a_null_is_added_only_where_one_can_be() -> None:
    with pytest.raises(ValueError, match="null"):
        Longs().add_null()

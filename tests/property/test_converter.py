"""Any valid message in any spelling becomes the Avro record of a plain reading of it.

`tests.messages` makes a message's text together with its expected record.
"""

from __future__ import annotations

import io
import json
from importlib.resources import files
from random import Random
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.errors import ConversionError
from bridge.messages.parser import MessageParser
from tests.malformed import MALFORMED
from tests.messages import MESSAGE, RANDOM, Node, expected, spelt

# Logical types would become datetimes, which do not hold every value.
SCHEMA = fastavro.parse_schema(
    json.loads(
        (files("bridge") / "schemas" / "settled-bet.avsc").read_text("utf-8"),
        object_hook=lambda node: {key: value for key, value in node.items() if key != "logicalType"},
    )
)
CODEC = Codec(load("settled-bet"), 1)
PARSER = MessageParser()


def in_order_of_keys(value: Any) -> Any:
    """Return the value with every map sorted, as it is written. Avro ignores the order of fields."""
    if isinstance(value, dict):
        return {key: in_order_of_keys(value[key]) for key in sorted(value)}
    return [in_order_of_keys(item) for item in value] if isinstance(value, list) else value


def avro(value: Any) -> bytes:
    """Return the value's Avro bytes, written by fastavro alone."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, in_order_of_keys(value))
    return out.getvalue()


@settings(max_examples=150, deadline=None)
@given(MESSAGE, RANDOM)
def test_a_message_becomes_its_record(message: Node, random: Random) -> None:
    decoded = PARSER.parse(spelt(message, random).encode())
    assert decoded.bet is not None
    record = CODEC.encode(decoded.bet)
    assert decoded.ping_id == expected(message)["pingId"]
    assert decoded.extras == ()
    assert fastavro.schemaless_reader(io.BytesIO(record[5:]), SCHEMA, None) == expected(message["data"])
    assert record[5:] == avro(expected(message["data"]))


@settings(max_examples=75, deadline=None)
@given(MESSAGE, RANDOM, st.sampled_from(['"new":[NaN, {"a": 1e999}]', '"new":-0', '"":{}', '"betID":"x"']))
def test_unknown_fields_change_nothing(message: Node, random: Random, extra: str) -> None:
    decoded = PARSER.parse(spelt(message, random, extra).encode())
    assert decoded.bet is not None
    assert CODEC.encode(decoded.bet)[5:] == avro(expected(message["data"]))
    assert decoded.extras
    assert all(path.endswith(extra.split('"')[1]) for path in decoded.extras)


@settings(max_examples=200, deadline=None)
@given(MESSAGE, RANDOM, st.sampled_from(sorted(MALFORMED)), st.integers(0, 9))
def test_a_malformed_message_is_refused_with_its_place(
    message: Node, random: Random, kind: str, n: int
) -> None:
    valid = json.loads(spelt({"data": message["data"]}, random))
    data, place = MALFORMED[kind](valid, n)
    with pytest.raises(ConversionError) as caught:
        PARSER.parse(data)
    assert place in caught.value.reason
    assert len(caught.value.reason) <= 500


@settings(max_examples=300, deadline=None)
@given(MESSAGE, RANDOM, st.binary(max_size=4), st.integers(0))
def test_damaged_bytes_never_crash(message: Node, random: Random, damage: bytes, where: int) -> None:
    data = bytearray(spelt(message, random).encode())
    where %= len(data)
    data[where : where + len(damage)] = damage
    try:
        decoded = PARSER.parse(bytes(data))
    except ConversionError:
        return
    if decoded.bet is not None:
        CODEC.encode(decoded.bet)

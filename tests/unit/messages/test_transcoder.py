"""Each type of the transcoder: the bytes it writes, and the values it refuses."""

from __future__ import annotations

import struct
from math import inf, nan
from typing import Any

import pytest
from librt.strings import BytesWriter

from bridge.messages import transcoder as to
from bridge.messages.extras import Extras

RESULT = to.Enum({1: 0, 2: 70})
PAIR = to.Object(
    [to.Field("a", to.Boolean(), to.REQUIRED), to.Field("b", to.Nullable(to.String(0, 9)), None)],
    "",
    Extras(),
)


def strings(value: Any) -> int:
    """Count the strings in a document, including keys."""
    if isinstance(value, dict):
        return sum(1 + strings(item) for item in value.values())
    return sum(map(strings, value)) if isinstance(value, list) else isinstance(value, str)


def transcoded(type_: to.Type, value: object) -> bytes:
    """Return the Avro of a value. The type must count its strings."""
    out = BytesWriter()
    assert type_.write(out, value) == strings(value)
    return out.getvalue()


@pytest.mark.parametrize(
    ("type_", "value", "expected"),
    [
        (to.Boolean(), True, b"\x01"),
        (to.Boolean(), False, b"\x00"),
        (to.Integer(-64, 64), -64, b"\x7f"),
        (to.Integer(-64, 64), 64, b"\x80\x01"),
        (to.Integer(-(2**63), 2**63 - 1), -(2**63), b"\xff" * 9 + b"\x01"),
        (to.Integer(-(2**63), 2**63 - 1), 2**63 - 1, b"\xfe" + b"\xff" * 8 + b"\x01"),
        (to.Double(), -0.0, struct.pack("<d", -0.0)),
        (to.Double(), 2**63 + 1, struct.pack("<d", 2.0**63)),
        (to.String(1, 2), "😀é", b"\x0c" + "😀é".encode()),
        (to.Key(1, 2), "😀é", b"\x0c" + "😀é".encode()),
        (to.DateTime(), "1970-01-01T01:00:00.0000649+01:00", b"\x80\x01"),
        (RESULT, 1, b"\x00"),
        (RESULT, 2, b"\x8c\x01"),
        (to.StringMap(), {}, b"\x00"),
        (to.StringMap(), {"b": "x", "B": "", "a": "y"}, b"\x06\x02B\x00\x02a\x02y\x02b\x02x\x00"),
        (to.Nullable(RESULT), None, b"\x00"),
        (to.Nullable(RESULT), 1, b"\x02\x00"),
        (to.Array(RESULT), [], b"\x00"),
        (to.Array(RESULT), [1, 1], b"\x04\x00\x00\x00"),
        (PAIR, {"b": "x", "a": True}, b"\x01\x02\x02x"),
        (PAIR, {"a": False}, b"\x00\x00"),
        (PAIR, {"new": ["x", {"y": "z"}], "a": False}, b"\x00\x00"),
    ],
)
def test_values_of_the_type_are_written_as_avro(type_: to.Type, value: object, expected: bytes) -> None:
    assert transcoded(type_, value) == expected


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        (to.Boolean(), [0, 1, None, "true"]),
        (to.Integer(-64, 64), [-65, 65, 2**63, 2**64, -(2**63) - 1, True, 1.0, "1", None]),
        (to.Integer(-(2**63), 2**63 - 1), [2**63, -(2**63) - 1]),
        (to.Double(), [nan, inf, -inf, 10**400, True, "1", None]),
        (to.String(1, 2), ["", "abc", "\ud800", 1, None]),
        (to.DateTime(), ["", "1970-01-01", "1970-01-01T24:00:00", 0, None]),
        (RESULT, [0, 3, 2**70, True, 1.0, "1", None]),
        (to.StringMap(), [{"a": 1}, {"a": None}, {"a": "x", "b": 1}, [], None]),
        (to.Nullable(RESULT), [0, True]),
        (to.Array(RESULT), [{}, "", [1, 0], [None], None]),
        (PAIR, [{}, {"b": "x"}, {"a": None}, {"a": True, "b": 1}, [], None]),
    ],
)
def test_other_values_are_refused_without_a_reason(type_: to.Type, values: list[object]) -> None:
    for value in values:
        with pytest.raises((ValueError, OverflowError)):
            transcoded(type_, value)


BET_ID, VERSION, TIME = to.Key(1, 9), to.Integer(0, 9), to.DateTime()
EXTRAS = Extras()
BET = to.Object(
    [
        to.Field("betId", BET_ID, to.REQUIRED),
        to.Field("version", VERSION, 0),
        to.Field("time", TIME, "1970-01-01T00:00:00"),
        to.Field("map", to.Nullable(to.StringMap()), None),
    ],
    "data.",
    EXTRAS,
)
TRANSCODER = to.Transcoder(BET, BET_ID, VERSION, TIME, EXTRAS, b"\xff")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ({}, (None, None, ())),
        ({"pingId": None, "data": None}, (None, None, ())),
        ({"pingId": "p"}, ("p", None, ())),
        ({"pingId": "p", "new": "x"}, ("p", None, ("new",))),
        (
            {"data": {"betId": "é", "version": 2, "time": "1970-01-01T00:00:00.000001", "n": 1}},
            (None, ("é".encode(), 2, 1, b"\xff\x04\xc3\xa9\x04\x02\x00"), ("data.n",)),
        ),
        ({"data": {"betId": "b"}}, (None, (b"b", 0, 0, b"\xff\x02b\x00\x00\x00"), ())),
    ],
)
def test_a_message_becomes_ping_id_bet_and_extras(message: Any, expected: to.Conversion) -> None:
    assert TRANSCODER.transcode(message, strings(message)) == expected


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"pingId": "p"},
        {"data": {"betId": "b"}},
        {"data": {"betId": "b", "map": {"a": "x"}}},
        {"data": {"betId": "b", "map": {"a": "x", "b": "y"}}},
        {"data": {"betId": "b", "new": {"a": ["x"]}}},
    ],
)
def test_the_strings_have_to_be_those_of_the_message(message: Any) -> None:
    TRANSCODER.transcode(message, strings(message))
    for other in (-1, 1, 2):
        with pytest.raises(ValueError, match=r"^$"):
            TRANSCODER.transcode(message, strings(message) + other)


@pytest.mark.parametrize("message", [{"pingId": 1}, {"data": 1}, {"data": []}, {"new": 1}, {"new": None}])
def test_a_message_of_another_form_is_refused(message: Any) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        TRANSCODER.transcode(message, strings(message))

"""The values that each type of the transcoder refuses.

That it writes all others as pydantic and the codec do is shown in tests/property/test_transcoder.py.
"""

from __future__ import annotations

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
            type_.write(BytesWriter(), value)


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

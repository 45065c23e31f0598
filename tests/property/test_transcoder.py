"""A message that the transcoder accepts has the same result with pydantic.

Each test also counts the accepted messages: a transcoder that accepts none would pass the rest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.messages.converter import TRANSCODER_ERRORS, Converter
from bridge.messages.parser import MessageParser
from bridge.messages.transcoder_plan import make_transcoder
from tests.malformed import MALFORMED
from tests.messages import DOUBLE, INT64, MESSAGE, RANDOM, SIMULATED, STRING, TIME, Node, spelt

CODEC = Codec(load("settled-bet"), 1)
PARSER = MessageParser()
BY_PYDANTIC = Converter(PARSER, CODEC)
BY_TRANSCODER = Converter(PARSER, CODEC, make_transcoder(CODEC, {}))
MARK = "\ue000here\ue000"


def words(text: str) -> list[str]:
    """Split a text into pieces without spaces."""
    return text.split()


NUMBERS = words("""
    -0 -0.0 0.0 1 5.0 1e0 1e5 1E+5 1E400 -1e-400 1e-99999999999999999999 9007199254740993 9007199254740993.0
    2147483647 2147483648 -2147483648 -2147483649 9223372036854775807 9223372036854775808 -9223372036854775808
    -9223372036854775809 18446744073709551615 18446744073709551616 36893488147419107329
    2.2250738585072011e-308 4.9e-324 2.4e-324 1.7976931348623157e308 1.7976931348623159e308
    NaN Infinity -Infinity 01 1. .5 +1 - 1e 0x1
""")
LONG_NUMBERS = [
    f"{sign}{whole}{rest}"
    for sign in ("", "-")
    for whole in ("9" * 308, "9" * 309, "1" + "0" * 4299, "1" + "0" * 4300, "1" + "0" * 20_000)
    for rest in ("", ".5", f"e-{len(whole)}", f".{'3' * 5000}e-{len(whole)}")
]
LONG_NUMBERS += ["0." + "1" * 5000, "1e-" + "0" * 5000 + "1", "1e" + "0" * 5000 + "1", "0" * 5000]
DATE_TIMES = words("""
    "2026-01-31T12:00:00" "2026-01-31T12:00:00Z" "2026-01-31T12:00:00z" "2026-01-31t12:00:00Z"
    "2026-01-31T12:00:00.1234567Z" "2026-01-31T12:00:00.999999999+14:00" "2026-01-31T12:00:00.1234567890Z"
    "2026-01-31T12:00:00.Z" "2026-01-31T12:00Z" "2026-01-31T12:00:00+0100" "2026-01-31T12:00:00+01"
    "2026-01-31T12:00:00-00:00" "2026-01-31T12:00:00+24:00" "0001-01-01T00:00:00+23:59"
    "9999-12-31T23:59:59.999999-23:59" "0000-01-01T00:00:00" "10000-01-01T00:00:00" "2026-02-29T00:00:00"
    "2024-02-29T00:00:00" "1900-02-29T00:00:00" "2026-01-31T24:00:00" "2016-12-31T23:59:60Z" "2026-01-31"
    "2026-W05-6T12:00:00" "20260131T120000Z" "２026-01-31T12:00:00" "2026-01-31T12:00:00−01:00" "1769860800"
""")
STRINGS = [
    *(f'"{character * length}"' for character in "xé€😀" for length in (0, 1, 999, 1000, 1001)),
    *(f'"{escape * length}"' for escape in (r"\ud83d\ude00", r"\u0041") for length in (1, 1000, 1001)),
    *(
        f'"{text}"'
        for text in ("\0", "\t", "\x1f", "\x7f", "\u2028", "\ufeff", "\ud800", ":{[", "x" * 100_000)
    ),
    *words(r""" "\ud800" "\udc00\ud800" "\ud83dA" "\u0000" "\"" "\\" "\/" "\x41" "\u00" 'x' "x """),
]
NESTS = [
    begin * depth + end * depth for begin, end in ("[]", ('{"a":', "}")) for depth in (9, 190, 205, 1030)
]
SHAPES = words("""
    null true false [] {} [null] [[]] [{}] "" {"a":"b"} {"a":"b","a":"c"} {"a":1,"a":"c"} {"a":"b","a":1}
    {"b":"1","a":"2","B":"3","é":"4","":"5"} {"a":null} {"a":{}} {"a":"b"}} ] ,
""")
PIECE = (
    st.sampled_from([NUMBERS, LONG_NUMBERS, DATE_TIMES, STRINGS, NESTS, SHAPES]).flatmap(st.sampled_from)
    | st.integers(-9, 12).map(str)
    | st.one_of(DOUBLE, INT64, STRING, TIME).map(lambda leaf: leaf.text)
)
"""A piece of JSON, or of what is none."""

CHANGES: dict[str, Callable[[str, str, str], str]] = {
    "another value": lambda key, value, piece: f"{key}:{piece}",
    "twice, the first time wrong": lambda key, value, piece: f"{key}:{piece},{key}:{value}",
    "twice, the last time wrong": lambda key, value, piece: f"{key}:{value},{key}:{piece}",
    "twice, and escaped": lambda key, value, piece: f"{key}:{value},{escaped(key)}:{piece}",
    "twice the same": lambda key, value, piece: f"{key}:{value} ,\t{key}:{value}",
    "escaped": lambda key, value, piece: f"{escaped(key)}:{value}",
    "one too many": lambda key, value, piece: f'{key}:{value},"new":{piece}',
    "in other case": lambda key, value, piece: f"{key.swapcase()}:{value}",
    "no key": lambda key, value, piece: f"{piece}:{value}",
}
"""What may be wrong with a field, from the texts of its key, its value and a piece."""


def escaped(key: str) -> str:
    """Return the same key with its last character as an escape."""
    text = json.loads(key) or "x"
    return f'{json.dumps(text)[:-1].removesuffix(text[-1])}\\u{ord(text[-1]):04x}"'


def members(node: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield every field of every object in a document."""
    if isinstance(node, dict):
        yield from ((node, key) for key in node)
    for child in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from members(child)


def changed(message: bytes, place: int, change: str | None, piece: str) -> bytes:
    """Return the message with one field changed or removed."""
    document = json.loads(message)
    found = list(members(document))
    holder, key = found[place % len(found)]
    value = json.dumps(holder[key])
    if change is None:
        del holder[key]
        return json.dumps(document).encode()
    holder[key] = MARK
    text = json.dumps(key, ensure_ascii=False)
    before, after = json.dumps(document, ensure_ascii=False).split(f'{text}: "{MARK}"')
    whole = before + CHANGES[change](text, value, piece) + after
    return whole.encode("utf-8", "surrogatepass")


def is_transcoded(data: bytes) -> bool:
    """Return whether the transcoder accepts a message.

    If so, pydantic must accept it with the same result.
    """
    try:
        conversion = BY_TRANSCODER.transcode(data)
    except TRANSCODER_ERRORS:
        return False
    assert repr(conversion) == repr(BY_PYDANTIC.convert(data))
    return True


def test_every_message_of_the_simulator_is_transcoded() -> None:
    """These have every field, enum value and spelling of the interface."""
    assert [data for data in SIMULATED if not is_transcoded(data)] == []


@settings(max_examples=100, deadline=None)
@given(MESSAGE, RANDOM)
def test_a_valid_message_is_transcoded(message: Node, random: Random) -> None:
    """In any spelling."""
    assert is_transcoded(spelt(message, random).encode())


@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_message_is_not_transcoded(kind: str) -> None:
    for number, message in enumerate(SIMULATED[:20]):
        data, _ = MALFORMED[kind](json.loads(message), number)
        assert not is_transcoded(data)


def test_a_changed_field_makes_no_difference() -> None:
    """Any field of any object with any value, twice, escaped, under another name, or missing."""
    taken: Counter[tuple[str | None, bool]] = Counter()

    @settings(max_examples=1500, deadline=None)
    @given(st.sampled_from(SIMULATED[:60]), st.integers(0, 500), st.sampled_from([None, *CHANGES]), PIECE)
    def compare(message: bytes, place: int, change: str | None, piece: str) -> None:
        taken[change, is_transcoded(changed(message, place, change, piece))] += 1

    compare()
    twice = {change for change in CHANGES if "twice" in change}
    assert {change for change, is_so in taken if is_so} >= {None, "another value", "escaped"}
    assert {change for change, is_so in taken if is_so}.isdisjoint(twice)
    assert {change for change, is_so in taken if not is_so} == {None, *CHANGES} - {"escaped"}


def test_damaged_bytes_make_no_difference() -> None:
    """Bytes are overwritten, inserted or removed anywhere."""
    taken: Counter[bool] = Counter()
    damages = st.binary(max_size=4) | st.sampled_from(
        [
            b"\xef\xbb\xbf",
            b"\0",
            b" \n",
            b"}",
            b"]",
            b'"',
            b",",
            b"\\u0041",
            b"\xed\xa0\x80",
            b"\xff",
            b"1",
            b"0",
        ]
    )

    @settings(max_examples=750, deadline=None)
    @given(st.sampled_from(SIMULATED[:60]), st.integers(0, 4000), st.integers(0, 3), damages)
    def compare(message: bytes, place: int, lost: int, damage: bytes) -> None:
        place %= len(message) + 1
        taken[is_transcoded(message[:place] + damage + message[place + lost :])] += 1

    compare()
    assert min(taken[True], taken[False]) > 30

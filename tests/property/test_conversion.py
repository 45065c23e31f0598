"""Any valid message, however it is spelt, becomes the Avro record that a plain reading of it says.

The strategies build a message's text together with the record expected of it, with arithmetic of
their own, so that no code of the bridge is its own judge.
"""

from __future__ import annotations

import io
import json
from datetime import date
from importlib.resources import files
from random import Random
from typing import Any, NamedTuple, TypeAlias

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.convert import Converter
from bridge.errors import ConversionError
from tests.malformed import MALFORMED

# Logical types would become datetimes, which do not hold every value.
SCHEMA = fastavro.parse_schema(
    json.loads(
        (files("bridge") / "schemas" / "settled-bet.avsc").read_text("utf-8"),
        object_hook=lambda node: {key: value for key, value in node.items() if key != "logicalType"},
    )
)
CODEC = Codec(load("settled-bet"), 1)
CONVERTER = Converter()
ABSENT = "absent"


class Leaf(NamedTuple):
    """A piece of JSON and what it has to become."""

    text: str
    value: Any


class Map(dict[str, Leaf]):
    """An object whose keys are no fields."""


Node: TypeAlias = Any
"""A Leaf, a Map, a dict or list of nodes, or `ABSENT` for a field that is not sent."""


def expected(node: Node) -> Any:
    """What a node has to become."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, dict):
        return {key: None if child is ABSENT else expected(child) for key, child in node.items()}
    return [expected(child) for child in node]


def spelt(node: Node, random: Random, extra: str = "") -> str:
    """A node as JSON, its fields in random order, each object with the extra field where there is one."""
    space = random.choice(["", " ", "\n\t"])
    if isinstance(node, Leaf):
        return f"{space}{node.text}"
    if isinstance(node, list):
        return f"[{','.join(spelt(child, random, extra) for child in node)}{space}]"
    fields = [
        f"{space}{json.dumps(key)}:{spelt(child, random, extra)}"
        for key, child in node.items()
        if child is not ABSENT
    ]
    if extra and not isinstance(node, Map):
        fields.append(extra)
    random.shuffle(fields)
    return f"{{{','.join(fields)}{space}}}"


def integers(bits: int) -> st.SearchStrategy[Leaf]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1).map(lambda n: Leaf(str(n), n))


def enums(first: int, names: str) -> st.SearchStrategy[Leaf]:
    return st.sampled_from([Leaf(str(n), name) for n, name in enumerate(names.split(), first)])


@st.composite
def doubles(draw: st.DrawFn) -> Leaf:
    """Shortest spellings, long ones, integers of any length, exponents, and halfway cases."""
    digits = st.text("0123456789", min_size=1, max_size=40)
    match draw(st.integers(0, 3)):
        case 0:
            text = repr(draw(st.floats(allow_nan=False, allow_infinity=False)))
        case 1:
            text = str(draw(st.integers(-(10**40), 10**40)))
        case 2:
            text = f"{draw(st.integers(0, 10**25))}.{draw(digits)}{draw(st.sampled_from('eE'))}"
            text += f"{draw(st.sampled_from(['', '+', '-']))}{draw(st.integers(0, 250))}"
        case _:
            text = str((2 * draw(st.integers(2**52, 2**53 - 1)) + 1) * 2 ** draw(st.integers(0, 900)))
    return Leaf(text, float(text))


@st.composite
def strings(draw: st.DrawFn, min_size: int = 0) -> Leaf:
    value = draw(st.text(st.characters(exclude_categories=["Cs"]), min_size=min_size, max_size=8))
    return Leaf(json.dumps(value, ensure_ascii=draw(st.booleans())), value)


@st.composite
def date_times(draw: st.DrawFn) -> Leaf:
    day = draw(st.dates())
    hour, minute, second = draw(st.tuples(st.integers(0, 23), st.integers(0, 59), st.integers(0, 59)))
    fraction = draw(st.text("0123456789", max_size=9))
    offset = draw(st.none() | st.integers(-14 * 60, 14 * 60))
    zone = draw(st.sampled_from(["", "Z"]))
    if offset is not None:
        zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}:{abs(offset) % 60:02}"
    seconds = (day.toordinal() - date(1970, 1, 1).toordinal()) * 86400 + hour * 3600 + minute * 60 + second
    micros = (seconds - (offset or 0) * 60) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    text = f"{day.isoformat()}T{hour:02}:{minute:02}:{second:02}{fraction and '.'}{fraction}{zone}"
    return Leaf(json.dumps(text), micros)


def nullable(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.just(ABSENT) | st.just(Leaf("null", None)) | strategy


INT32, INT64, DOUBLE, STRING, TIME = integers(32), integers(64), doubles(), strings(), date_times()
BOOLEAN = st.sampled_from([Leaf("true", True), Leaf("false", False)])
RESULT = enums(0, "None Win Lose Refund HalfWin HalfLose CashOut PlaceWin")
ITEM_TYPE = enums(
    1, "Standard StartingPrice ToteExotics FixedExotics BetBuilder Pickem EachWay ToteSingleRunner"
)
MAP = st.dictionaries(st.text("abcé€😀\x00", max_size=3), STRING, max_size=4).map(Map)
EVENT = st.fixed_dictionaries(
    {"id": INT64, "name": nullable(STRING), "isLive": BOOLEAN, "startTime": nullable(TIME)}
)
MARKET = st.fixed_dictionaries(
    {"id": INT64, "type": INT64, "name": nullable(STRING), "properties": nullable(MAP)}
)
SETTLEMENT = st.fixed_dictionaries(
    {
        "settlementResult": RESULT,
        "settlementTime": nullable(TIME),
        "settlementVersion": INT32,
        "isManualSettlement": BOOLEAN,
    }
)
ITEM = st.fixed_dictionaries(
    {
        "event": nullable(EVENT),
        "market": nullable(MARKET),
        "selectionId": INT64,
        "competitionId": INT64,
        "countryId": INT64,
        "sportId": INT64,
        "settlement": nullable(SETTLEMENT),
        "price": nullable(DOUBLE),
        "eachWayPrice": nullable(st.fixed_dictionaries({"win": nullable(DOUBLE), "place": nullable(DOUBLE)})),
        "limitsRatingId": nullable(INT64),
        "limitsFactor": DOUBLE,
        "hasLineDeviation": BOOLEAN,
        "isOutright": BOOLEAN,
        "version": INT32,
        "deadHeatFactor": nullable(DOUBLE),
        "placeDeadHeatFactor": nullable(DOUBLE),
        "parameters": nullable(MAP),
        "manualPrice": nullable(DOUBLE),
        "alternativePrice": nullable(DOUBLE),
        "type": ITEM_TYPE,
        "betBuilderItems": nullable(
            st.lists(
                st.fixed_dictionaries(
                    {"market": nullable(MARKET), "selectionId": INT64, "settlement": nullable(SETTLEMENT)}
                ),
                max_size=2,
            )
        ),
    }
)
BET = st.fixed_dictionaries(
    {
        "betId": strings(min_size=1),
        "betSettlement": RESULT,
        "payoutMultiplier": DOUBLE,
        "isCancelled": BOOLEAN,
        "selections": nullable(st.lists(ITEM, max_size=2)),
        "isRejected": BOOLEAN,
        "settlementTime": TIME,
        "payout": DOUBLE,
        "partialRefund": DOUBLE,
        "settlementVersion": INT32,
        "amount": nullable(
            st.fixed_dictionaries(
                {
                    "currency": nullable(STRING),
                    "value": INT64,
                    "precision": INT32,
                    "placementExchangeRate": DOUBLE,
                    "settlementExchangeRate": nullable(DOUBLE),
                }
            )
        ),
    }
)
MESSAGE = st.fixed_dictionaries({"pingId": nullable(STRING), "data": BET})
RANDOM = st.randoms(use_true_random=False)


def in_order_of_keys(value: Any) -> Any:
    """The value with every map sorted, as it has to be written. Avro ignores the order of fields."""
    if isinstance(value, dict):
        return {key: in_order_of_keys(value[key]) for key in sorted(value)}
    return [in_order_of_keys(item) for item in value] if isinstance(value, list) else value


def avro(value: Any) -> bytes:
    """The value's Avro bytes by fastavro alone."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, SCHEMA, in_order_of_keys(value))
    return out.getvalue()


@settings(max_examples=150, deadline=None)
@given(MESSAGE, RANDOM)
def test_a_message_becomes_its_record(message: Node, random: Random) -> None:
    """Every field arrives with its exact value, and the bytes do not depend on the message's order."""
    decoded = CONVERTER.decode(spelt(message, random).encode())
    assert decoded.bet is not None
    record = CODEC.encode(decoded.bet)
    assert decoded.ping_id == expected(message)["pingId"]
    assert decoded.extras == ()
    assert fastavro.schemaless_reader(io.BytesIO(record[5:]), SCHEMA, None) == expected(message["data"])
    assert record[5:] == avro(expected(message["data"]))


@settings(max_examples=75, deadline=None)
@given(MESSAGE, RANDOM, st.sampled_from(['"new":[NaN, {"a": 1e999}]', '"new":-0', '"":{}', '"betID":"x"']))
def test_unknown_fields_change_nothing(message: Node, random: Random, extra: str) -> None:
    """The same message with an unknown field becomes the same bytes."""
    decoded = CONVERTER.decode(spelt(message, random, extra).encode())
    assert decoded.bet is not None
    assert CODEC.encode(decoded.bet)[5:] == avro(expected(message["data"]))
    assert decoded.extras
    assert all(path.endswith(extra.split('"')[1]) for path in decoded.extras)


@settings(max_examples=200, deadline=None)
@given(MESSAGE, RANDOM, st.sampled_from(sorted(MALFORMED)), st.integers(0, 9))
def test_a_malformed_message_is_refused_with_its_place(
    message: Node, random: Random, kind: str, n: int
) -> None:
    """Any valid message, spoilt in any of the known ways, is an error that says where."""
    valid = json.loads(spelt({"data": message["data"]}, random))
    data, place = MALFORMED[kind](valid, n)
    with pytest.raises(ConversionError) as caught:
        CONVERTER.decode(data)
    assert place in caught.value.reason
    assert len(caught.value.reason) <= 500


@settings(max_examples=300, deadline=None)
@given(MESSAGE, RANDOM, st.binary(max_size=4), st.integers(0))
def test_damaged_bytes_never_crash(message: Node, random: Random, damage: bytes, where: int) -> None:
    """Whatever bytes come, the answer is a message that can be encoded, or a ConversionError."""
    data = bytearray(spelt(message, random).encode())
    where %= len(data)
    data[where : where + len(damage)] = damage
    try:
        decoded = CONVERTER.decode(bytes(data))
    except ConversionError:
        return
    if decoded.bet is not None:
        CODEC.encode(decoded.bet)

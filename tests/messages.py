"""Valid messages for Hypothesis: the text of each together with the record expected of it.

The expectation is worked out with arithmetic of its own, so that no code of the bridge is its own judge.
`SIMULATED` are messages of the simulator, as it sends them.
"""

from __future__ import annotations

import json
from datetime import date
from random import Random
from typing import Any, NamedTuple, TypeAlias

import orjson
from hypothesis import strategies as st

from bridge_sandbox.provider.bets import message
from bridge_sandbox.provider.world.entities import World

ABSENT = "absent"


class Leaf(NamedTuple):
    """A piece of JSON and its expected value."""

    text: str
    value: Any


class Map(dict[str, Leaf]):
    """An object whose keys are not fields."""


Node: TypeAlias = Any
"""A Leaf, a Map, a dict or list of nodes, or `ABSENT` for a field that is not sent."""


def expected(node: Node) -> Any:
    """The expected value of a node."""
    if isinstance(node, Leaf):
        return node.value
    if isinstance(node, dict):
        return {key: None if child is ABSENT else expected(child) for key, child in node.items()}
    return [expected(child) for child in node]


def spelt(node: Node, random: Random, extra: str = "") -> str:
    """A node as JSON, with fields in random order and the extra field, if any, in each object."""
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

_WORLD = World(1, 1_790_000_000.0)
SIMULATED = [
    orjson.dumps(message(_WORLD, number, 1 + number % 3, 1_790_000_000_000_000)) for number in range(300)
]
"""Bets of every kind, a third of them at each of three settlement versions."""

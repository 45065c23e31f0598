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
from tests.interface import ENUMS, fields_of

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


def enums(table: str) -> st.SearchStrategy[Leaf]:
    numbers, names = table.split()[::2], table.split()[1::2]
    return st.sampled_from([Leaf(*of) for of in zip(numbers, names, strict=True)])


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


_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": strings(),
    "boolean": st.sampled_from([Leaf("true", True), Leaf("false", False)]),
    "int32": integers(32),
    "int64": integers(64),
    "double": doubles(),
    "date-time": date_times(),
    "map": st.dictionaries(st.text("abcé€😀\x00", max_size=3), strings(), max_size=4).map(Map),
    **{name: enums(table) for name, table in ENUMS.items()},
}


def of_type(kind: str) -> st.SearchStrategy[Any]:
    """Values of a type in the tables of the interface."""
    if kind.endswith("?"):
        return nullable(of_type(kind[:-1]))
    if kind.endswith("[]"):
        return st.lists(of_type(kind[:-2]), max_size=2)
    if kind in _SCALARS:
        return _SCALARS[kind]
    fields = {name: of_type(of) for name, of in fields_of(kind).items()}
    return st.fixed_dictionaries(fields | ({"betId": strings(min_size=1)} if "betId" in fields else {}))


MESSAGE = st.fixed_dictionaries({"pingId": nullable(strings()), "data": of_type("SettledBetViewModelV3")})
RANDOM = st.randoms(use_true_random=False)

_WORLD = World(1, 1_790_000_000.0)
SIMULATED = [
    orjson.dumps(message(_WORLD, number, 1 + number % 3, 1_790_000_000_000_000)) for number in range(300)
]
"""Bets of every kind, a third of them at each of three settlement versions."""

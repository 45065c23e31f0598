"""Schemas and data for them, right and wrong, and what fastavro alone makes of these.

Hypothesis draws schemas, values and a seed; records are put together from the values by the seed, some
hundred times as fast as Hypothesis would draw each.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from enum import IntEnum, StrEnum
from importlib.util import module_from_spec, spec_from_file_location
from random import Random
from typing import Any, Final, TypeAlias

import fastavro
from fastavro.validation import validate
from hypothesis import strategies as st

from bridge.avro import encoder
from bridge.avro.schemas import TOPICS, load

Schema: TypeAlias = Any
Pool: TypeAlias = Mapping[str, list[Any]]
"""Primitive type → values of it."""

FOREIGN: Final = object()
"""A value of no Avro type."""


class Number(IntEnum):
    """An int of a subclass."""

    SEVEN = 7


class Text(StrEnum):
    """A str of a subclass, and a symbol."""

    RED = "RED"


JUNK: Final = [
    *(None, True, 0, -1, 1.5, float("nan"), 2**31, -(2**31) - 1, 2**63, -(2**63) - 1, 2**64, 10**400),
    *("", "x", "RED", "1.5", "\ud800", b"", b"ab", bytearray(b"ab")),
    *([], [1], ["x"], (), (1,), ("x", 2), {}, {"a": 1}, {1: "a"}, {"a": "b"}, range(2), FOREIGN),
    *(Number.SEVEN, Text.RED, OrderedDict(b="é", a="x"), [("a", 1)]),
]
POOL: Final = st.fixed_dictionaries(
    {
        "boolean": st.just([True, False]),
        "long": st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(-70, 70), min_size=1, max_size=4),
        "double": st.lists(st.floats() | st.integers(-(2**70), 2**70), min_size=1, max_size=4),
        "string": st.lists(st.text(st.characters(codec="utf-8"), max_size=70), min_size=1, max_size=4),
    }
)
_KEYS: Final = ["", "a", "b", "key", "ключ"]
_PRIMITIVES: Final = ["boolean", "long", "double", "string"]
_DEFAULTS: Final[dict[str, Any]] = {
    "boolean": True,
    "long": 2**40,
    "double": -2,
    "string": "é",
    "array": [],
    "map": {},
}


def plain_form() -> Any:
    """The module `bridge.avro.encoder` as plain Python, whichever form is in use."""
    source = f"{encoder.__file__.partition('encoder.')[0]}encoder.py"
    spec = spec_from_file_location("plain_encoder", source)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FORMS: Final = {"plain": plain_form()} | ({"compiled": encoder} if encoder.compiled() else {})
"""The encoder, in each form that there is."""


def without_logical_types(node: Any) -> Any:
    """The schema as the codec uses it."""
    if isinstance(node, dict):
        return {key: without_logical_types(value) for key, value in node.items() if key != "logicalType"}
    return [without_logical_types(item) for item in node] if isinstance(node, list) else node


OWN: Final = [without_logical_types(load(name)) for name in TOPICS]


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    """A record of any types that the encoder supports."""
    return _Drawn(draw).record(2)


class _Drawn:
    """Types drawn one inside the other; names are given once and may be used again."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        self._given = 0
        self._complete: list[str] = []

    def record(self, depth: int) -> Schema:
        name = self._name()
        count = self._draw(st.integers(1 if depth == 2 else 0, 4))
        fields = [self._field(f"f{index}", depth) for index in range(count)]
        self._complete.append(name)
        return {"type": "record", "name": name, "fields": fields}

    def _name(self) -> str:
        self._given += 1
        return f"T{self._given}"

    def _field(self, name: str, depth: int) -> Schema:
        kind = self._type(depth)
        first = kind[0] if isinstance(kind, list) else kind
        plain = first["type"] if isinstance(first, dict) else first
        if plain in _DEFAULTS and self._draw(st.booleans()):
            return {"name": name, "type": kind, "default": _DEFAULTS[plain]}
        return {"name": name, "type": kind}

    def _type(self, depth: int) -> Schema:
        match self._draw(st.sampled_from(["as it is", "null first", "null last"])):
            case "null first":
                return ["null", self._not_null(depth)]
            case "null last":
                return [self._not_null(depth), "null"]
        return self._not_null(depth)

    def _not_null(self, depth: int) -> Schema:
        kinds = [*_PRIMITIVES, "enum", *self._complete, *(["array", "map", "record"] * 2 if depth else [])]
        kind = self._draw(st.sampled_from(kinds))
        if kind == "array":
            return {"type": kind, "items": self._type(depth - 1)}
        if kind == "map":
            return {"type": kind, "values": self._type(depth - 1)}
        if kind == "record":
            return self.record(depth - 1)
        if kind == "enum":
            self._complete.append(self._name())
            return {"type": kind, "name": self._complete[-1], "symbols": ["RED", "GREEN", "x"]}
        return kind


class Maker:
    """Data for one schema, from a pool of values and a seed. `schema` may be of nullable unions only."""

    def __init__(self, schema: Schema, pool: Pool, seed: int) -> None:
        self._named: dict[str, Schema] = {}
        self.schema = fastavro.parse_schema(schema, self._named)
        self._pool = pool
        self._random = Random(seed)

    def exact(self) -> dict[str, Any]:
        """A datum that is right, with a field that the schema lacks; some that may be missing are."""
        datum: dict[str, Any] = self._exact(self.schema)
        return datum | {"not in the schema": FOREIGN}

    def spoilt(self, value: object) -> tuple[Any, str]:
        """An otherwise right datum with the value somewhere, and the path of that place."""
        return self._spoilt(self.schema, self._exact(self.schema), value)

    def junk(self) -> object:
        """Anything, right in some places and wrong in others."""
        return self._random.choice(JUNK)

    def _resolved(self, schema: Schema) -> Schema:
        return self._named.get(schema, schema) if isinstance(schema, str) else schema

    def _exact(self, schema: Schema) -> Any:
        schema, chance = self._resolved(schema), self._random.random
        if isinstance(schema, list):
            return self._exact(self._random.choice(schema))
        match schema if isinstance(schema, str) else schema["type"]:
            case "record":
                return {
                    field["name"]: self._exact(field["type"])
                    for field in schema["fields"]
                    if not ("default" in field or "null" in field["type"]) or chance() < 0.8
                }
            case "array":
                return [self._exact(schema["items"]) for _ in range(int(chance() * 4))]
            case "map":
                return {key: self._exact(schema["values"]) for key in _KEYS if chance() < 0.3}
            case "enum":
                return self._random.choice(schema["symbols"])
            case "null":
                return None
            case primitive:
                return self._random.choice(self._pool[primitive])

    def _spoilt(self, schema: Schema, datum: Any, value: object, path: str = "") -> tuple[Any, str]:
        schema = self._resolved(schema)
        if isinstance(schema, list) and datum is not None:
            schema = self._resolved(schema[schema[0] == "null"])
        places = list(self._places(schema, datum))
        if not places or self._random.random() < 0.1:
            return value, path.removeprefix(".")
        inner, key, step = self._random.choice(places)
        new, path = self._spoilt(inner, datum[key], value, path + step)
        changed = datum.copy()
        changed[key] = new
        return changed, path

    @staticmethod
    def _places(schema: Schema, datum: Any) -> Iterator[tuple[Schema, Any, str]]:
        """The schema, the key and the step of a path of each value inside."""
        if not datum or not isinstance(schema, dict):
            return
        if schema["type"] == "record":
            fields = (field for field in schema["fields"] if field["name"] in datum)
            yield from ((field["type"], field["name"], f".{field['name']}") for field in fields)
        elif schema["type"] == "array":
            yield from ((schema["items"], index, f"[{index}]") for index in range(len(datum)))
        elif schema["type"] == "map":
            yield from ((schema["values"], key, f"[{key!r}]") for key in datum)


def by_fastavro(schema: Schema, datum: object) -> bytes | None:
    """What fastavro alone writes; None for what its own `validate` refuses, or what it cannot write."""
    out = io.BytesIO()
    try:
        if not validate(datum, schema, raise_errors=False, disable_tuple_notation=True):  # type: ignore[call-arg]
            return None
        fastavro.schemaless_writer(out, schema, datum, disable_tuple_notation=True)
    except (ValueError, TypeError, OverflowError):
        return None
    return out.getvalue()


def encoded(form: Any, schema: Schema, datum: object) -> bytes | None:
    """What the encoder makes of a datum; None for one that it refuses."""
    try:
        written: bytes = form.Encoder(schema, b"").encode(datum)
    except (ValueError, OverflowError):
        return None
    return written

"""Avro's rules of schema resolution."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.avro.evolution import incompatibilities
from bridge.errors import SchemaError


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def of(type_: Any) -> dict[str, Any]:
    return record({"name": "a", "type": type_})


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols)} | more


TREE = {"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]}
DEEPER = {"type": "record", "name": "T", "fields": [*TREE["fields"], {"name": "b", "type": "long"}]}


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        (of("long"), of("int")),
        (of("double"), of("long")),
        (of("bytes"), of("string")),
        (of({"type": "long"}), of("long")),
        (of(["null", "long"]), of("long")),
        (of(["null", "long"]), of(["long", "null"])),
        (of(["null", "double"]), of(["null", "int"])),
        (of("long"), of(["long"])),
        (of({"type": "array", "items": "long"}), of({"type": "array", "items": "int"})),
        (of({"type": "map", "values": "long"}), of({"type": "map", "values": "int"})),
        (of(enum("A", "B")), of(enum("A"))),
        (of(enum("A", default="A")), of(enum("A", "B"))),
        (of({"type": "fixed", "name": "F", "size": 4}), of({"type": "fixed", "name": "F", "size": 4})),
        (record(), of("long")),
        (record({"name": "a", "type": "long", "default": 0}), record()),
        (TREE, DEEPER),
        (
            record({"name": "a", "type": record(name="S")}, {"name": "b", "type": ["null", "S"]}),
            record({"name": "a", "type": record(name="S")}, {"name": "b", "type": "S"}),
        ),
        ({"namespace": "n", **record()}, {**record(name="n.R")}),
    ],
)
def test_compatible(reader: dict[str, Any], writer: dict[str, Any]) -> None:
    assert incompatibilities(reader, writer) == []


@pytest.mark.parametrize(
    ("reader", "writer", "reason"),
    [
        (of("int"), of("long"), "R.a: long cannot be read as int"),
        (of("string"), of("long"), "R.a: long cannot be read as string"),
        (of("long"), of(["null", "long"]), "R.a: null cannot be read as long"),
        (of(["null", "long"]), of("string"), "R.a: string cannot be read as ['null', 'long']"),
        (of({"type": "array", "items": "int"}), of({"type": "array", "items": "long"}), "R.a[]: long cannot"),
        (of({"type": "map", "values": "int"}), of({"type": "map", "values": "long"}), "R.a{}: long cannot"),
        (of(enum("A")), of(enum("A", "B")), "R.a: the reader has neither B nor a default"),
        (
            of({"type": "fixed", "name": "F", "size": 4}),
            of({"type": "fixed", "name": "F", "size": 5}),
            "R.a: 5 bytes cannot be read as 4",
        ),
        (of("long"), record(), "R.a: missing in written records"),
        (of(["null", "long"]), record(), "R.a: missing in written records"),
        (of(record(name="S")), of(record(name="Z")), "R.a: Z cannot be read as S"),
        (record(name="Z"), record(), "Z: R cannot be read as Z"),
        (DEEPER, TREE, "T.b: missing in written records"),
        (
            of(["null", record({"name": "x", "type": "int"}, name="S")]),
            of(["null", record({"name": "x", "type": "string"}, name="S")]),
            "R.a.x: string cannot be read as int",
        ),
        (
            of({"type": "long", "logicalType": "timestamp-micros"}),
            of({"type": "long", "logicalType": "timestamp-millis"}),
            "R.a: logical type timestamp-millis must not be read as timestamp-micros",
        ),
        (of({"type": "long", "logicalType": "timestamp-micros"}), of("long"), "R.a: logical type None"),
    ],
)
def test_incompatible(reader: dict[str, Any], writer: dict[str, Any], reason: str) -> None:
    """Each reason has its path."""
    found = incompatibilities(reader, writer)
    assert len(found) == 1
    assert found[0].startswith(reason)


def test_an_invalid_schema_is_an_error() -> None:
    with pytest.raises(SchemaError, match="R is not an Avro schema"):
        incompatibilities(of("lng"), of("long"))

"""Avro's rules of schema resolution, in both directions."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.avro.evolution import differences
from bridge.errors import SchemaError


def record(*fields: Any, name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def of(type_: Any) -> dict[str, Any]:
    return record({"name": "a", "type": type_})


def enum(*symbols: str, **more: Any) -> dict[str, Any]:
    return {"type": "enum", "name": "E", "symbols": list(symbols)} | more


MONEY = {"type": "fixed", "name": "Money", "size": 8, "logicalType": "decimal", "precision": 18}
TREE = {"type": "record", "name": "T", "fields": [{"name": "next", "type": ["null", "T"]}]}
DEEPER = {"type": "record", "name": "T", "fields": [*TREE["fields"], {"name": "b", "type": "long"}]}


@pytest.mark.parametrize(
    ("current", "released"),
    [
        (of({"type": "long"}), of("long")),
        (of(["null", "long"]), of(["long", "null"])),
        (of(enum("A", "B", default="A")), of(enum("A", default="A"))),
        (of(enum("A", "B")), of(enum("A", default="A"))),
        (of({"type": "fixed", "name": "F", "size": 4}), of({"type": "fixed", "name": "F", "size": 4})),
        (record({"name": "a", "type": "long", "default": 0}), record()),
        (record({"name": "a", "type": ["null", "long"], "default": None}), record()),
        (TREE, TREE),
        (
            record({"name": "a", "type": record(name="S")}, {"name": "b", "type": ["null", "S"]}),
            record({"name": "b", "type": ["null", record(name="S")]}, {"name": "a", "type": "S"}),
        ),
        ({"namespace": "n", **record()}, {**record(name="n.R")}),
    ],
)
def test_compatible(current: dict[str, Any], released: dict[str, Any]) -> None:
    assert differences(current, released) == differences(released, current) == []


@pytest.mark.parametrize(
    ("current", "released", "reason"),
    [
        (of("double"), of("long"), "R.a: was long and is double"),
        (of("bytes"), of("string"), "R.a: was string and is bytes"),
        (of(["null", "long"]), of("long"), "R.a: was long and is long or null"),
        (of(["null", "long"]), of(["null", "string"]), "R.a: was null or string and is long or null"),
        (of({"type": "array", "items": "int"}), of({"type": "array", "items": "long"}), "R.a[]: was long"),
        (of({"type": "map", "values": "int"}), of({"type": "map", "values": "long"}), "R.a{}: was long"),
        (of(enum("A")), of(enum("A", "B")), "R.a: one version has B, the other neither that nor a default"),
        (of(enum("A", "B", default="A")), of(enum("A")), "R.a: one version has B, the other neither"),
        (
            of({"type": "fixed", "name": "F", "size": 4}),
            of({"type": "fixed", "name": "F", "size": 5}),
            "R.a: was fixed F of 5 bytes and is fixed F of 4 bytes",
        ),
        *(
            (of(MONEY | change), of(MONEY), "R.a: was fixed Money of 8 bytes (decimal) and is fixed ")
            for change in ({"name": "Amount"}, {"size": 16})
        ),
        (of("long"), record(), "R.a: one version lacks it, and the other has no default"),
        (record(), of(["null", "long"]), "R.a: one version lacks it"),
        (of(record(name="S")), of(record(name="Z")), "R.a: was record Z and is record S"),
        (record(name="Z"), record(), "Z: was record R and is record Z"),
        (DEEPER, TREE, "T.b: one version lacks it"),
        (
            of(["null", record({"name": "x", "type": "int"}, name="S")]),
            of(["null", record({"name": "x", "type": "string"}, name="S")]),
            "R.a.x: was string and is int",
        ),
        (
            of({"type": "long", "logicalType": "timestamp-micros"}),
            of({"type": "long", "logicalType": "timestamp-millis"}),
            "R.a: was long (timestamp-millis) and is long (timestamp-micros)",
        ),
        (of({"type": "long", "logicalType": "timestamp-micros"}), of("long"), "R.a: was long and is long ("),
    ],
)
def test_incompatible(current: dict[str, Any], released: dict[str, Any], reason: str) -> None:
    [found] = differences(current, released)
    assert found.startswith(reason)


def test_an_invalid_schema_is_an_error() -> None:
    with pytest.raises(SchemaError, match="R is not an Avro schema"):
        differences(of("lng"), of("long"))

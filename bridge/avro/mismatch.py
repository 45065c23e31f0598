"""Finds where and why a datum does not fit its schema. Slow, and used only when encoding has failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from reprlib import repr as shortened
from typing import Any, Final

from bridge.avro.encoder import Encoder

_WANTED: Final = {
    "boolean": "True or False",
    "long": "an integer of 64 bits",
    "double": "a number that a double can hold",
    "string": "a string that UTF-8 can encode",
    "record": "an object",
    "array": "a list",
    "map": "an object",
}


def mismatch(schema: Any, named: Mapping[str, Any], datum: object, path: str = "") -> str | None:
    """Return the first mismatch, such as `selections[2].betId: must be a string …, got 5`, or None.

    `schema` is one that `bridge.avro.encoder` supports, and `named` its named types by full name, both as
    returned by fastavro's `parse_schema`; `path` is where the datum is.
    """
    if isinstance(schema, str):
        schema = named.get(schema, {"type": schema})
    if isinstance(schema, list):
        [schema] = [branch for branch in schema if branch != "null"]
        return None if datum is None else mismatch(schema, named, datum, path)
    found: Iterable[str | None]
    match schema["type"], datum:
        case "record", dict():
            steps = ((field, f"{path}.{field['name']}".removeprefix(".")) for field in schema["fields"])
            found = (_in_field(field, named, datum, step) for field, step in steps)
        case "array", list():
            items = enumerate(datum)
            found = (mismatch(schema["items"], named, item, f"{path}[{index}]") for index, item in items)
        case "map", dict():
            found = (
                mismatch("string", named, key, f"{path}: the key {shortened(key)}")
                or mismatch(schema["values"], named, value, f"{path}[{shortened(key)}]")
                for key, value in datum.items()
            )
        case kind, _:
            found = [_in_leaf(schema, kind, datum, path)]
    return next(filter(None, found), None)


def _in_field(field: Any, named: Mapping[str, Any], record: dict[Any, object], path: str) -> str | None:
    if field["name"] in record:
        return mismatch(field["type"], named, record[field["name"]], path)
    return (
        None if "default" in field or "null" in field["type"] else f"{path}: is missing, and has no default"
    )


def _in_leaf(schema: Any, kind: str, datum: object, path: str) -> str | None:
    if kind not in ("record", "array", "map"):
        try:
            Encoder(schema, b"").encode(datum)
            return None
        except (ValueError, OverflowError):
            pass
    wanted = f"one of {', '.join(schema['symbols'])}" if kind == "enum" else _WANTED[kind]
    return f"{path}: must be {wanted}, got {shortened(datum)}".removeprefix(": ")

"""Explains where and why a datum does not fit its schema.

Slow, and used only when encoding has failed. A datum fits if fastavro's `validate` accepts it. fastavro
itself calls `validate` only inside unions; elsewhere it would write True for "no", and 1 for True.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from reprlib import repr as shortened
from typing import Any, Final

from fastavro import schemaless_writer
from fastavro.validation import validate

Named = Mapping[str, Any]
"""The named types of a schema by full name, as collected by fastavro's `parse_schema`."""

_WANTED: Final = {
    "boolean": "True or False",
    "int": "an integer of 32 bits",
    "long": "an integer of 64 bits",
    "float": "a number",
    "double": "a number",
    "string": "a string",
    "record": "an object",
    "array": "a list",
    "map": "an object",
}


def mismatch(schema: Any, named: Named, datum: object) -> str | None:
    """Return the first mismatch, such as `selections[2].price: must be a number, got 'x'`, or None.

    `schema` and `named` are results of `parse_schema`. Raises RecursionError for a recursive datum.
    """
    return next(_mismatches(schema, named, datum, ""), None)


def _mismatches(schema: Any, named: Named, datum: object, path: str) -> Iterator[str]:
    if isinstance(schema, str) and schema in named:
        schema = named[schema]
    if isinstance(schema, list):
        yield from _in_union(schema, named, datum, path)
        return
    kind = schema["type"] if isinstance(schema, dict) else schema
    if kind == "record" and isinstance(datum, Mapping):
        for field in schema["fields"]:
            yield from _in_field(field, named, datum, f"{path}.{field['name']}".removeprefix("."))
    elif kind == "array" and isinstance(datum, Sequence) and not isinstance(datum, str):
        for index, item in enumerate(datum):
            yield from _mismatches(schema["items"], named, item, f"{path}[{index}]")
    elif kind == "map" and isinstance(datum, Mapping):
        for key, item in datum.items():
            yield from _mismatches("string", named, key, f"{path}: the key {shortened(key)}")
            yield from _mismatches(schema["values"], named, item, f"{path}[{shortened(key)}]")
    elif kind in ("record", "array", "map"):
        yield _must_be(path, _WANTED[kind], datum)
    else:
        yield from _in_leaf(schema, kind, datum, path)


def _in_union(union: list[Any], named: Named, datum: object, path: str) -> Iterator[str]:
    """If no branch fits, yield the mismatch in the only one but null, or name all branches."""
    if all(next(_mismatches(branch, named, datum, path), None) is not None for branch in union):
        others = [branch for branch in union if branch != "null"]
        if len(others) == 1 and datum is not None:
            yield from _mismatches(others[0], named, datum, path)
        else:
            yield _must_be(path, f"any of {', '.join(map(_name, union))}", datum)


def _name(schema: Any) -> str:
    return schema if isinstance(schema, str) else str(schema.get("name", schema["type"]))


def _in_field(field: Any, named: Named, record: Mapping[Any, object], path: str) -> Iterator[str]:
    name = field["name"]
    if name in record or "default" in field or "null" in field["type"]:
        yield from _mismatches(field["type"], named, record.get(name, field.get("default")), path)
    else:
        yield f"{path}: is missing, and has no default"


def _in_leaf(schema: Any, kind: str, datum: object, path: str) -> Iterator[str]:
    try:
        if validate(datum, schema, raise_errors=False):
            # Fails for a lone surrogate, or an integer too large for a double.
            schemaless_writer(io.BytesIO(), schema, datum)
            return
    except (ValueError, TypeError, OverflowError) as error:
        yield f"{path}: {error}".removeprefix(": ")
        return
    if kind == "enum":
        yield _must_be(path, f"one of {', '.join(schema['symbols'])}", datum)
    elif kind == "fixed":
        yield _must_be(path, f"{schema['size']} bytes", datum)
    else:
        yield _must_be(path, _WANTED.get(kind, kind), datum)


def _must_be(path: str, wanted: str, datum: object) -> str:
    return f"{path}: must be {wanted}, got {shortened(datum)}".removeprefix(": ")

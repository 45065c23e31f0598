"""Encodes a datum as Avro, with a tree of small encoders made once from the schema.

Each node of the tree knows its type, so the schema is not consulted while a record is written. The module is
compiled with mypyc if there is a C compiler, and runs unchanged as plain Python otherwise; `compiled` tells
which. See docs/decisions/0016-compiled-encoder.md.

It knows the types of the bridge's schemas, and accepts only values of exactly these types. Anything else,
wrong or only unusual (a tuple for an array, a mapping that is not a dict), is an error without a place:
tracking the path would be slow. `bridge.avro.mismatch` finds the place.
"""

from __future__ import annotations

from sys import intern
from typing import Any, Final

from librt.strings import BytesWriter, write_f64_le
from mypy_extensions import i64, u8  # machine integers once compiled, plain ones until then

_ABSENT: Final = object()


class UnknownSchema(Exception):
    """A schema has something that this encoder does not support; the message names it."""


_COMPILED: Final = not __file__.endswith(".py")


def compiled() -> bool:
    """Return whether the hot modules are compiled by mypyc: all of them, or none."""
    return _COMPILED


class Encoder:
    """Encodes records of one schema, each after the same header.

    `schema` is a result of fastavro's `parse_schema`. Raises UnknownSchema for an int, float, bytes, fixed or
    lone null, for a union other than of a type and null, for a recursive type, and for logical types.
    """

    def __init__(self, schema: Any, header: bytes) -> None:
        self._root: Final = _node(schema, {})
        self._header: Final = header

    def encode(self, datum: object) -> bytes:
        """Return header and record. Fields unknown to the schema are omitted; missing ones get their default.

        Raises ValueError or OverflowError unless all values are exactly of the schema's types.
        """
        out = BytesWriter()
        out.write(self._header)
        self._root.write(out, datum)
        return out.getvalue()


def write_long(out: BytesWriter, value: i64) -> None:
    """Append a long: zigzag, then seven bits a byte, the lowest first.

    Raises ValueError for more than 64 bits; compiled, OverflowError.
    """
    sign: i64 = value >> 63
    if sign != 0 and sign != -1:  # more than 64 bits, possible only in plain Python
        raise ValueError
    rest: i64 = (value << 1) ^ sign
    while rest & ~0x7F:
        low: int = (rest & 0x7F) | 0x80
        byte: u8 = low  # converted to u8 by way of int: `append` is inlined for a u8, a call for an i64
        out.append(byte)
        rest = (rest >> 7) & 0x01FF_FFFF_FFFF_FFFF  # an i64 is signed: the sign must not be shifted in
    last: int = rest
    byte = last
    out.append(byte)


def write_string(out: BytesWriter, value: str) -> None:
    """Append a string: its UTF-8 bytes, as `write_bytes` does."""
    write_bytes(out, value.encode("utf-8"))


def write_bytes(out: BytesWriter, value: bytes) -> None:
    """Append bytes: their number, then the bytes."""
    write_long(out, len(value))
    out.write(value)


class _Node:
    """Writes values of one type."""

    def write(self, out: BytesWriter, value: object) -> None:
        """Append the value. Raises ValueError or OverflowError if it is not of the type."""
        raise NotImplementedError


class _Boolean(_Node):
    def write(self, out: BytesWriter, value: object) -> None:
        if value is True:
            out.append(1)
        elif value is False:
            out.append(0)
        else:
            raise ValueError


class _Long(_Node):
    def write(self, out: BytesWriter, value: object) -> None:
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        write_long(out, value)


class _Double(_Node):
    def write(self, out: BytesWriter, value: object) -> None:
        if isinstance(value, float):
            write_f64_le(out, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            write_f64_le(out, float(value))
        else:
            raise ValueError


class _String(_Node):
    def write(self, out: BytesWriter, value: object) -> None:
        if not isinstance(value, str):
            raise ValueError
        write_string(out, value)


class _Enum(_Node):
    def __init__(self, symbols: list[str]) -> None:
        long = _Long()
        self._written: Final = {symbol: _bytes(long, index) for index, symbol in enumerate(symbols)}

    def write(self, out: BytesWriter, value: object) -> None:
        if not isinstance(value, str):
            raise ValueError
        written = self._written.get(value)
        if written is None:
            raise ValueError
        out.write(written)


class _Nullable(_Node):
    """A union of null, first or last, and one other type."""

    def __init__(self, other: _Node, null_is_first: bool) -> None:
        self._other: Final = other
        self._index_of_null: Final[u8] = 0 if null_is_first else 2  # zigzag: 0, 1 → 0, 2
        self._index_of_other: Final[u8] = 2 if null_is_first else 0

    def write(self, out: BytesWriter, value: object) -> None:
        if value is None:
            out.append(self._index_of_null)
        else:
            out.append(self._index_of_other)
            self._other.write(out, value)


class _Array(_Node):
    """One block with all items, then the empty block that ends the array."""

    def __init__(self, items: _Node) -> None:
        self._items: Final = items

    def write(self, out: BytesWriter, value: object) -> None:
        if not isinstance(value, list):
            raise ValueError
        if value:
            write_long(out, len(value))
            items = self._items
            for item in value:
                items.write(out, item)
        out.append(0)


class _Map(_Node):
    """Blocks as in an array, with each item after its key, in the order of the dict."""

    def __init__(self, values: _Node) -> None:
        self._keys: Final = _String()
        self._values: Final = values

    def write(self, out: BytesWriter, value: object) -> None:
        if not isinstance(value, dict):
            raise ValueError
        if value:
            write_long(out, len(value))
            keys, values = self._keys, self._values
            for key, item in value.items():
                keys.write(out, key)
                values.write(out, item)
        out.append(0)


class _Field:
    def __init__(self, name: str, node: _Node, if_absent: bytes | None) -> None:
        self.name: Final = name
        self.node: Final = node
        self.if_absent: Final = if_absent
        """Bytes to write if the datum lacks the field; None if it is required."""


class _Record(_Node):
    def __init__(self, fields: list[_Field]) -> None:
        self._fields: Final = fields

    def write(self, out: BytesWriter, value: object) -> None:
        if not isinstance(value, dict):
            raise ValueError
        for field in self._fields:
            item = value.get(field.name, _ABSENT)
            if item is not _ABSENT:
                field.node.write(out, item)
            elif field.if_absent is not None:
                out.write(field.if_absent)
            else:
                raise ValueError


_PRIMITIVES: Final[dict[str, _Node]] = {
    "boolean": _Boolean(),
    "long": _Long(),
    "double": _Double(),
    "string": _String(),
}


def _node(schema: Any, named: dict[str, _Node]) -> _Node:
    """Return the encoder of a schema. Adds each complete named type to `named`."""
    if isinstance(schema, str):
        known = _PRIMITIVES.get(schema) or named.get(schema)
        if known is None:  # recursive types too: a recursive datum would crash compiled code
            raise UnknownSchema(f"the type {schema}, unknown or recursive")
        return known
    if isinstance(schema, list):
        if len(schema) != 2 or "null" not in schema:
            raise UnknownSchema("a union other than of a type and null")
        null_is_first = schema[0] == "null"
        return _Nullable(_node(schema[1 if null_is_first else 0], named), null_is_first)
    if "logicalType" in schema:
        raise UnknownSchema(f"the logical type {schema['logicalType']}")
    kind = schema["type"]
    if kind == "array":
        return _Array(_node(schema["items"], named))
    if kind == "map":
        return _Map(_node(schema["values"], named))
    if kind not in ("record", "enum"):
        return _node(kind, named)
    node: _Node = (
        _Enum(schema["symbols"])
        if kind == "enum"
        else _Record([_field(field, named) for field in schema["fields"]])
    )
    named[schema["name"]] = node
    return node


def _field(field: Any, named: dict[str, _Node]) -> _Field:
    node = _node(field["type"], named)
    if_absent: bytes | None = None
    if "default" in field or "null" in field["type"]:  # fastavro's rule: null needs no default
        try:
            if_absent = _bytes(node, field.get("default"))
        except (ValueError, OverflowError):
            if_absent = None  # such as a default that is no symbol of the enum
    return _Field(intern(field["name"]), node, if_absent)  # like names in code: found by identity


def _bytes(node: _Node, value: object) -> bytes:
    out = BytesWriter()
    node.write(out, value)
    return out.getvalue()

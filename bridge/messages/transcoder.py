"""Writes a parsed JSON document as Avro in one walk, and checks each value while it is written.

The walk follows a tree of types, each of which knows the JSON and the Avro form of its values.
`bridge.messages.transcoder_plan` makes the tree. The output equals that of `bridge.avro.encoder`, byte for
byte, and so do the errors: they name no place. Faster than pydantic only when compiled.
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, write_f64_le

from bridge.avro.encoder import write_long, write_string
from bridge.messages.scalars import DateTimes

if TYPE_CHECKING:
    from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

_ABSENT: Final = object()
_DATE_TIMES: Final = DateTimes(ValueError)


class Transcoder:
    """Writes records of one type, each after the same header."""

    def __init__(self, root: Type, header: bytes) -> None:
        self._root: Final = root
        self._header: Final = header

    def transcode(self, document: object, strings: i64) -> bytes:
        """Return header and record of a document; `strings` is the number of strings in its text, with keys.

        Raises ValueError or OverflowError for a document that is not exactly of the type, or whose text has
        more strings than were written. That is so for an unknown field, and for a key that occurs twice:
        the parser has dropped a value that nothing has checked.
        """
        out = BytesWriter()
        out.write(self._header)
        if self._root.write(out, document) != strings:
            raise ValueError
        return out.getvalue()


class Type:
    """A type of values, in JSON and in Avro."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append the value and return the number of strings in it, with keys.

        Raises ValueError or OverflowError if it is not of the type.
        """
        raise NotImplementedError


class Boolean(Type):
    """`true` or `false`."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a byte."""
        if value is True:
            out.append(1)
        elif value is False:
            out.append(0)
        else:
            raise ValueError
        return 0


class Integer(Type):
    """An integer from `least` to `most`, both of 64 bits at most."""

    def __init__(self, least: int, most: int) -> None:
        self._least: Final[i64] = least
        self._most: Final[i64] = most

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a long."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        number: i64 = value
        if number < self._least or number > self._most:
            raise ValueError
        write_long(out, number)
        return 0


class Double(Type):
    """A finite number. An integer becomes the double nearest to it."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a double."""
        if isinstance(value, float):
            if not isfinite(value):
                raise ValueError
            write_f64_le(out, value)
        elif isinstance(value, int) and not isinstance(value, bool):
            write_f64_le(out, float(value))
        else:
            raise ValueError
        return 0


class String(Type):
    """A string of `least` to `most` characters."""

    def __init__(self, least: int, most: int) -> None:
        self._least: Final[i64] = least
        self._most: Final[i64] = most

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a string."""
        if not isinstance(value, str):
            raise ValueError
        size: i64 = len(value)
        if size < self._least or size > self._most:
            raise ValueError
        write_string(out, value)
        return 1


class DateTime(Type):
    """A date-time, microseconds since 1970-01-01T00:00:00 UTC in Avro."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a long."""
        write_long(out, _DATE_TIMES.parse(value))
        return 1


class Enum(Type):
    """A number in JSON; `places` maps it to the index of its symbol in the Avro schema."""

    def __init__(self, places: dict[int, int]) -> None:
        self._written: Final = {number: _long(place) for number, place in places.items()}

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append the index of the symbol."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        written = self._written.get(value)
        if written is None:
            raise ValueError
        out.write(written)
        return 0


class StringMap(Type):
    """An object of strings; sorted by key in Avro."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a map of one block."""
        if not isinstance(value, dict):
            raise ValueError
        size: i64 = len(value)
        if size > 0:
            write_long(out, size)
            for key in sorted(value) if size > 1 else value:
                item = value[key]
                if not isinstance(key, str) or not isinstance(item, str):
                    raise ValueError
                write_string(out, key)
                write_string(out, item)
        out.append(0)
        return 2 * size


class Nullable(Type):
    """Null or another type; in Avro a union in this order."""

    def __init__(self, other: Type) -> None:
        self._other: Final = other

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append the index of the branch and its value."""
        if value is None:
            out.append(0)
            return 0
        out.append(2)
        return self._other.write(out, value)


class Array(Type):
    """Items of one type."""

    def __init__(self, items: Type) -> None:
        self._items: Final = items

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append an array of one block."""
        if not isinstance(value, list):
            raise ValueError
        strings: i64 = 0
        if value:
            write_long(out, len(value))
            for item in value:
                strings += self._items.write(out, item)
        out.append(0)
        return strings


class Field:
    """A field of a record; `if_missing` is written for a missing one, None if it is required."""

    def __init__(self, name: str, type_: Type, if_missing: bytes | None) -> None:
        self.name: Final = name
        self.type: Final = type_
        self.if_missing: Final = if_missing


class Record(Type):
    """An object of these fields. The key of any other field is not counted, so its string is one too many."""

    def __init__(self, fields: list[Field]) -> None:
        self._fields: Final = fields

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append the fields in the order of the schema."""
        if not isinstance(value, dict):
            raise ValueError
        strings: i64 = 0
        known: i64 = 0
        for field in self._fields:
            item = value.get(field.name, _ABSENT)
            if item is not _ABSENT:
                known += 1
                strings += field.type.write(out, item)
            elif field.if_missing is not None:
                out.write(field.if_missing)
            else:
                raise ValueError
        return strings + known


def _long(value: i64) -> bytes:
    out = BytesWriter()
    write_long(out, value)
    return out.getvalue()

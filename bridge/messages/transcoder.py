"""A JSON document → Avro bytes in one walk, each value checked as it is written.

The tree of types says of each place both what JSON may have there and what Avro has:
`bridge.messages.transcoder_plan` makes it. A document
that does not fit is an error that says nothing, as in `bridge.avro.encoder`, whose
output this is, byte for byte. Compiled like that, and only worth its while then.
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
    """Writes records of one type, each after a header that is the same for all."""

    def __init__(self, root: Type, header: bytes) -> None:
        self._root: Final = root
        self._header: Final = header

    def transcode(self, document: object, strings: i64) -> bytes:
        """Header and record of a document in whose text are so many strings, keys included.

        Raises ValueError or OverflowError for what is not exactly of the types, and where there are more
        strings than what was written accounts for. So it is with a field that is not of the types, and with
        a key that came twice: nobody has looked at the value that the parser has dropped.
        """
        out = BytesWriter()
        out.write(self._header)
        if self._root.write(out, document) != strings:
            raise ValueError
        return out.getvalue()


class Type:
    """What JSON and Avro have at one place."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Appends the value; returns how many strings there are in it, keys included.

        Raises ValueError or OverflowError when it is not of the type.
        """
        raise NotImplementedError


class Boolean(Type):
    """True or false."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Appends a byte."""
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
        """Appends a long."""
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
        """Appends a double."""
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
        """Appends a string."""
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
        """Appends a long."""
        write_long(out, _DATE_TIMES.parse(value))
        return 1


class Enum(Type):
    """A number in JSON; `places` has its symbol's place in the Avro schema."""

    def __init__(self, places: dict[int, int]) -> None:
        self._written: Final = {number: _long(place) for number, place in places.items()}

    def write(self, out: BytesWriter, value: object) -> i64:
        """Appends the place of a symbol."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        written = self._written.get(value)
        if written is None:
            raise ValueError
        out.write(written)
        return 0


class StringMap(Type):
    """An object of strings, in Avro in order of its keys."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Appends a map of one block."""
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
    """Null, or another type: in Avro a union of these in this order."""

    def __init__(self, other: Type) -> None:
        self._other: Final = other

    def write(self, out: BytesWriter, value: object) -> i64:
        """Appends the number of a branch, and what is in it."""
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
        """Appends an array of one block."""
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
    """A field of a record; `if_missing` is what is written then, None where it must be there."""

    def __init__(self, name: str, type_: Type, if_missing: bytes | None) -> None:
        self.name: Final = name
        self.type: Final = type_
        self.if_missing: Final = if_missing


class Record(Type):
    """An object of these fields. Any other is not counted, so that its key is a string too many."""

    def __init__(self, fields: list[Field]) -> None:
        self._fields: Final = fields

    def write(self, out: BytesWriter, value: object) -> i64:
        """Appends the fields in the order of the schema."""
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

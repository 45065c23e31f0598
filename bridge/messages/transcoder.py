"""Writes a parsed JSON document as Avro in one walk, and checks each value while it is written.

The walk follows a tree of types, each of which knows the JSON and the Avro form of its values.
`bridge.messages.transcoder_plan` makes the tree. The output equals that of `bridge.avro.encoder`, byte for
byte, and so do the errors: they name no place. Faster than pydantic only when compiled.

A parser keeps the last value of a key that occurs twice, so nothing would check the one before. Hence the
walk counts the strings that it visits, with keys: there must be as many as in the text.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_f64_le
from librt.vecs import vec
from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

from bridge.avro.encoder import write_bytes, write_long, write_string
from bridge.messages.extras import Extras
from bridge.messages.scalars import DateTimes

REQUIRED: Final = object()
"""In place of the value of a missing field: there is none."""
_ABSENT: Final = object()
_DEEPEST: Final = 100
"""Nested lists and objects in an unknown field. pydantic's parser refuses a document from about 200 on."""
_DATE_TIMES: Final = DateTimes(ValueError)

Bet = tuple[bytes, int, int, bytes]
"""A settled bet: the key (its betId), its version, its settlementTime (microseconds since
1970-01-01T00:00:00 UTC), and the record in the registry's wire format. A plain tuple is the fastest."""
Conversion = tuple[str | None, Bet | None, tuple[str, ...]]
"""A converted message: its ping id, its bet, and the extras of `bridge.messages.parser.Message`."""


class Transcoder:
    """Converts parsed messages. Each record follows the same header.

    The types of `key`, `version` and `settled_at` are those of three fields of `bet`, which keep what they
    have last written.
    """

    def __init__(
        self, bet: Object, key: Key, version: Integer, settled_at: DateTime, extras: Extras, header: bytes
    ) -> None:
        self._bet: Final = bet
        self._key: Final = key
        self._version: Final = version
        self._settled_at: Final = settled_at
        self._unknown: Final = Unknown({"pingId", "data"}, "", extras)
        self._extras: Final = extras
        self._header: Final = header

    def transcode(self, message: dict[str, object], strings: i64) -> Conversion:
        """Convert a message (interface, "Events") whose text has `strings` strings, with keys.

        Raises ValueError or OverflowError for a message that is not exactly of the type, or that has nothing
        but unknown fields.
        """
        self._extras.clear()
        ping_id, data = message.get("pingId"), message.get("data")
        found: i64 = 0
        if "pingId" in message:
            found += 1
        if "data" in message:
            found += 1
        unknown: i64 = len(message) - found
        bet: Bet | None = None
        if data is not None:
            out = BytesWriter()
            out.write(self._header)
            found += self._bet.write(out, data)
            bet = self._key.last, self._version.last, self._settled_at.last, out.getvalue()
        if unknown > 0:
            found += self._unknown.note(message)
        named: str | None = None
        if isinstance(ping_id, str):
            found += 1
            named = ping_id
        elif ping_id is not None:
            raise ValueError
        if found != strings or (unknown > 0 and named is None and bet is None):
            raise ValueError
        return named, bet, self._extras.paths()


class Unknown:
    """Fields other than the `known` ones, of the objects at a path such as `data.selections[].`"""

    def __init__(self, known: set[str], path: str, extras: Extras) -> None:
        self._known: Final = known
        self._path: Final = path
        self._extras: Final = extras

    def note(self, value: dict[str, object]) -> i64:
        """Note the path of each unknown field. Return the number of strings in these fields, with keys.

        Raises ValueError for a value that is nested deeply.
        """
        strings: i64 = 0
        for name, item in value.items():
            if name not in self._known:
                strings += 1 + _strings(item, 0)
                self._extras.note(self._path, name)
        return strings


def _strings(value: object, depth: i64) -> i64:
    """Count the strings in a value, with keys."""
    if isinstance(value, str):
        return 1
    strings: i64 = 0
    if depth == _DEEPEST:
        raise ValueError
    if isinstance(value, dict):
        strings = len(value)
        for item in value.values():
            strings += _strings(item, depth + 1)
    elif isinstance(value, list):
        for item in value:
            strings += _strings(item, depth + 1)
    return strings


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
        self.last: i64 = 0
        """The number last written."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a long."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        number: i64 = value
        if number < self._least or number > self._most:
            raise ValueError
        write_long(out, number)
        self.last = number
        return 0


class Double(Type):
    """A finite number. An integer becomes the double nearest to it."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a double."""
        if isinstance(value, float):
            if value - value != 0.0:  # infinite, or not a number
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
        write_bytes(out, self._utf8(value))
        return 1

    def _utf8(self, value: object) -> bytes:
        if not isinstance(value, str):
            raise ValueError
        size: i64 = len(value)
        if size < self._least or size > self._most:
            raise ValueError
        return value.encode("utf-8")


class Key(String):
    """A string that is used apart from its record, as its key."""

    def __init__(self, least: int, most: int) -> None:
        super().__init__(least, most)
        self.last = b""
        """The UTF-8 bytes of the string last written."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a string."""
        self.last = self._utf8(value)
        write_bytes(out, self.last)
        return 1


class DateTime(Type):
    """A date-time, microseconds since 1970-01-01T00:00:00 UTC in Avro."""

    def __init__(self) -> None:
        self.last: i64 = 0
        """The microseconds last written."""

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append a long."""
        self.last = _DATE_TIMES.parse(value)
        write_long(out, self.last)
        return 1


class Enum(Type):
    """A number in JSON; `places` maps it to the index of its symbol in the Avro schema."""

    def __init__(self, places: dict[int, int]) -> None:
        self._places: Final = vec[i64]([places.get(number, -1) for number in range(max(places) + 1)])

    def write(self, out: BytesWriter, value: object) -> i64:
        """Append the index of the symbol."""
        if not isinstance(value, int) or isinstance(value, bool):
            raise ValueError
        number: i64 = value
        if number < 0 or number >= len(self._places):
            raise ValueError
        place = self._places[number]
        if place < 0:
            raise ValueError
        write_long(out, place)
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
    """A field of a record. `zero` is its JSON value when it is missing, `REQUIRED` if it must not be."""

    def __init__(self, name: str, type_: Type, zero: object) -> None:
        self.name: Final = name
        self.type: Final = type_
        self.zero: Final = zero


class Object(Type):
    """An object of these fields, and of others, which are noted as extras."""

    def __init__(self, fields: list[Field], path: str, extras: Extras) -> None:
        self._fields: Final = fields
        self._unknown: Final = Unknown({field.name for field in fields}, path, extras)

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
            elif field.zero is not REQUIRED:
                field.type.write(out, field.zero)
            else:
                raise ValueError
        size: i64 = len(value)
        if known < size:
            strings += self._unknown.note(value)
        return strings + known

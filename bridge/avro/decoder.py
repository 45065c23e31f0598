"""Decodes Avro records, with a tree of small decoders made once from the schemas of writer and reader.

Each node of the tree knows what was written and what is wanted, so no schema is consulted while a record is
read. A field that the reader lacks is passed over: a reader's schema with a few fields reads just these. A
value becomes an object, or goes into Arrow columns without one. The module is compiled with mypyc, as
`bridge.avro.encoder` is, and knows the same types on the reader's side. A writer may have any but recursive
ones.
"""

from __future__ import annotations

from sys import intern
from typing import Any, Final

from librt.strings import read_f32_le, read_f64_le, read_i64_le
from mypy_extensions import i64

from bridge.avro.columns import Booleans, Column, Doubles, Lists, Longs, Maps, Strings, Structs

_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_NUMBERS: Final = ("int", "long")
_TEXTS: Final = ("string", "bytes")
_NAMED: Final = ("record", "error", "enum", "fixed")
_TOO_EARLY: Final = "it ends too early"


class Decoder:
    """Decodes records of one schema into those of another, both as parsed by `fastavro.parse_schema`.

    Raises ValueError for a recursive schema, and for types that the reader's side does not know. With
    `strict`, text that is passed over must be UTF-8, too.
    """

    def __init__(self, writer: Any, reader: Any, *, strict: bool = False) -> None:
        self._root: Final = _Resolver(strict).resolve(writer, reader)

    def read(self, data: bytes, at: i64) -> Any:
        """Return the value that begins at `at`.

        Raises ValueError, with the reason, unless it fits the schemas and ends with the data.
        """
        source = _Input(data, at)
        try:
            found = self._root.read(source)
        except IndexError:
            raise ValueError(_TOO_EARLY) from None
        source.end()
        return found

    def append(self, data: bytes, at: i64, column: Column) -> None:
        """Append the same to a column for values of the reader's schema, which must be the writer's.

        Raises as `read`; the column may have a part of a row then, until it is `cut`.
        """
        source = _Input(data, at)
        try:
            self._root.append(source, column)
        except IndexError:
            raise ValueError(_TOO_EARLY) from None
        source.end()


class _Input:
    """Bytes, and how far they are read."""

    def __init__(self, data: bytes, at: i64) -> None:
        self.data: Final = data
        self.size: Final[i64] = len(data)
        self.at: i64 = at

    def end(self) -> None:
        """Raise ValueError unless all is read."""
        if self.at != self.size:
            raise ValueError(_TOO_EARLY if self.at > self.size else f"{self.size - self.at} bytes too many")

    def long(self) -> i64:
        """Read a number. Raises IndexError where the data end before, ValueError for more than 64 bits."""
        data = self.data
        at = self.at
        byte: i64 = data[at]
        at += 1
        number: i64 = byte & 127
        shift: i64 = 7
        while byte > 127:
            byte = data[at]
            at += 1
            if shift == 63 and byte > 1:
                raise ValueError("a number has more than 64 bits")
            number |= (byte & 127) << shift
            shift += 7
        self.at = at
        half = number >> 1
        if half < 0:  # an i64 is signed: the sign must not be shifted in
            half &= 0x7FFF_FFFF_FFFF_FFFF
        return half ^ -(number & 1)

    def index(self, count: i64, what: str) -> i64:
        """Read the index of one of so many. Raises as `long`, and ValueError for any other number."""
        index = self.long()
        if not 0 <= index < count:
            raise ValueError(f"{what} {index}")
        return index

    def length(self) -> i64:
        """Read the length of what follows. Raises as `long`, and ValueError unless as much follows."""
        length = self.long()
        if not 0 <= length <= self.size - self.at:
            raise ValueError(f"a length below zero: {length}" if length < 0 else _TOO_EARLY)
        return length

    def block(self) -> i64:
        """Read the number of items in a block of an array or a map, 0 for its end. Raises as `long`."""
        count = self.long()
        if count < 0:
            self.long()  # the size of the block in bytes
            count = -count
            if count < 0:
                raise ValueError(_TOO_EARLY)
        return count

    def items(self) -> i64:
        """Read the same of items that are to be made: a lie must not cost memory. Raises as `block`."""
        count = self.block()
        if count > self.size - self.at:
            raise ValueError(f"{count} items in fewer bytes")
        return count

    def skip(self, length: i64) -> i64:
        """Pass over so many bytes; return where they begin. Raises ValueError unless there are as many."""
        at = self.at
        if not 0 <= length <= self.size - at:
            raise ValueError(_TOO_EARLY)
        self.at = at + length
        return at


class _Reader:
    """Reads values of one type. All methods raise ValueError or IndexError for bytes that do not fit."""

    def skip(self, source: _Input) -> None:
        """Pass over the value."""
        self.read(source)

    def read(self, source: _Input) -> object:
        """Return the value."""
        raise NotImplementedError

    def append(self, source: _Input, column: Column) -> None:
        """Append the value to a column of the reader's type."""
        raise NotImplementedError


class _Passed(_Reader):
    """Values that are passed over, by a program (`_PassOver`)."""

    def __init__(self, program: bytes) -> None:
        self._program: Final = program

    def skip(self, source: _Input) -> None:
        source.at = _pass_over(self._program, 0, source.data, source.at)


_END, _FIXED, _LONG, _BYTES, _TEXT, _SYMBOL, _BRANCH, _JUMP, _ITEMS = (bytes([code]) for code in range(9))
"""The instructions of a program that passes over values; numbers after them have two bytes.

FIXED n: n bytes. LONG: a number. BYTES: a length and as many bytes. TEXT: the same in UTF-8. SYMBOL n: the
index of one of n. BRANCH n and n numbers: the index of a branch, and how far after them each begins. JUMP n:
go on n bytes further. ITEMS n: blocks of items, each passed over by the n bytes that follow.
"""


def _number(value: int) -> bytes:
    if value > 0xFFFF:
        raise ValueError("a schema is too large")
    return value.to_bytes(2, "little")


def _joined(programs: list[bytes]) -> bytes:
    """Return what passes over several values, adjacent ones of fixed width at once."""
    joined = list[bytes]()
    for program in programs:
        last = joined[-1] if joined else b""
        if program[:1] == last[:1] == _FIXED and len(program) == len(last) == 3:
            joined[-1] = _FIXED + _number(_width(last) + _width(program))
        else:
            joined.append(program)
    return b"".join(joined)


def _width(fixed: bytes) -> int:
    return int.from_bytes(fixed[1:], "little")


def _program_of_union(branches: list[bytes]) -> bytes:
    table, area, left = b"", b"", sum([len(branch) + 3 for branch in branches])
    for branch in branches:
        table += _number(len(area))
        left -= len(branch) + 3
        area += branch + _JUMP + _number(left)
    return _BRANCH + _number(len(branches)) + table + area


def _program_of_blocks(item: bytes) -> bytes:
    return _ITEMS + _number(len(item) + 1) + item + _END


def _pass_over(program: bytes, pc: i64, data: bytes, at: i64) -> i64:  # noqa: C901  # one loop: calls cost most
    """Pass over the values of a program, from `pc` to its end; return where they end.

    Raises IndexError or ValueError for bytes that do not fit.
    """
    size: i64 = len(data)
    while True:
        code: i64 = program[pc]
        if code == 2:  # LONG
            last = at + 9
            while data[at] > 127 and at < last:
                at += 1
            if at == last and data[at] > 1:
                raise ValueError("a number has more than 64 bits")
            at += 1
            pc += 1
            continue
        if code == 0:
            return at
        argument: i64 = 0
        if code != 3 and code != 4:
            argument = i64(program[pc + 1]) | (i64(program[pc + 2]) << 8)
        if code == 1:  # FIXED
            at += argument
            if at > size:
                raise ValueError(_TOO_EARLY)
            pc += 3
        elif code == 7:  # JUMP
            pc += 3 + argument
        elif code == 8:  # ITEMS
            at = _pass_over_items(program, pc + 3, data, at, argument)
            pc += 3 + argument
        else:
            number: i64 = data[at]
            at += 1
            if number > 127:
                source = _Input(data, at - 1)
                number = source.long()
                at = source.at
            else:
                number = (number >> 1) ^ -(number & 1)
            if code == 6:  # BRANCH
                if not 0 <= number < argument:
                    raise ValueError(f"a union has no branch {number}")
                where = pc + 3 + 2 * number
                pc += 3 + 2 * argument + (i64(program[where]) | (i64(program[where + 1]) << 8))
            elif code == 5:  # SYMBOL
                if not 0 <= number < argument:
                    raise ValueError(f"an enum has no symbol {number}")
                pc += 3
            else:
                if not 0 <= number <= size - at:
                    raise ValueError(f"a length below zero: {number}" if number < 0 else _TOO_EARLY)
                if code == 4 and not _is_ascii(data, at, at + number):  # TEXT
                    data[at : at + number].decode("utf-8")
                at += number
                pc += 1


def _is_ascii(data: bytes, at: i64, end: i64) -> bool:
    """Return whether text is ASCII, as nearly all is, without making an object of it."""
    ones: i64 = 0x0101_0101_0101_0101
    highest = ones << 7  # of each of eight bytes; larger constants are objects
    while at + 8 <= end:
        if read_i64_le(data, at) & highest:
            return False
        at += 8
    while at < end:
        if data[at] > 127:
            return False
        at += 1
    return True


def _pass_over_items(program: bytes, pc: i64, data: bytes, at: i64, length: i64) -> i64:
    source, size = _Input(data, at), len(data)
    while (count := source.block()) != 0:
        if length == 1 or (program[pc] == 1 and length == 4):  # without bytes, or of a fixed number
            width: i64 = 0 if length == 1 else i64(program[pc + 1]) | (i64(program[pc + 2]) << 8)
            if width:  # items without bytes must not be counted one by one
                source.skip(width * count if count <= size else -1)
            continue
        while count > 0:
            source.at = _pass_over(program, pc, data, source.at)
            count -= 1
    return source.at


class _NullReader(_Reader):
    def read(self, source: _Input) -> object:
        return None

    def append(self, source: _Input, column: Column) -> None:
        column.add_null()


class _BooleanReader(_Reader):
    def read(self, source: _Input) -> object:
        return source.data[source.skip(1)] != 0

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Booleans)
        column.add(source.data[source.skip(1)] != 0)


class _LongReader(_Reader):
    def read(self, source: _Input) -> object:
        return source.long()

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Longs)
        column.add(source.long())


class _DoubleReader(_Reader):
    """A double, or a number that was written as a `kind` of less."""

    def __init__(self, kind: str) -> None:
        self._is_double: Final = kind == "double"
        self._is_float: Final = kind == "float"

    def read(self, source: _Input) -> object:
        return self._value(source)

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Doubles)
        column.add(self._value(source))

    def _value(self, source: _Input) -> float:
        if self._is_double:
            return read_f64_le(source.data, source.skip(8))
        if self._is_float:
            return read_f32_le(source.data, source.skip(4))
        return float(source.long())


class _StringReader(_Reader):
    def read(self, source: _Input) -> object:
        return self._text(source)

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Strings)
        length = source.length()
        at = source.skip(length)
        text = source.data[at : at + length]
        if not _is_ascii(source.data, at, at + length):
            text.decode("utf-8")
        column.add(text)

    def _text(self, source: _Input) -> str:
        length = source.length()
        at = source.skip(length)
        return source.data[at : at + length].decode("utf-8")


class _EnumReader(_Reader):
    """`found` has the reader's symbol for each of the writer's, None where it has none."""

    def __init__(self, written: list[str], found: list[str | None]) -> None:
        self._written: Final = written
        self._found: Final = found

    def read(self, source: _Input) -> object:
        return self._found[self._index(source)]

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Longs)
        column.add(self._index(source))

    def _index(self, source: _Input) -> i64:
        index = source.index(len(self._written), "an enum has no symbol")
        if self._found[index] is None:
            raise ValueError(f"the symbol {self._written[index]} is not in the reader's schema")
        return index


class _UnionReader(_Reader):
    """The index of a branch, then its value."""

    def __init__(self, branches: list[_Reader]) -> None:
        if not branches:
            raise ValueError("a union has no branches")
        self._branches: Final = branches
        # Nearly all unions have two: an attribute of this type need not be checked, what a list holds must.
        self._first: Final = branches[0]
        self._second: Final = branches[1 if len(branches) > 1 else 0]

    def read(self, source: _Input) -> object:
        return self._branch(source).read(source)

    def append(self, source: _Input, column: Column) -> None:
        self._branch(source).append(source, column)

    def _branch(self, source: _Input) -> _Reader:
        index = source.index(len(self._branches), "a union has no branch")
        if index == 0:
            return self._first
        return self._second if index == 1 else self._branches[index]


class _ArrayReader(_Reader):
    def __init__(self, item: _Reader) -> None:
        self._item: Final = item

    def read(self, source: _Input) -> object:
        item, found = self._item, list[object]()
        while (count := source.items()) != 0:
            while count > 0:
                found.append(item.read(source))
                count -= 1
        return found

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Lists)
        item, items = self._item, column.items
        while (count := source.items()) != 0:
            while count > 0:
                item.append(source, items)
                count -= 1
        column.close()


class _MapReader(_Reader):
    """Of a key that is there twice, the last value counts, in the place of the first."""

    def __init__(self, item: _Reader) -> None:
        self._item: Final = item
        self._keys: Final = _StringReader()

    def read(self, source: _Input) -> object:
        found: dict[str, object] = {}
        item, keys = self._item, self._keys
        while (count := source.items()) != 0:
            while count > 0:
                key = keys._text(source)
                found[key] = item.read(source)
                count -= 1
        return found

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Maps)
        item, items = self._item, column.items
        while (count := source.items()) != 0:
            while count > 0:
                self._keys.append(source, column.keys)
                item.append(source, items)
                count -= 1
        column.close()


class _FieldReader:
    """A field of the writer, or several in a row that are passed over; `name` is None for these."""

    def __init__(self, name: str | None, node: _Reader) -> None:
        self.name: Final = name if name is None else intern(name)
        self.node: Final = node


class _RecordReader(_Reader):
    """A record; `defaults` are the reader's fields that the writer lacks, with their values."""

    def __init__(self, fields: list[_FieldReader], defaults: dict[str, object]) -> None:
        self._fields: Final = fields
        self._defaults: Final = defaults

    def read(self, source: _Input) -> object:
        found: dict[str, object] = {}
        for field in self._fields:
            if field.name is None:
                field.node.skip(source)
            else:
                found[field.name] = field.node.read(source)
        if self._defaults:
            found.update(self._defaults)
        return found

    def append(self, source: _Input, column: Column) -> None:
        assert isinstance(column, Structs)
        part = column.first
        for field in self._fields:
            assert part is not None
            field.node.append(source, part)
            part = part.sibling
        column.close()


class _Mismatch(_Reader):
    """A value that the reader's schema has no place for."""

    def __init__(self, why: str) -> None:
        self._why: Final = why

    def read(self, source: _Input) -> object:
        raise ValueError(self._why)


_PLAIN: Final[dict[str, _Reader]] = {
    "null": _NullReader(),
    "boolean": _BooleanReader(),
    "long": _LongReader(),
    "string": _StringReader(),
}


class _Resolver:
    """Makes the nodes of a pair of schemas."""

    def __init__(self, strict: bool) -> None:
        self._strict: Final = strict
        self._written: Final[dict[str, Any]] = {}
        self._wanted: Final[dict[str, Any]] = {}
        """Named types by their full names."""
        self._open: Final[list[str]] = []
        """The writer's named types within which the current one is."""

    def resolve(self, writer: Any, reader: Any) -> _Reader:
        """Return what reads values of one schema as those of the other."""
        _collect(writer, self._written)
        _collect(reader, self._wanted)
        return self._read(writer, reader)

    def _read(self, writer: Any, reader: Any) -> _Reader:
        writer, reader = _definition(writer, self._written), _definition(reader, self._wanted)
        if isinstance(writer, list):
            return _UnionReader([self._read(branch, reader) for branch in writer])
        if isinstance(reader, list):
            for branch in reader:
                if self._fits(writer, branch):
                    return self._read(writer, branch)
            return _Mismatch(f"{_kind(writer)} is not in the reader's union")
        if not self._fits(writer, reader):
            return _Mismatch(f"{_kind(writer)} cannot be read as {_kind(reader)}")
        return self._read_as(_kind(reader), _kind(writer), writer, reader)

    def _read_as(self, wanted: str, kind: str, writer: Any, reader: Any) -> _Reader:
        if wanted == "double":
            return _DoubleReader(kind)
        if wanted in _PLAIN:
            return _PLAIN[wanted]
        if wanted == "array":
            return _ArrayReader(self._read(writer["items"], reader["items"]))
        if wanted == "map":
            return _MapReader(self._read(writer["values"], reader["values"]))
        if wanted == "enum":
            return self._enum(writer, reader)
        if wanted == "record":
            return self._record(writer, reader)
        raise ValueError(f"the type {wanted} is not supported")

    def _fits(self, writer: Any, reader: Any) -> bool:
        writer, reader = _definition(writer, self._written), _definition(reader, self._wanted)
        if isinstance(writer, list) or isinstance(reader, list):
            return True
        kind, wanted = _kind(writer), _kind(reader)
        if kind in _NAMED and kind == wanted:
            return bool(writer["name"].rpartition(".")[2] == reader["name"].rpartition(".")[2])
        if kind in _NUMBERS:
            return wanted in ("long", "double") or kind == wanted
        if kind in _TEXTS:
            return wanted == "string"
        return kind == wanted or (kind == "float" and wanted == "double")

    def _enum(self, writer: Any, reader: Any) -> _Reader:
        known: list[str] = reader["symbols"]
        found: list[str | None] = [
            symbol if symbol in known else reader.get("default") for symbol in writer["symbols"]
        ]
        return _EnumReader(writer["symbols"], found)

    def _record(self, writer: Any, reader: Any) -> _Reader:
        self._enter(writer["name"])
        wanted = {field["name"]: field for field in reader["fields"]}
        fields, passed = list[_FieldReader](), list[bytes]()
        for field in writer["fields"]:
            name: str = field["name"]
            if name not in wanted:
                passed.append(self._skip(field["type"]))
                continue
            if passed:
                fields.append(_FieldReader(None, _Passed(_joined(passed) + _END)))
                passed = []
            fields.append(_FieldReader(name, self._read(field["type"], wanted.pop(name)["type"])))
        if passed:
            fields.append(_FieldReader(None, _Passed(_joined(passed) + _END)))
        self._open.pop()
        for name, field in wanted.items():
            if "default" not in field:
                return _Mismatch(f"{reader['name']} was written without {name}")
        return _RecordReader(fields, {name: field["default"] for name, field in wanted.items()})

    def _skip(self, writer: Any) -> bytes:
        """Return the program that passes over a value, without its end."""
        writer = _definition(writer, self._written)
        if isinstance(writer, list):
            return _program_of_union([self._skip(branch) for branch in writer])
        kind = _kind(writer)
        if kind in _WIDTHS:
            return _FIXED + _number(_WIDTHS[kind])
        if kind in _NUMBERS:
            return _LONG
        if kind in _TEXTS:
            return _TEXT if self._strict and kind == "string" else _BYTES
        if kind == "fixed":
            return _FIXED + _number(writer["size"])
        if kind == "enum":
            return _SYMBOL + _number(len(writer["symbols"]))
        if kind == "array":
            return _program_of_blocks(self._skip(writer["items"]))
        if kind == "map":
            return _program_of_blocks((_TEXT if self._strict else _BYTES) + self._skip(writer["values"]))
        self._enter(writer["name"])
        found = _joined([self._skip(field["type"]) for field in writer["fields"]])
        self._open.pop()
        return found

    def _enter(self, name: str) -> None:
        if name in self._open:
            raise ValueError(f"{name} is recursive")
        self._open.append(name)


def _collect(schema: Any, named: dict[str, Any]) -> None:
    """Add the named types of a schema."""
    if isinstance(schema, list):
        for branch in schema:
            _collect(branch, named)
    elif isinstance(schema, dict):
        kind = schema["type"]
        if kind in _NAMED:
            named[schema["name"]] = schema
        for field in schema.get("fields", []):
            _collect(field["type"], named)
        for part in ("items", "values"):
            if part in schema:
                _collect(schema[part], named)
        if not isinstance(kind, str):
            _collect(kind, named)


def _definition(schema: Any, named: dict[str, Any]) -> Any:
    """Return what a schema stands for: a name for its type, a type with attributes alone for itself."""
    while isinstance(schema, dict) and not isinstance(schema["type"], str):
        schema = schema["type"]
    kind = schema["type"] if isinstance(schema, dict) else schema
    return named[kind] if isinstance(kind, str) and kind in named else schema


def _kind(schema: Any) -> str:
    """Return the name of a type, with or without attributes."""
    found: str = schema["type"] if isinstance(schema, dict) else schema
    return "record" if found == "error" else found

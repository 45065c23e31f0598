"""Columns in Arrow's layout that a decoder fills, a row at a time, without an object a value.

`bridge.avro.arrow` makes Arrow arrays of them. Compiled with mypyc, as `bridge.avro.encoder` is.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from librt.strings import BytesWriter, read_i32_le, write_f64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

_MOST: Final = 2**31 - 1


class Column:
    """Values of one type. `valid` has a byte a value, 0 for a null, if any can be one."""

    def __init__(self, *, nullable: bool = False) -> None:
        self.nullable: Final = nullable
        self.sibling: Column | None = None
        """The next field of the same record: a list would have to check what it holds at each access."""
        self.valid: Final = BytesWriter()
        self.rows: i64 = 0

    def add_null(self) -> None:
        """Add a null. Raises ValueError where none can be."""
        if not self.nullable:
            raise ValueError("a null where none can be")
        self.leave_out()

    def leave_out(self) -> None:
        """Add what stands for nothing: of a field, within a record that is null."""
        if self.nullable:
            self.valid.append(0)
        self.rows += 1
        self._fill()

    def cut(self, rows: i64) -> None:
        """Drop what follows so many rows, a part of a row too."""
        if self.nullable:
            self.valid.truncate(rows)
        self.rows = rows
        self._cut()

    def _add(self) -> None:
        if self.nullable:
            self.valid.append(1)
        self.rows += 1

    def _fill(self) -> None:
        """Add what stands in the place of a null."""
        raise NotImplementedError

    def _cut(self) -> None:
        """Drop what follows `rows` values."""
        raise NotImplementedError


class _Values(Column):
    """What columns without parts share: `values`, one after the other."""

    def __init__(self, *, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.values: Final = BytesWriter()


class Booleans(_Values):
    """A byte a value."""

    def add(self, value: bool) -> None:
        """Add a value."""
        self._add()
        self.values.append(1 if value else 0)

    def _fill(self) -> None:
        self.values.append(0)

    def _cut(self) -> None:
        self.values.truncate(self.rows)


class Longs(_Values):
    """Integers of 64 bits: numbers, times in microseconds, or indices of symbols."""

    def add(self, value: i64) -> None:
        """Add a value."""
        self._add()
        write_i64_le(self.values, value)

    def _fill(self) -> None:
        write_i64_le(self.values, 0)

    def _cut(self) -> None:
        self.values.truncate(8 * self.rows)


class Doubles(_Values):
    """Floating-point numbers of 64 bits."""

    def add(self, value: float) -> None:
        """Add a value."""
        self._add()
        write_f64_le(self.values, value)

    def _fill(self) -> None:
        write_f64_le(self.values, 0.0)

    def _cut(self) -> None:
        self.values.truncate(8 * self.rows)


class Strings(_Values):
    """Texts in UTF-8, one after the other; `ends` has where each ends, 32 bits."""

    def __init__(self, *, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.ends: Final = BytesWriter()
        self._end: i32 = 0

    def add(self, value: bytes) -> None:
        """Add a value. Raises OverflowError where Arrow's offsets end, at 2 GiB."""
        if len(value) > _MOST - self._end:
            raise OverflowError("more than 2 GiB of text in a column")
        self._add()
        self.values.write(value)
        size: int = len(value)
        self._end += i32(size)
        write_i32_le(self.ends, self._end)

    def _fill(self) -> None:
        write_i32_le(self.ends, self._end)

    def _cut(self) -> None:
        end = _cut_ends(self.ends, self.rows)
        self.values.truncate(end)
        self._end = i32(end)


class _Repeated(Column):
    """What lists and maps share: `items`, one after the other; `ends` as for texts."""

    def __init__(self, items: Column, *, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.items: Final = items
        self.ends: Final = BytesWriter()

    def close(self) -> None:
        """Add a value of the items that were added since the last one."""
        self._add()
        self._fill()

    def _fill(self) -> None:
        size: int = self.items.rows
        write_i32_le(self.ends, i32(size))

    def _cut(self) -> None:
        self.items.cut(_cut_ends(self.ends, self.rows))


class Lists(_Repeated):
    """Lists of `items`."""


class Maps(_Repeated):
    """Maps from texts, `keys`, to `items`, in step."""

    def __init__(self, items: Column, *, nullable: bool = False) -> None:
        super().__init__(items, nullable=nullable)
        self.keys: Final = Strings()

    def _cut(self) -> None:
        super()._cut()
        self.keys.cut(self.items.rows)


class Structs(Column):
    """Records, by their fields in the order of the schema."""

    def __init__(self, fields: list[Column], *, nullable: bool = False) -> None:
        super().__init__(nullable=nullable)
        self.fields: Final = fields
        for field, sibling in pairwise(fields):
            field.sibling = sibling
        self.first: Final = fields[0] if fields else None

    def close(self) -> None:
        """Add a record of the values that were added to its fields."""
        self._add()

    def _fill(self) -> None:
        for field in self.fields:
            field.leave_out()

    def _cut(self) -> None:
        for field in self.fields:
            field.cut(self.rows)


def _cut_ends(ends: BytesWriter, rows: i64) -> i64:
    """Drop the ends that follow so many; return the last one left."""
    ends.truncate(4 * rows)
    return i64(read_i32_le(ends.getvalue(), 4 * rows - 4)) if rows else 0

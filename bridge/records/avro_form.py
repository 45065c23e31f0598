"""How the types of records and their Avro records become each other: one table of fields for both ways.

What no bridge writes is refused with its path. With an impossible number the limits would be computed
wrongly, or the next checkpoint could not be written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from math import isfinite
from typing import Any, Final, Generic, TypeVar

from bridge.clock import MICROS
from bridge.errors import SchemaError
from bridge.formatting import camel_case, is_time

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AvroField:
    """How a value is read at a path, and written. A null is None, whatever the form."""

    read: Callable[[Any, str], Any] = lambda value, _: value
    write: Callable[[Any], Any] = lambda value: value
    name: str = ""
    """The name in Avro, unless that is ours in camel case."""

    def called(self, name: str) -> AvroField:
        """Return the same for a field of this name in Avro."""
        return replace(self, name=name)


def _checked(possible: Callable[[Any], bool], unit: int = 1) -> AvroField:
    """Return the form of a number that is so many times as large in Avro."""

    def read(value: Any, path: str) -> Any:
        found = value if unit == 1 else value / unit
        if not possible(found):
            raise SchemaError(f"{path}: {value!r} is impossible")
        return found

    return AvroField(read, lambda value: value if unit == 1 else round(value * unit))


PLAIN: Final = AvroField()
"""The same on both sides."""
TIME: Final = _checked(is_time, MICROS)
"""Unix seconds on our side, microseconds in Avro."""
REVISION: Final = _checked(is_time)
"""Whole Unix seconds on both sides."""


def within(least: float, most: float) -> AvroField:
    """Return the form of a finite number within bounds."""
    return _checked(lambda found: isfinite(found) and least <= found <= most)


def symbol(of: type[Enum], **others: Enum) -> AvroField:
    """Return the form of an enum, whose values are its symbols; `others` are symbols that are only read."""
    return AvroField(lambda found, _: others.get(found) or of(found), lambda member: member.value)


class AvroForm(Generic[T]):
    """The fields of a type by their names there, in the order of its schema. `make` takes them by name."""

    def __init__(self, make: Callable[..., T], /, **fields: AvroField) -> None:
        self._make = make
        self._fields = [(ours, field.name or camel_case(ours), field) for ours, field in fields.items()]

    def to_avro(self, record: T) -> dict[str, Any]:
        """Return the datum of a record."""
        return {
            name: None if (value := getattr(record, ours)) is None else field.write(value)
            for ours, name, field in self._fields
        }

    def from_avro(self, datum: Mapping[str, Any], path: str, **others: Any) -> T:
        """Return the record of a datum. `others` are fields that are not in it.

        Raises SchemaError for a value that no bridge writes; its text begins with `path`, the field follows.
        """
        values = ((ours, datum[name], path + name, field) for ours, name, field in self._fields)
        found = {ours: None if it is None else field.read(it, at) for ours, it, at, field in values}
        return self._make(**found, **others)

    @property
    def one(self) -> AvroField:
        """The form of a field that is such a record."""
        return AvroField(lambda datum, path: self.from_avro(datum, f"{path}."), self.to_avro)

    @property
    def many(self) -> AvroField:
        """The form of a field that is an array of such records, on our side a tuple."""
        return AvroField(
            lambda data, path: tuple(self.from_avro(it, f"{path}[{n}].") for n, it in enumerate(data)),
            lambda records: [self.to_avro(record) for record in records],
        )

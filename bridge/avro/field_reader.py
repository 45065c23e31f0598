"""Reads one number, or some fields, of a record in wire format without decoding the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bridge.avro.codec import HEADER_BYTES, parsed, schema_id_of
from bridge.avro.field_layout import FieldLayout, RecordLayout
from bridge.avro.schemas import Schema
from bridge.errors import SchemaError
from bridge.formatting import shortened


class FieldReader:
    """Reads one field, an int or a long, from records written with any version of a schema.

    `name` is the full name of the records. `schema_by_id` is called once for each schema id.
    """

    def __init__(self, name: str, field: str, schema_by_id: Callable[[int], Schema]) -> None:
        self._name: Final = name
        self._field: Final = field
        self._schema_by_id = schema_by_id
        self._layouts: dict[int, FieldLayout] = {}

    def read(self, data: bytes) -> int:
        """Return the number. The rest of the record is not checked, except for its length.

        Raises SchemaError for any other bytes and for a schema without the field, NotOurs if the bytes begin
        unlike such a record, and what `schema_by_id` raises.
        """
        schema_id = schema_id_of(data)
        layout = self._layouts.get(schema_id)
        if layout is None:
            layout = self._layouts[schema_id] = self._layout(self._schema_by_id(schema_id))
        try:
            return layout.read(data, HEADER_BYTES)
        except ValueError as error:
            raise SchemaError(f"not a record of schema {schema_id}: {error}") from error

    def _layout(self, schema: Schema) -> FieldLayout:
        written = parsed(schema, self._name)
        try:
            return FieldLayout(written, self._field)
        except (ValueError, TypeError, LookupError) as error:
            raise _unusable(error) from error


class RecordReader:
    """Reads some fields, ints, longs and strings, and checks all others, from records as `FieldReader`."""

    def __init__(self, name: str, fields: list[str], schema_by_id: Callable[[int], Schema]) -> None:
        self._name: Final = name
        self._fields: Final = fields
        self._schema_by_id = schema_by_id
        self._layouts: dict[int, RecordLayout] = {}

    def read(self, data: bytes) -> list[bytes | int]:
        """Return the values of the fields, a string as UTF-8. Every value of the record fits its type.

        Raises as `FieldReader.read`.
        """
        schema_id = schema_id_of(data)
        layout = self._layouts.get(schema_id)
        if layout is None:
            written = parsed(self._schema_by_id(schema_id), self._name)
            try:
                layout = self._layouts[schema_id] = RecordLayout(written, self._fields)
            except (ValueError, TypeError, LookupError) as error:
                raise _unusable(error) from error
        try:
            return layout.read(data, HEADER_BYTES)
        except ValueError as error:
            raise SchemaError(f"not a record of schema {schema_id}: {error}") from error


def _unusable(error: Exception) -> SchemaError:
    return SchemaError(f"the schema of a record cannot be used: {shortened(repr(error))}")

"""One number of a record, read without decoding the rest of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from bridge.avro.codec import HEADER_BYTES, parsed, schema_id_of
from bridge.avro.field_layout import Layout
from bridge.avro.schemas import Schema
from bridge.errors import SchemaError
from bridge.formatting import shortened


class Projection:
    """Reads one field, an int or a long, from records in wire format, whatever else their schemas have.

    `name` is the full name of the records. `schema_by_id` finds the schema with which one was written; it is
    asked once for each id.
    """

    def __init__(self, name: str, field: str, schema_by_id: Callable[[int], Schema]) -> None:
        self._name: Final = name
        self._field: Final = field
        self._schema_by_id = schema_by_id
        self._layouts: dict[int, Layout] = {}

    def read(self, data: bytes) -> int:
        """The number. The rest is not checked, except that the record ends where it should.

        Raises SchemaError for bytes that are no such record and for a schema without such a field, NotOurs
        where that shows by what they begin with, and what `schema_by_id` raises.
        """
        schema_id = schema_id_of(data)
        layout = self._layouts.get(schema_id)
        if layout is None:
            layout = self._layouts[schema_id] = self._layout(self._schema_by_id(schema_id))
        try:
            return layout.read(data, HEADER_BYTES)
        except ValueError as error:
            raise SchemaError(f"not a record of schema {schema_id}: {error}") from error

    def _layout(self, schema: Schema) -> Layout:
        written = parsed(schema, self._name)
        try:
            return Layout(written, self._field)
        except (ValueError, TypeError, LookupError) as error:
            raise SchemaError(f"the schema of a record cannot be used: {shortened(repr(error))}") from error

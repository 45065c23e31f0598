"""Reads some fields of a record in wire format without decoding the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

from bridge.avro.codec import HEADER_BYTES, Writers, schema_id_of
from bridge.avro.field_layout import FieldLayout
from bridge.avro.schemas import Schema
from bridge.errors import SchemaError
from bridge.formatting import shortened

T = TypeVar("T")


class FieldReader(Generic[T]):
    """Reads records written with any version of a schema.

    `name` is the full name of the records. Once for each schema id, `schema_by_id` returns the schema, and
    `layout` what reads a record of it, as `FieldLayout.read` and `RecordLayout.read`.
    """

    def __init__(
        self,
        name: str,
        layout: Callable[[dict[str, Any]], Callable[[bytes, int], T]],
        schema_by_id: Callable[[int], Schema],
    ) -> None:
        self._layout: Final = layout
        self.writers: Final = Writers(name, schema_by_id)
        self._readers: dict[int, Callable[[bytes, int], T]] = {}

    def read(self, data: bytes) -> T:
        """Return what the layout reads. What it skips is not checked, except for the length of the record.

        Raises SchemaError for any other bytes and for a schema without the fields, ForeignRecord if the bytes
        begin unlike such a record, and as `Writers.of`.
        """
        schema_id = schema_id_of(data)
        read = self._readers.get(schema_id)
        if read is None:
            written = self.writers.of(data)
            try:
                read = self._readers[schema_id] = self._layout(written)
            except (ValueError, TypeError, LookupError) as error:
                raise SchemaError(
                    f"the schema of a record cannot be used: {shortened(repr(error))}"
                ) from error
        try:
            return read(data, HEADER_BYTES)
        except ValueError as error:
            raise SchemaError(f"not a record of schema {schema_id}: {error}") from error


def field_of_bets(field: str, schema_by_id: Callable[[int], Schema]) -> FieldReader[int]:
    """Return a reader of a field of type int or long in the records of bets."""
    return FieldReader("settlement.SettledBet", lambda schema: FieldLayout(schema, field).read, schema_by_id)

"""Codec of records in Confluent's wire format: a zero byte, a schema id of four bytes, the Avro body.

Date-times are integers (microseconds, UTC) on both sides: Python's datetime cannot hold every value of the
feed, such as 0001-01-01T00:00:00+14:00.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

from fastavro import parse_schema
from fastavro.schema import SchemaParseException, UnknownType, to_parsing_canonical_form

from bridge.avro.columns import Column
from bridge.avro.decoder import Decoder
from bridge.avro.encoder import Encoder, UnknownSchema
from bridge.avro.mismatch import mismatch
from bridge.avro.schemas import Fields, Schema, load, only, versions
from bridge.errors import ForeignRecord, SchemaError, SchemaNotFound
from bridge.formatting import shortened

_HEADER: Final = struct.Struct(">bI")
HEADER_BYTES: Final = _HEADER.size
"""Bytes before the Avro body."""
_MAGIC: Final = 0
_LARGEST_ID: Final = 2**31 - 1
READ_ONLY: Final = 0
"""An id that no registry assigns, for a codec that only reads."""


class Codec:
    """Encodes and decodes records of one schema.

    `schema_by_id` returns the schema of a record written with another one, which cannot be read without it.
    A schema that has only some of the fields (`schemas.only`) reads just these; with `strict`, text in the
    others must be UTF-8, too. Raises SchemaError for a schema that `bridge.avro.encoder` does not support.
    """

    def __init__(
        self,
        schema: Schema,
        schema_id: int,
        schema_by_id: Callable[[int], Schema] | None = None,
        *,
        strict: bool = False,
    ) -> None:
        self.schema_id: Final = schema_id
        self._name = schema["name"]
        self.named: Final[dict[str, Any]] = {}
        """The named types of the schema, by full name."""
        parsed: Any = parse_schema(_without_logical_types(schema), self.named)
        self.schema: Final[Any] = parsed
        """The schema as parsed by fastavro, without logical types."""
        self.header: Final = _HEADER.pack(_MAGIC, schema_id)
        """The first bytes of each record."""
        try:
            self._encoder = Encoder(self.schema, self.header)
        except UnknownSchema as error:
            raise SchemaError(f"the schema of {self._name} is not supported: {error}") from None
        self._schema_by_id = schema_by_id
        self._strict = strict
        known = {} if schema_id == READ_ONLY else {schema_id: self.schema}
        self.writers: Final = Writers(parsed["name"], self.schema_by_id, known)
        self._decoders: dict[bytes, Decoder] = {}
        """By the first bytes of the records."""
        self._other_headers: set[bytes] = set()
        """Those of records of other versions."""
        self._others: dict[int, Codec] = {}
        self._later: dict[int, bool] = {}
        """Schema id → whether that version has fields or symbols that this one lacks."""

    @cached_property
    def _own(self) -> Decoder:
        """Decodes records of this schema; made only where files are written, as is the next."""
        return Decoder(self.schema, self.schema)

    @cached_property
    def _checks(self) -> Decoder:
        return _checking(self.schema)

    def schema_by_id(self, schema_id: int) -> Schema:
        """Return the schema of other records of this name. Raises SchemaNotFound, and as the registry."""
        if self._schema_by_id is None:
            raise SchemaNotFound(f"not a {self._name} of schema {self.schema_id} but of schema {schema_id}")
        return self._schema_by_id(schema_id)

    def encode(self, datum: Mapping[str, Any]) -> bytes:
        """Encode a datum. Raises SchemaError, with the field's path, for one that does not fit exactly.

        Fields that the schema lacks are omitted, so that a newer datum can be compared with a record of an
        older schema.
        """
        try:
            return self._encoder.encode(datum)
        except (ValueError, OverflowError):
            why = mismatch(self.schema, self.named, datum)
            raise SchemaError(f"not a {self._name}: {why}") from None

    def in_schema(self, schema_id: int) -> Codec:
        """Return the codec of the same records in another version of the schema, which is made once.

        Raises SchemaError, and what `schema_by_id` raises.
        """
        if schema_id == self.schema_id:
            return self
        if schema_id not in self._others:
            self._others[schema_id] = Codec(self.schema_by_id(schema_id), schema_id, self._schema_by_id)
        return self._others[schema_id]

    def as_ours(self, data: bytes) -> bytes:
        """Return a record of a later version of the schema without what this one does not know.

        A bridge with this version writes the same bytes, unless the later one also lacks a field of ours. A
        record of this version or an earlier one is returned as it is: `in_schema` compares with those. So is
        one that cannot be read with this version. Raises ForeignRecord, and what `schema_by_id` raises.
        """
        if data.startswith(self.header):  # nearly all
            return data
        schema_id = schema_id_of(data)
        if schema_id not in self._later:
            named: dict[str, Any] = {}
            parse_schema(_without_logical_types(self.schema_by_id(schema_id)), named)
            self._later[schema_id] = any(
                not _members(type_) <= _members(self.named.get(name, {})) for name, type_ in named.items()
            )
        if self._later[schema_id]:
            with suppress(SchemaError):
                return self.encode(self.decode(data))
        return data

    def decode(self, data: bytes) -> dict[str, Any]:
        """Return the datum of a record written with any version of the schema, resolved to this one.

        Raises SchemaError for any other bytes, ForeignRecord if they begin unlike such a record, and what
        `schema_by_id` raises.
        """
        decoder = self._decoders.get(data[:HEADER_BYTES]) or self._decoder_of(data)
        try:
            datum: dict[str, Any] = decoder.read(data, HEADER_BYTES)
        except ValueError as error:
            raise self._unreadable(error) from None
        return datum

    def append(self, data: bytes, column: Column) -> None:
        """Append such a record to a column for values of this schema (`bridge.avro.columns`).

        Raises as `decode`, and adds nothing then; OverflowError where the column is full, which is of no use
        any more.
        """
        ours, rows = self._in_ours(data), column.rows
        try:
            self._own.append(ours, HEADER_BYTES, column)
        except ValueError as error:
            column.cut(rows)
            raise self._unreadable(error) from None

    def converted(self, data: bytes) -> bytes:
        """Return such a record as it is if it was written with this schema, else encoded with it.

        All of it is checked. Raises as `decode`.
        """
        ours = self._in_ours(data)
        try:
            self._checks.read(ours, HEADER_BYTES)
        except ValueError as error:
            raise self._unreadable(error) from None
        return ours

    def _in_ours(self, data: bytes) -> bytes:
        """Return such a record in this schema, unchecked if that is what it has."""
        header = data[:HEADER_BYTES]
        if header not in self._decoders:
            self._decoder_of(data)
        return self.encode(self.decode(data)) if header in self._other_headers else data

    def _unreadable(self, error: ValueError) -> SchemaError:
        what = f"not a {self._name}, or the registry is not the one it was written with"
        return SchemaError(f"{what}: {shortened(str(error))}")

    def _decoder_of(self, data: bytes) -> Decoder:
        """Return what decodes such a record. Raises as `Writers.of`, SchemaError for a recursive schema."""
        writer = self.writers.of(data)
        try:
            decoder = Decoder(writer, self.schema, strict=self._strict)
        except ValueError as error:
            raise SchemaError(f"the schema of a {self._name} cannot be used: {error}") from None
        self._decoders[header := data[:HEADER_BYTES]] = decoder
        if to_parsing_canonical_form(writer) != to_parsing_canonical_form(self.schema):
            self._other_headers.add(header)
        return decoder


class Writers:
    """The schemas with which records of one name were written, by their ids.

    `schema_by_id` is asked once for each id that is not `known`.
    """

    def __init__(
        self, name: str, schema_by_id: Callable[[int], Schema], known: Mapping[int, Any] | None = None
    ) -> None:
        self._name = name
        self._schema_by_id = schema_by_id
        self._parsed: dict[int, Any] = dict(known or {})
        self._others: dict[int, tuple[str, Decoder | None]] = {}
        """Ids of other schemas: what the registry says, and what reads their values if that is known."""

    def of(self, data: bytes) -> Any:
        """Return the schema of a record in wire format, as parsed by fastavro, without logical types.

        A registry that was restored from an older backup may have given an id to another schema since. Raises
        SchemaNotFound if the bytes fit a version that ships with the bridge, ForeignRecord if they fit that
        other schema instead, SchemaError if they fit neither, and what `schema_by_id` raises.
        """
        schema_id = schema_id_of(data)
        self._ask(schema_id)
        if schema_id in self._parsed:
            return self._parsed[schema_id]
        what, other = self._others[schema_id]
        if self.is_shipped(data):
            raise _given_away(schema_id, what, f"but the bytes are those of a {self._name}")
        if other is None or _fits(data, other):
            raise ForeignRecord(what)
        raise SchemaError(f"schema {schema_id} is something else in the registry ({what}), and does not fit")

    def is_shipped(self, data: bytes) -> bool:
        """Whether the bytes fit a version that ships with the bridge, whatever their id."""
        return any(_fits(data, shipped) for shipped in _shipped(self._name))

    def must_be_ours(self, schema_id: int) -> None:
        """Raise SchemaNotFound if the registry gives something else for an id of ours; as `schema_by_id`."""
        self._ask(schema_id)
        if schema_id in self._others:
            raise _given_away(schema_id, self._others[schema_id][0], f"a {self._name} was written with it")

    def _ask(self, schema_id: int) -> None:
        if schema_id in self._parsed or schema_id in self._others:
            return
        try:
            found = _parsed(self._schema_by_id(schema_id))
        except ForeignRecord as error:
            self._others[schema_id] = str(error), None
            return
        name = dict(found).get("name") if isinstance(found, dict) else found
        if name == self._name:
            self._parsed[schema_id] = found
        else:
            self._others[schema_id] = f"a {shortened(str(name))}, not a {self._name}", _checks(found)


class Codecs(NamedTuple):
    """The codecs of the topics that `bridge run` writes."""

    bets: Codec
    checkpoints: Codec
    gaps: Codec


def reading(
    name: str, schema_by_id: Callable[[int], Schema], fields: Fields | None = None, *, strict: bool = False
) -> Codec:
    """Return a codec that reads records of any version of a schema, or only these `fields`, as `Codec`."""
    schema = load(name) if fields is None else only(load(name), fields)
    return Codec(schema, READ_ONLY, schema_by_id, strict=strict)


def schema_id_of(data: bytes) -> int:
    """Return the schema id of a record in wire format. Raises ForeignRecord for any other bytes."""
    if len(data) >= _HEADER.size and data[0] == _MAGIC:
        schema_id = int(_HEADER.unpack_from(data)[1])
        if schema_id <= _LARGEST_ID:
            return schema_id
    raise ForeignRecord("not in the registry's wire format: a record begins with a zero byte and a schema id")


def _given_away(schema_id: int, what: str, why: str) -> SchemaNotFound:
    return SchemaNotFound(
        f"schema {schema_id} is something else in the registry ({what}), {why}. Check registry.url. Restore "
        "the registry so that each schema has the id again with which records were written"
    )


def _parsed(schema: Any) -> Any:
    """Parse a schema. Raises ForeignRecord if it is none."""
    try:
        return parse_schema(_without_logical_types(schema))
    except (SchemaParseException, UnknownType, ValueError, TypeError, LookupError, RecursionError) as error:
        raise ForeignRecord(f"its schema is not an Avro schema: {shortened(repr(error))}") from error


def _checks(schema: Any) -> Decoder | None:
    """Return what reads values of any parsed schema, and nothing in them; None for one that is recursive."""
    try:
        return _checking({"type": "record", "name": "value", "fields": [{"name": "value", "type": schema}]})
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _checking(record: Any) -> Decoder:
    """Return what reads records, and nothing in them. Raises ValueError if the schema is recursive."""
    return Decoder(record, record | {"fields": list[Any]()}, strict=True)


@cache
def _shipped(name: str) -> tuple[Decoder, ...]:
    return tuple(filter(None, (_checks(_parsed(schema)) for schema in versions(name))))


def _fits(data: bytes, decoder: Decoder) -> bool:
    try:
        decoder.read(data, HEADER_BYTES)
    except ValueError:
        return False
    return True


def _members(named: Mapping[str, Any]) -> set[str]:
    """Return the names of a record's fields, or an enum's symbols."""
    return {field["name"] for field in named.get("fields", ())} | set(named.get("symbols", ()))


def _without_logical_types(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_logical_types(value) for key, value in node.items() if key != "logicalType"}
    if isinstance(node, list):
        return [_without_logical_types(item) for item in node]
    return node

"""Arrow batches of the records of a topic, filled from their bytes. Needs pyarrow, the extra `parquet`.

A record becomes a row of the schema's own shape: arrays are lists, maps maps, records structs, enums
dictionaries. A time is a timestamp in microseconds, UTC, which holds every value that Avro's does.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from bridge.avro.codec import Codec
from bridge.avro.columns import Booleans, Column, Doubles, Lists, Longs, Maps, Strings, Structs
from bridge.avro.schemas import Schema
from bridge.errors import SettingsError

try:
    import pyarrow as pa
    from pyarrow import parquet
except ImportError:
    raise SettingsError(
        "Parquet and Arrow need pyarrow: install the extra, pip install 'settlement-bridge[parquet]'"
    ) from None

_PLAIN: Final[dict[str, tuple[type[Column], Any]]] = {
    "boolean": (Booleans, pa.bool_()),
    "long": (Longs, pa.int64()),
    "double": (Doubles, pa.float64()),
    "string": (Strings, pa.string()),
}
_TIME: Final = pa.timestamp("us", tz="UTC")
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of records in one array, however few they are."""


class Rows:
    """Collects records of a codec's schema, which is `schema` as JSON has it."""

    def __init__(self, schema: Schema, codec: Codec, most: int) -> None:
        self._shape = _Shape(schema, {})
        self._codec, self._most = codec, most
        self._column = self._shape.column()
        self._count = self._size = 0

    @property
    def is_full(self) -> bool:
        """Whether there are as many rows as are wanted, or as many bytes."""
        return self._count >= self._most or self._size >= MOST_BYTES

    def add(self, value: bytes) -> None:
        """Add a record of any version of the schema. Raises as `Codec.decode`, and adds no row then."""
        self._codec.append(value, self._column)
        self._count += 1
        self._size += len(value)

    def take(self) -> Any:
        """Return the rows so far, as a struct array, and begin anew."""
        found = self._shape.array(self._column)
        self._column, self._count, self._size = self._shape.column(), 0, 0
        return found


class _Shape:
    """A type of a schema, with its columns and arrays. `named` has the types that are defined before it."""

    def __init__(self, schema: Any, named: dict[str, Any]) -> None:
        self.nullable: Final = isinstance(schema, list)
        if isinstance(schema, list):
            [schema] = [branch for branch in schema if branch != "null"]
        if isinstance(schema, str):
            schema = named.get(schema, {"type": schema})
        if "name" in schema:
            named[schema["name"]] = schema
        self._kind: Final[str] = schema["type"]
        self._symbols: Final[list[str]] = schema.get("symbols", [])
        parts = [schema[name] for name in ("items", "values") if name in schema]
        parts += [field["type"] for field in schema.get("fields", [])]
        self._parts: Final = [_Shape(part, named) for part in parts]
        names = [field["name"] for field in schema.get("fields", [])] or ["item"]
        fields = [
            pa.field(name, part.type, nullable=part.nullable)
            for name, part in zip(names, self._parts, strict=False)
        ]
        self.type: Final[Any] = (
            pa.struct(fields)
            if self._kind == "record"
            else pa.list_(*fields)
            if self._kind == "array"
            else pa.map_(pa.string(), fields[0].with_name("value"))
            if self._kind == "map"
            else pa.dictionary(pa.int32(), pa.string())
            if self._kind == "enum"
            else _TIME
            if schema.get("logicalType") == "timestamp-micros"
            else _PLAIN[self._kind][1]
        )

    def column(self) -> Column:
        """Return an empty column."""
        parts = [part.column() for part in self._parts]
        match self._kind:
            case "record":
                return Structs(parts, nullable=self.nullable)
            case "array":
                return Lists(parts[0], nullable=self.nullable)
            case "map":
                return Maps(parts[0], nullable=self.nullable)
            case "enum":
                return Longs(nullable=self.nullable)
        return _PLAIN[self._kind][0](nullable=self.nullable)

    def array(self, column: Column) -> Any:
        """Return the values of a column."""
        valid, rows = _bits(column.valid.getvalue()) if self.nullable else None, column.rows
        match column:
            case Structs():
                parts = [part.array(each) for part, each in zip(self._parts, column.fields, strict=True)]
                return pa.Array.from_buffers(self.type, rows, [valid], children=parts)
            case Maps():
                keys = _texts(column.keys, None)
                fields = [pa.field("key", pa.string(), nullable=False), self.type.item_field]
                items = pa.StructArray.from_arrays([keys, self._parts[0].array(column.items)], fields=fields)
                return pa.Array.from_buffers(self.type, rows, [valid, _offsets(column)], children=[items])
            case Lists():
                items = self._parts[0].array(column.items)
                return pa.Array.from_buffers(self.type, rows, [valid, _offsets(column)], children=[items])
            case Strings():
                return _texts(column, valid)
            case Booleans():
                values = _bits(column.values.getvalue())
                return pa.Array.from_buffers(self.type, rows, [valid, values])
            case Longs() if self._kind == "enum":
                values = pa.py_buffer(column.values.getvalue())
                places = pa.Array.from_buffers(pa.int64(), rows, [valid, values]).cast(pa.int32())
                return pa.DictionaryArray.from_arrays(places, texts(self._symbols))
            case Longs() | Doubles():
                values = pa.py_buffer(column.values.getvalue())
                return pa.Array.from_buffers(self.type, rows, [valid, values])
        raise TypeError(type(column).__name__)


def array_of(schema: Any, column: Column) -> Any:
    """Return the values of a column of a schema, as JSON has it."""
    return _Shape(schema, {}).array(column)


def texts(values: Iterable[str]) -> Any:
    """Return texts as an array. `pa.array` would import pandas where it is installed: 0.3 s, and 60 MB."""
    column = Strings()
    for value in values:
        column.add(value.encode())
    return _texts(column, None)


def parquet_writer(path: Path, schema: Any) -> Any:
    """Return what writes a Parquet file with the columns of an Arrow schema."""
    return parquet.ParquetWriter(path, schema, compression="zstd")


def _bits(values: bytes) -> Any:
    """Return bytes that are 0 or 1 as bits."""
    found = pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(values)])
    return found.cast(pa.bool_()).buffers()[1]


def _offsets(column: Lists | Maps | Strings) -> Any:
    return pa.py_buffer(bytes(4) + column.ends.getvalue())


def _texts(column: Strings, valid: Any) -> Any:
    buffers = [valid, _offsets(column), pa.py_buffer(column.values.getvalue())]
    return pa.Array.from_buffers(pa.string(), column.rows, buffers)

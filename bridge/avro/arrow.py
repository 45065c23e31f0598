"""Arrow batches of the records of a topic, filled from their bytes. Needs pyarrow, the extra `parquet`.

A record becomes a row of the schema's own shape: arrays are lists, maps maps, records structs, enums
dictionaries. A time is a timestamp in microseconds, UTC, which holds every value that Avro's does.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from bridge.avro.columns import Booleans, Column, Doubles, Lists, Longs, Maps, Strings, Structs
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


class Shape:
    """A type of a schema, as JSON has it, with its columns and arrays.

    `named` has the types that are defined before it.
    """

    def __init__(self, schema: Any, named: dict[str, Any] | None = None) -> None:
        named = {} if named is None else named
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
        self._parts: Final = [Shape(part, named) for part in parts]
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
        buffers, children = [_bits(column.valid.getvalue()) if self.nullable else None], list[Any]()
        match column:
            case Structs():
                children = [part.array(each) for part, each in zip(self._parts, column.fields, strict=True)]
            case Maps():
                arrays = array_of("string", column.keys), self._parts[0].array(column.items)
                fields = [pa.field("key", pa.string(), nullable=False), self.type.item_field]
                buffers.append(_offsets(column))
                children = [pa.StructArray.from_arrays(arrays, fields=fields)]
            case Lists():
                buffers.append(_offsets(column))
                children = [self._parts[0].array(column.items)]
            case Strings():
                buffers += _offsets(column), pa.py_buffer(column.values.getvalue())
            case Booleans():
                buffers.append(_bits(column.values.getvalue()))
            case Longs() | Doubles():
                buffers.append(pa.py_buffer(column.values.getvalue()))
        if self._kind == "enum":
            places = pa.Array.from_buffers(pa.int64(), column.rows, buffers).cast(pa.int32())
            symbols = Strings()  # `pa.array` would import pandas where it is installed: 0.3 s, and 60 MB
            for symbol in self._symbols:
                symbols.add(symbol.encode())
            return pa.DictionaryArray.from_arrays(places, array_of("string", symbols))
        return pa.Array.from_buffers(self.type, column.rows, buffers, children=children)


def array_of(schema: Any, column: Column) -> Any:
    """Return the values of a column of a schema, as JSON has it."""
    return Shape(schema).array(column)


def parquet_writer(path: Path, schema: Any) -> Any:
    """Return what writes a Parquet file with the columns of an Arrow schema."""
    return parquet.ParquetWriter(path, schema, compression="zstd")


def _bits(values: bytes) -> Any:
    """Return bytes that are 0 or 1 as bits."""
    found = pa.Array.from_buffers(pa.uint8(), len(values), [None, pa.py_buffer(values)])
    return found.cast(pa.bool_()).buffers()[1]


def _offsets(column: Lists | Maps | Strings) -> Any:
    return pa.py_buffer(bytes(4) + column.ends.getvalue())

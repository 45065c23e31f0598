"""Writes records to files for programs, in the shape of their schema: Avro object containers, and Parquet.

A container has the records' bytes as they lie in Kafka, in the version of the schema that this bridge has;
those of other versions are converted to it. Parquet has a column a field, and the place of each record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import orjson
from confluent_kafka import Message
from librt.strings import BytesWriter

from bridge.avro.codec import HEADER_BYTES, Codec
from bridge.avro.encoder import write_bytes, write_long
from bridge.avro.schemas import Schema
from bridge.clock import MICROS
from bridge.errors import BridgeError, SchemaError
from bridge.reader.money import payout_text
from bridge.records.message import headers_of, key_of, original_receipt

if TYPE_CHECKING:
    from bridge.avro.arrow import Rows

NamesIn = Callable[[Message], Sequence[str | None]] | None
"""Returns the names of a bet's items; None without names."""
Skip = Callable[[Message, SchemaError], None]
"""Called with a record that cannot be read; may raise the error."""
_ROWS: Final = 10_000
"""Of a row group."""
_SCALE: Final = 18
_MOST: Final = 10**38
"""Of decimal(38, 18), as an integer."""
_ZERO: Final = bytes(16)


class AvroSink:
    """An object container file, with its head unless the file has one. Blocks are not compressed."""

    def __init__(
        self, file: BinaryIO, schema: Schema, codec: Codec, skip: Skip, *, head: bool = True
    ) -> None:
        self._file, self._codec, self._skip = file, codec, skip
        text = orjson.dumps(schema)
        self._sync: Final = hashlib.md5(text, usedforsecurity=False).digest()
        """Between blocks; the same for each attempt."""
        self.converted = 0
        """Records of other versions of the schema."""
        if head:
            out = BytesWriter()
            out.write(b"Obj\x01")
            write_long(out, 2)
            for name, value in ((b"avro.schema", text), (b"avro.codec", b"null")):
                write_bytes(out, name)
                write_bytes(out, value)
            write_long(out, 0)
            file.write(out.getvalue() + self._sync)

    def write(self, messages: Sequence[Message]) -> int:
        """Write a block; return the number of records in it."""
        bodies: list[bytes] = []
        for message in messages:
            value = message.value() or b""
            try:
                key_of(message)
                whole = self._codec.converted(value)
            except SchemaError as error:
                self._skip(message, error)
                continue
            self.converted += whole is not value
            bodies.append(whole[HEADER_BYTES:])
        if bodies:
            block, head = b"".join(bodies), BytesWriter()
            write_long(head, len(bodies))
            write_long(head, len(block))
            self._file.write(head.getvalue() + block + self._sync)
        return len(bodies)

    def flush(self) -> None:
        """Do nothing: each block is whole."""


class ParquetSink:
    """A Parquet file of bets, in row groups of `_ROWS`; close it. Needs pyarrow, the extra `parquet`.

    Has the fields of the record; its money as decimals, null where decimal(38, 18) does not hold one; when it
    was received, and its place; and with `names` those of its items. With `flat`, a row an item, and one for
    a bet without any; fields of records in it are columns then, such as `event.id`.
    """

    def __init__(
        self,
        path: Path,
        schema: Schema,
        codec: Codec,
        skip: Skip,
        *,
        names: NamesIn = None,
        flat: bool = False,
    ) -> None:
        from bridge.avro.arrow import Rows, parquet_writer

        self._rows: Final[Rows] = Rows(schema, codec, _ROWS)
        self._places: list[tuple[int | None, int, int]] = []
        """Of each row: when it was received, microseconds, its partition and its offset."""
        self._texts: list[Sequence[str | None]] = []
        """Of each row, the names of its items."""
        self._skip, self._names, self._flat = skip, names, flat
        self._file = parquet_writer(path, self._table().schema)
        # It compresses while the next rows are read.
        self._thread, self._written = ThreadPoolExecutor(1), Future[None]()
        self._written.set_result(None)

    def write(self, messages: Sequence[Message]) -> int:
        """Add rows; return the number of bets."""
        count = 0
        for message in messages:
            try:
                key_of(message)
                names = self._names(message) if self._names else ()
                self._rows.add(message.value() or b"")
            except SchemaError as error:
                self._skip(message, error)
                continue
            count += 1
            self._places.append((_received(message), message.partition() or 0, message.offset() or 0))
            self._texts.append(names)
            if self._rows.is_full:
                self._flush()
        return count

    def close(self) -> None:
        """Write the last row group and the end of the file."""
        try:
            self._flush()
            self._written.result()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """End the file as it is."""
        self._thread.shutdown()
        self._file.close()

    def _flush(self) -> None:
        if self._places:
            table = self._table()
            self._written.result()
            self._written = self._thread.submit(self._file.write_table, table)

    def _table(self) -> Any:
        """Return the rows so far as a table, and begin anew."""
        import pyarrow as pa
        from pyarrow import compute as pc

        bets, places, texts = self._rows.take(), self._places, self._texts
        self._places, self._texts = [], []
        columns = {field.name: bets.field(field.name) for field in bets.type}
        amount = columns["amount"]
        precisions = pc.if_else(amount.is_valid(), amount.field("precision"), None).to_pylist()
        stakes = zip(amount.field("value").to_pylist(), precisions, strict=True)
        columns["stake"] = _decimals([_scaled(value, precision) for value, precision in stakes])
        for name, of in (("exactPayout", "payout"), ("exactPartialRefund", "partialRefund")):
            pairs = zip(columns[of].to_pylist(), precisions, strict=True)
            columns[name] = _decimals([_exact(value, precision) for value, precision in pairs])
        received, partitions, offsets = zip(*places, strict=True) if places else ((), (), ())
        columns["receivedAt"] = pa.array(received, pa.timestamp("us", tz="UTC"))
        columns["partition"] = pa.array(partitions, pa.int32())
        columns["offset"] = pa.array(offsets, pa.int64())
        if self._names:
            columns["names"] = pa.array(texts, pa.list_(pa.string()))
        table = pa.table(columns)
        return _flattened(table) if self._flat else table


def _flattened(table: Any) -> Any:
    """Return a table with a row an item instead of `selections`."""
    import pyarrow as pa

    selections = table["selections"].combine_chunks()
    rows, items, place = list[int](), list[int | None](), 0
    for row, count in enumerate(selections.value_lengths().to_pylist()):
        rows += [row] * (count or 1)
        items += range(place, place + count) if count else [None]
        place += count or 0
    found = selections.flatten().take(pa.array(items, pa.int64()))
    names = None if "names" not in table.column_names else table["names"].combine_chunks()
    table = table.drop_columns("selections").take(pa.array(rows, pa.int64()))
    if names is not None:
        taken = names.flatten().take(pa.array(items, pa.int64()))
        table = table.set_column(table.column_names.index("names"), "names", taken)
    for field, column in zip(found.type, found.flatten(), strict=True):
        name = field.name if field.name not in table.column_names else f"selection.{field.name}"
        table = table.append_column(name, column)
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    return table


def _received(message: Message) -> int | None:
    """Return when a bet's message was received, microseconds; None for a time that no timestamp holds."""
    at = message.timestamp()[1] * 1000
    original = original_receipt(headers_of(message)) if message.headers() else None
    at = at if original is None else round(original * MICROS)
    return at if -(2**63) <= at < 2**63 else None


def _exact(value: float, precision: int | None) -> bytes | None:
    """Return what `payout_of` makes of a payout as decimal(38, 18) holds it, None if it does not."""
    whole, _, decimals = payout_text(value, precision).partition(".")
    return _scaled(int(whole + decimals), len(decimals)) if whole.removeprefix("-").isdigit() else None


def _scaled(number: int, precision: int | None) -> bytes | None:
    """Return number × 10^-precision likewise; None without a precision."""
    if precision is None or not -_SCALE <= precision <= _SCALE:
        return None
    found: int = number * 10 ** (_SCALE - precision)
    return found.to_bytes(16, "little", signed=True) if -_MOST < found < _MOST else None


def _decimals(values: Sequence[bytes | None]) -> Any:
    """Return decimals as an array."""
    import pyarrow as pa

    there = pa.array([value is not None for value in values], pa.bool_())
    data = pa.py_buffer(b"".join([value or _ZERO for value in values]))
    return pa.Array.from_buffers(pa.decimal128(38, _SCALE), len(values), [there.buffers()[1], data])


def join_parquet(parts: Sequence[Path], path: Path) -> None:
    """Make one Parquet file of several, a row group at a time."""
    import pyarrow as pa
    from pyarrow import parquet

    from bridge.avro.arrow import parquet_writer

    try:
        schema = parquet.ParquetFile(parts[0]).schema_arrow
        with parquet_writer(path, schema) as whole:
            for part in parts:
                with parquet.ParquetFile(part) as file:
                    for group in range(file.num_row_groups):
                        whole.write_table(file.read_row_group(group))
    except pa.ArrowInvalid as error:
        raise BridgeError(
            f"{path}: one of its parts cannot be read: {error}. Remove its .resume file."
        ) from None

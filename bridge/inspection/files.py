"""Writes records to files for programs, in the shape of their schema: Avro object containers, and Parquet.

A container has the records' bytes as they lie in Kafka, in the version of the schema that this bridge has;
those of other versions are converted to it. Parquet has a column a field, and the place of each record.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson
from confluent_kafka import Message
from librt.strings import BytesWriter

from bridge.avro.codec import HEADER_BYTES, Codec
from bridge.avro.columns import Doubles, Strings
from bridge.avro.encoder import write_bytes, write_long
from bridge.avro.schemas import Schema, load
from bridge.clock import MICROS
from bridge.errors import BridgeError, SchemaError
from bridge.reader.batches import NamesIn, RowBatch, Skip, written_at
from bridge.reader.money import MOST_DECIMALS, PAYOUTS, payout_text
from bridge.records.message import headers_of, key_of, original_receipt

_SCALE: Final = 18
_MOST: Final = 10**20
"""Of decimal(38, 18)."""


def _table(rows: Any) -> Any:
    import pyarrow as pa

    return pa.Table.from_batches([rows])


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
            if whole is not value:
                self.converted += 1
            bodies.append(whole[HEADER_BYTES:])
        if bodies:
            block, head = b"".join(bodies), BytesWriter()
            write_long(head, len(bodies))
            write_long(head, len(block))
            self._file.write(head.getvalue() + block + self._sync)
        return len(bodies)


class ParquetSink:
    """A Parquet file of the rows of a batch, made into a table if need be; close it. Needs pyarrow."""

    def __init__(self, path: Path, batch: RowBatch, table: Callable[[Any], Any] = _table) -> None:
        from bridge.avro.arrow import parquet_writer

        self._batch, self._table = batch, table
        self._file = parquet_writer(path, table(batch.take()).schema)
        # It compresses while the next rows are read.
        self._thread, self._written = ThreadPoolExecutor(1), Future[None]()
        self._written.set_result(None)

    def write(self, messages: Sequence[Message]) -> int:
        """Add rows; return how many were added."""
        batch, count = self._batch, 0
        for message in messages:
            if batch.add(message):
                count += 1
                if batch.is_full:
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
        if len(self._batch):
            table = self._table(self._batch.take())
            self._written.result()
            self._written = self._thread.submit(self._file.write_table, table)


def parquet_of_bets(
    path: Path, codec: Codec, skip: Skip, names: NamesIn = None, *, flat: bool = False
) -> ParquetSink:
    """Return a Parquet file of bets.

    Has the fields of the record; its money as decimals, null where decimal(38, 18) does not hold one; when it
    was received, and its place; and with `names` those of its items. With `flat`, a row an item, and one for
    a bet without any; fields of records in it are columns then, such as `event.id`.
    """
    batch = RowBatch(load("settled-bet"), codec, skip, time=_received, names=names)
    return ParquetSink(path, batch, lambda rows: _bets(rows, flat=flat))


def _bets(rows: Any, *, flat: bool) -> Any:
    """Return a table of a batch of bets, with their money as decimals."""
    table, amount = _table(rows), rows["amount"]
    # Unlike `field`, null where the amount is.
    values, scales = (amount.flatten()[amount.type.get_field_index(n)] for n in ("value", "precision"))
    money = {
        "stake": _stakes(values, scales),
        **{f"exact{name[0].upper()}{name[1:]}": _payouts(rows[name], scales) for name in PAYOUTS},
        "receivedAt": rows["timestamp"],
    }
    place = table.column_names.index("key")
    table = table.drop_columns(["key", "timestamp"])
    for number, (name, column) in enumerate(money.items()):
        table = table.add_column(place + number, name, column)
    return _flattened(table) if flat else table


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


def _received(message: Message) -> int:
    """Return when a bet's message was received, microseconds."""
    original = original_receipt(headers_of(message)) if message.headers() else None
    return written_at(message) if original is None else round(original * MICROS)


def _stakes(values: Any, precisions: Any) -> Any:
    """Return numbers × 10^-precision as decimals; null without a precision, or where they do not fit."""
    import pyarrow as pa
    from pyarrow import compute as pc

    found = pa.nulls(len(values), _decimal())
    for precision in precisions.unique().drop_null().to_pylist():
        if 0 <= precision <= _SCALE:
            scaled = _scaled(values, precision)
        elif -_SCALE <= precision < 0:
            scaled = _exactly(Decimal(value or 0).scaleb(-precision) for value in values.to_pylist())
        else:
            continue
        found = pc.if_else(pc.equal(precisions, _number(precision)), scaled, found)
    return found


def _scaled(values: Any, precision: int) -> Any:
    """Return integers × 10^-precision: the same digits, read with another scale, always fit."""
    import pyarrow as pa

    digits = values.cast(pa.decimal128(19, 0)).buffers()
    return pa.Array.from_buffers(pa.decimal128(19, precision), len(values), digits).cast(_decimal())


def _payouts(values: Any, precisions: Any) -> Any:
    """Return what `payout_of` makes of payouts as decimals, null where they do not fit.

    Nearly all are close to a whole number of 10^-8, which is then what it makes of them: with so few digits,
    no product is off by as much.
    """
    from pyarrow import compute as pc

    nought = _number(0)
    products = pc.multiply(values, _number(10**MOST_DECIMALS))
    whole = pc.round(products)
    is_close = pc.less(pc.abs(pc.subtract(products, whole)), _number(0.25))
    is_short = pc.less(pc.abs(products), _number(1e15))
    is_usual = pc.or_kleene(pc.is_null(precisions), pc.less_equal(precisions, _number(MOST_DECIMALS)))
    is_plain = pc.or_(pc.equal(values, nought), pc.and_(is_usual, pc.and_(is_close, is_short)))
    found = _scaled(pc.if_else(is_plain, whole, nought).cast("int64"), MOST_DECIMALS)
    others = pc.invert(is_plain)
    pairs = zip(values.filter(others).to_pylist(), precisions.filter(others).to_pylist(), strict=True)
    exact = _exactly(Decimal(payout_text(value, precision)) for value, precision in pairs)
    return pc.replace_with_mask(found, others, exact)


def _number(value: float) -> Any:
    """Return a number for pyarrow, which would import pandas to make one itself: 0.3 s, and 35 MB."""
    from bridge.avro.arrow import array_of

    column = Doubles()
    column.add(value)
    return array_of("double", column)[0]


def _exactly(values: Iterable[Decimal]) -> Any:
    from bridge.avro.arrow import array_of

    column = Strings(nullable=True)
    for value in values:
        if _fits(value):
            column.add(f"{value:f}".encode())
        else:
            column.add_null()
    return array_of(["null", "string"], column).cast(_decimal())


def _fits(value: Decimal) -> bool:
    """Return whether decimal(38, 18) holds a number."""
    return value.is_finite() and -int(value.as_tuple().exponent) <= _SCALE and abs(value) < _MOST


def _decimal() -> Any:
    import pyarrow as pa

    return pa.decimal128(38, _SCALE)


def use_system_memory() -> None:
    """Have pyarrow, if nothing has loaded it yet, give back what it frees: its own pool keeps 40 MB."""
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")


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

"""Reads a topic as Arrow batches, for pandas, Polars and DuckDB. Needs pyarrow, the extra `parquet`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from confluent_kafka import Message

from bridge.avro.codec import Codec
from bridge.avro.columns import Lists, Longs, Strings
from bridge.avro.schemas import Schema, load
from bridge.config import Settings
from bridge.config import load as load_settings
from bridge.errors import SchemaError, SettingsError
from bridge.reader.decoding import Topic
from bridge.reader.source import Start, Until, polls
from bridge.records.message import SkippedRecords, at, key_of
from bridge.registry import Registry

if TYPE_CHECKING:
    import pyarrow

ROWS: Final = 10_000
"""Rows of a batch, unless it is asked for another number."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of records in a batch, however few they are."""
_MICROS: Final = {"type": "long", "logicalType": "timestamp-micros"}


def read_batches(
    topic: Topic[Any],
    *,
    from_: Start = "start",
    until: Until = "end",
    follow: bool = False,
    stop: Event | None = None,
    settings: Settings | None = None,
    rows: int = ROWS,
) -> Iterator[pyarrow.RecordBatch]:
    """Yield the records of a topic as batches of at most so many rows, the last ones when it ends.

    Columns are the fields of the schema, then `key`, `timestamp` (of the record, UTC), `partition` and
    `offset`. To `follow`, yields what has come, a fraction of a second after it. What is left out and
    what is raised is as in `read`; SettingsError also for a topic without a schema (dead letters), or
    without pyarrow.
    """
    settings = settings or load_settings(None)
    if topic.schema is None:
        raise SettingsError(f"{topic.name} cannot be read as batches: its values are not Avro")
    skipped = SkippedRecords(follows=follow)
    with Registry(settings.registry) as registry:
        codec = registry.codec(topic.schema)
        batch = RowBatch(load(topic.schema), codec, lambda m, error: skipped.add(at(m, error)), rows)
        with closing(polls(settings, topic.name, from_, None if follow else until, stop)) as found:
            try:
                for messages in found:
                    for message in messages:
                        batch.add(message)
                        if batch.is_full:
                            yield batch.take()
                    if follow and len(batch):
                        yield batch.take()
                if len(batch):
                    yield batch.take()
            finally:
                skipped.log()


Skip = Callable[[Message, SchemaError], None]
"""Called with a record that cannot be read; may raise the error."""
NamesIn = Callable[[Message], Sequence[str | None]] | None
"""Returns the names of a bet's items; None without names."""


def written_at(message: Message) -> int:
    """Return the timestamp of a record, microseconds."""
    return message.timestamp()[1] * 1000


class RowBatch:
    """Collects records of one schema, their keys, times and places, and with `names` those of their items.

    `time` says when a record was written or received, microseconds.
    """

    def __init__(
        self,
        schema: Schema,
        codec: Codec,
        skip: Skip,
        most: int = ROWS,
        *,
        time: Callable[[Message], int] = written_at,
        names: NamesIn = None,
    ) -> None:
        from bridge.avro.arrow import Shape

        self._shape, self._codec, self._most = Shape(schema), codec, most
        self._skip, self._time, self._names = skip, time, names
        self._begin()

    def _begin(self) -> None:
        self._values, self._size = self._shape.column(), 0
        self._keys, self._times = Strings(), Longs(nullable=True)
        self._partitions, self._offsets = Longs(), Longs()
        self._texts = Strings(nullable=True)
        self._items = Lists(self._texts)
        """Of each row, the names of its items."""

    def __len__(self) -> int:
        return int(self._offsets.rows)

    @property
    def is_full(self) -> bool:
        """Whether it is time to take the rows: there are as many as are wanted, or as many bytes."""
        return len(self) >= self._most or self._size >= MOST_BYTES

    def add(self, message: Message) -> bool:
        """Add a record, unless it is a tombstone or cannot be read; return whether it was added."""
        if (value := message.value()) is None:
            return False
        try:
            key = key_of(message)
            names = self._names(message) if self._names else ()
            self._codec.append(value, self._values)
        except SchemaError as error:
            self._skip(message, error)
            return False
        self._size += len(value)
        self._keys.add(key)
        if -(2**63) <= (time := self._time(message)) < 2**63:
            self._times.add(time)
        else:
            self._times.add_null()
        self._partitions.add(message.partition() or 0)
        self._offsets.add(message.offset() or 0)
        if self._names:
            for name in names:
                if name is None:
                    self._texts.add_null()
                else:
                    self._texts.add(name.encode())
            self._items.close()
        return True

    def take(self) -> pyarrow.RecordBatch:
        """Return the records so far, and begin anew. Times that no timestamp holds are null."""
        import pyarrow as pa

        from bridge.avro.arrow import array_of

        rows = self._shape.array(self._values)
        columns = {field.name: rows.field(field.name) for field in rows.type}
        columns["key"] = array_of("string", self._keys)
        columns["timestamp"] = array_of(["null", _MICROS], self._times)
        columns["partition"] = array_of("long", self._partitions).cast(pa.int32())
        columns["offset"] = array_of("long", self._offsets)
        if self._names:
            columns["names"] = array_of({"type": "array", "items": ["null", "string"]}, self._items)
        self._begin()
        return pa.record_batch(columns)

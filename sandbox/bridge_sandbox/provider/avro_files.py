"""Avro object container files of what a bridge has published, and their values as the provider sends them."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

from fastavro import block_reader, parse_schema, schemaless_reader, writer

Datum: TypeAlias = dict[str, Any]
"""A record, with date-times as microseconds since 1970 UTC and enums as symbols."""
_Sent: TypeAlias = Callable[[Any, int, int], Any]
"""Returns a value as the feed has it. Date-times near the second argument are later by the third."""

_FIRST = {"settlement.BetItemType": 1}
"""Enum → the feed's number of its first symbol, if not 0 (interface, "BetItemType")."""
_PLACEHOLDER = 50 * 366 * 86_400_000_000
"""A date-time that far from when the bet was published means "not set", such as 0001-01-01, and stays."""
_EPOCH = datetime(1970, 1, 1)
_BLOCKS = 32
"""Number of decoded blocks of a file that are kept."""


class RecordingError(Exception):
    """A recording cannot be played. The text says which, and why."""


def files_in(paths: Iterable[Path]) -> list[Path]:
    """Return the files, and those of directories in order of their names. Raises RecordingError."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.glob("*.avro")) if path.is_dir() else [path]
        if not inside:
            raise RecordingError(f"there is no *.avro in {path}")
        found += inside
    return found


def write(path: Path, schema: Any, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records to a file."""
    with path.open("wb") as file:
        writer(file, parse_schema(schema), records)


class AvroFile:
    """An object container file of records of one of these names. Raises RecordingError, as `blocks` does."""

    def __init__(self, path: Path, *names: str) -> None:
        self._path = path
        named: dict[str, Any] = {}
        try:
            with path.open("rb") as file:
                schema: Any = parse_schema(block_reader(file).writer_schema, named)
                self._start = file.tell()
            self.as_sent = _sent(schema, named)
            """Returns a record as the feed has it."""
        except OSError as error:
            raise RecordingError(f"{path} cannot be read: {error.strerror}") from None
        except Exception:  # noqa: BLE001  # fastavro raises what the bytes lead to
            raise RecordingError(f"{path} does not begin as an Avro object container file") from None
        self.name = schema.get("name") if isinstance(schema, dict) else schema
        if self.name not in names:
            raise RecordingError(f"{path} has records of {self.name}, not of {' or '.join(names)}")
        self._schema = parse_schema(_without_logical_types(schema))
        self.block = lru_cache(_BLOCKS)(self._block)
        """Return the records of the block at an offset of the file, of a size."""

    def blocks(self) -> Iterator[tuple[int, int, list[Datum]]]:
        """Read the whole file: offset, size and records of each block."""
        end = self._start
        try:
            with self._path.open("rb") as file:
                for block in block_reader(file):
                    yield block.offset, block.size, self._records(block)
                    end = block.offset + block.size
        except Exception as error:  # noqa: BLE001  # as above
            raise RecordingError(f"{self._path} is damaged at byte {end} or after it: {error}") from None

    def _block(self, offset: int, size: int) -> list[Datum]:
        with self._path.open("rb") as file:
            header = file.read(self._start)
            file.seek(offset)
            return self._records(next(iter(block_reader(io.BytesIO(header + file.read(size))))))

    def _records(self, block: Any) -> list[Datum]:
        records: list[Any] = [
            schemaless_reader(block.bytes_, self._schema, None) for _ in range(block.num_records)
        ]
        if left := block.bytes_.read():
            raise ValueError(f"{len(left)} bytes too many")
        return records


def date_time(micros: int) -> str | int:
    """Return a date-time in ISO 8601; as it is where that has none."""
    for zone, minutes in (("Z", 0), ("+14:00", 840), ("-14:00", -840)):  # some are in no year of UTC
        with suppress(OverflowError):
            return f"{(_EPOCH + timedelta(microseconds=micros, minutes=minutes)).isoformat()}{zone}"
    return micros


def _without_logical_types(node: Any) -> Any:
    """Return a schema without them: `datetime` has no 0001-01-01T00:00:00+02:00, which the feed may send."""
    if isinstance(node, dict):
        return {key: _without_logical_types(value) for key, value in node.items() if key != "logicalType"}
    return [_without_logical_types(item) for item in node] if isinstance(node, list) else node


def _sent(schema: Any, named: dict[str, Any]) -> _Sent:
    """Return what makes a value of a type one of the feed's."""
    schema = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(schema, list):
        [of] = [_sent(each, named) for each in schema if each != "null"]
        return _same if of is _same else lambda value, *when: None if value is None else of(value, *when)
    if not isinstance(schema, dict):
        return _same
    match schema["type"]:
        case "record":
            parts = {each["name"]: _sent(each["type"], named) for each in schema["fields"]}
            changed = [(name, of) for name, of in parts.items() if of is not _same]
            return lambda value, *when: value | {name: of(value[name], *when) for name, of in changed}
        case "array":
            of = _sent(schema["items"], named)
            return _same if of is _same else lambda value, *when: [of(item, *when) for item in value]
        case "enum":
            first = _FIRST.get(schema["name"], 0)
            return lambda value, *_: schema["symbols"].index(value) + first
    return _moved if schema.get("logicalType") == "timestamp-micros" else _same


def _same(value: Any, _near: int, _later: int) -> Any:
    return value


def _moved(micros: int, near: int, later: int) -> str | int:
    return date_time(micros + later if abs(micros - near) < _PLACEHOLDER else micros)

"""Writes settled bets to a file that is whole or not there, and goes on with one that was interrupted.

Until it is whole, the file is called `FILE.partial` (Parquet: `FILE.partial-1` and so on), which is locked,
and `FILE.resume` says how far it goes: the bytes or parts that count, and the offsets that follow. The next
attempt cuts off what was written after them.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import orjson

from bridge.avro.schemas import load
from bridge.config import Settings
from bridge.errors import BridgeError, SettingsError
from bridge.formatting import EPOCH, format_utc
from bridge.inspection.files import AvroSink, ParquetSink, join_parquet, parquet_of_bets, use_system_memory
from bridge.inspection.formats import CSV_FIELDS, Format, NamesOf, as_text, csv_writer, json_writer
from bridge.inspection.replay import Replay, Window
from bridge.kafka import admin, clients
from bridge.reader.batches import NamesIn, Skip
from bridge.records import topics
from bridge.records.message import at

PART_SECONDS: Final = 60.0
"""Between two parts of a Parquet file: they are joined at the end, which takes as long again."""

_BUFFER: Final = 1_000_000
"""Bytes that are collected before they are written."""

OVER_SECONDS: Final = 600.0
"""After its end, before an hour is exported: what was received in it may still be on its way to Kafka."""


def parts(
    settings: Settings,
    directory: Path,
    form: Format,
    window: Window,
    unit: Literal["hour", "day"],
    now: float,
) -> Iterator[tuple[Path, Window]]:
    """Yield the files of a directory that are not there yet, one an hour or a day (UTC), with their windows.

    Only whole hours or days, from the one in which the window begins, that are over at `now` (Unix seconds).
    Raises SettingsError if there is no such directory, BridgeError while an open transaction may hide bets of
    a part: its file would lack them.
    """
    if not directory.is_dir():
        raise SettingsError(f"--output {directory}: there is no such directory")
    seconds, pattern = (3_600, "%Y-%m-%dT%HZ") if unit == "hour" else (86_400, "%Y-%m-%d")
    last = now - OVER_SECONDS if window.end is None else min(window.end / 1000, now - OVER_SECONDS)
    begin = int(window.begin / 1000 // seconds * seconds)
    while begin + seconds <= last:
        name = (EPOCH + timedelta(seconds=begin)).strftime(pattern)
        path = directory / f"{name}.{form}"
        if not path.exists():
            _require_whole(settings, begin + seconds)
            yield path, Window(begin * 1000, (begin + seconds) * 1000)
        begin += seconds


def _require_whole(settings: Settings, end: float) -> None:
    """Raise BridgeError while an open transaction may hide bets received before `end`, Unix seconds."""
    client, topic = clients.admin(settings.kafka), topics.declare(settings).bets.name
    count = admin.partition_count(client, topic)
    written, stable = (admin.end_offsets(client, topic, count, visible=v) for v in (False, True))
    after = admin.offsets_since(client, topic, end, stable)
    if any(first == last < hidden for first, last, hidden in zip(after, stable, written, strict=True)):
        raise BridgeError(
            f"an open transaction may hide bets received before {format_utc(end)}: repeat "
            "the command when it has ended. `bridge doctor` names it"
        )


class Export:
    """One file, of one format; close it. `wanted` are the options that it is made with, for `FILE.resume`.

    Raises SettingsError if the file is there already, or was begun with other options.
    """

    def __init__(
        self,
        path: Path,
        format_: Format,
        wanted: Mapping[str, Any],
        names: NamesOf = None,
        *,
        flat: bool = False,
    ) -> None:
        check_target(path)
        self._path = path
        self._format = format_
        self._names = names
        self._flat = flat
        schema = hashlib.sha256(repr(load("settled-bet")).encode()).hexdigest()
        self._wanted = {**wanted, "format": format_, "schema": schema}
        self._resume = path.with_name(f"{path.name}.resume")
        self._partial = path.with_name(f"{path.name}.partial")
        self.bets = 0
        """Bets in the file."""
        self.converted = 0
        """Those of them that this attempt converted to this version of the schema."""
        self.offsets: dict[int, int] | None = None
        """Partition → offset to go on from; None if nothing was written yet."""
        self.ends: list[int] = []
        """The offsets at which the first attempt was to end."""
        self.window: tuple[int, int | None] = 0, None
        """The interval of receipt, Unix milliseconds, as the first attempt understood it."""
        self._size = self._parts = 0
        self._file = locked(path, self._partial)
        try:
            refuse_existing(path)
            if self._resume.exists():
                self._restore()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Unlock the file, and remove it where there is nothing to resume."""
        if not self._resume.exists():
            for piece in (self._partial, self._part(1)):
                piece.unlink(missing_ok=True)
        close(self._file)

    def run(self, replay: Replay) -> None:
        """Write all bets. Raises BridgeError if the file cannot be written."""
        self.ends = replay.ends
        try:
            (self._run_parquet if self._format == "parquet" else self._run_whole)(replay)
            self._resume.unlink(missing_ok=True)
        except OSError as error:
            raise BridgeError(
                f"{self._path} cannot be written: {error.strerror}. Repeat the command to resume."
            ) from None

    def _run_whole(self, replay: Replay) -> None:
        file = self._file
        file.seek(self._size)
        file.truncate()

        def save() -> None:
            self._size = _flushed(file)
            self._save(replay.offsets)

        replay.save = save
        head = not self._size
        if self._format == "avro":
            sink = AvroSink(file, load("settled-bet"), replay.codec, _skipping(replay), head=head)
            for messages in replay.values():
                self.bets += sink.write(messages)
            self.converted = sink.converted
        else:
            if self._format == "csv" and self._names is None:
                replay.read_only(CSV_FIELDS)
            is_json = self._format == "json"
            write = json_writer(file, self._names) if is_json else csv_writer(file, self._names, head=head)
            for bet in replay:
                write(bet)
                self.bets += 1
        _flushed(file)
        self._partial.replace(self._path)
        synced(self._path.parent)

    def _run_parquet(self, replay: Replay) -> None:
        use_system_memory()
        saved, replay.save_seconds = self.bets, PART_SECONDS

        def begun() -> ParquetSink:
            part, names = self._part(self._parts + 1), self._names_in(replay)
            return parquet_of_bets(part, replay.codec, _skipping(replay), names, flat=self._flat)

        sink = begun()

        def save() -> None:
            nonlocal sink, saved
            if self.bets > saved:
                sink.close()
                self._parts, saved = self._parts + 1, self.bets
                synced(self._part(self._parts))
                sink = begun()
            self._save(replay.offsets)

        replay.save = save
        try:
            for messages in replay.values():
                self.bets += sink.write(messages)
        except BaseException:
            sink.abandon()
            raise
        sink.close()
        parts = [self._part(number) for number in range(1, self._parts + 2)]
        if len(parts) == 1:
            parts.pop().replace(self._partial)
        else:
            join_parquet(parts, self._partial)
        synced(self._partial).replace(self._path)
        synced(self._path.parent)
        for part in parts:
            part.unlink()

    def _names_in(self, replay: Replay) -> NamesIn:
        if (names := self._names) is None:
            return None
        return lambda message: [as_text(item) for item in names(replay.bet(message))]

    def _part(self, number: int) -> Path:
        return self._partial.with_name(f"{self._partial.name}-{number}")

    def _save(self, offsets: Mapping[int, int]) -> None:
        note = {
            "wanted": self._wanted,
            "offsets": {str(partition): offset for partition, offset in offsets.items()},
            "ends": self.ends,
            "window": self.window,
            "bets": self.bets,
            "size": self._size,
            "parts": self._parts,
        }
        temporary = self._resume.with_name(f"{self._resume.name}.new")
        temporary.write_bytes(orjson.dumps(note, default=str))
        synced(temporary).replace(self._resume)

    def _restore(self) -> None:
        begin_anew = f"remove {self._resume} to start over"
        try:
            note = orjson.loads(self._resume.read_bytes())
            offsets = {int(partition): offset for partition, offset in note["offsets"].items()}
            wanted, ends, (begin, end) = note["wanted"], note["ends"], note["window"]
            bets, size, parts = note["bets"], note["size"], note["parts"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise SettingsError(f"{self._resume} cannot be read: {error}; {begin_anew}") from None
        if wanted != orjson.loads(orjson.dumps(self._wanted, default=str)):
            raise SettingsError(
                f"--output {self._path}: was started with other options, or before a gap was declared "
                f"(--gap); repeat those, or {begin_anew}"
            )
        pieces = [self._part(number) for number in range(1, parts + 1)] if parts else [self._partial]
        if not all(piece.exists() for piece in pieces) or (size and self._partial.stat().st_size < size):
            raise SettingsError(
                f"--output {self._path}: the partial file is missing or too short; {begin_anew}"
            )
        self.offsets, self.ends, self.window = offsets, ends, (begin, end)
        self.bets, self._size, self._parts = bets, size, parts


def _skipping(replay: Replay) -> Skip:
    return lambda message, error: replay.leave_out(at(message, error))


def check_target(path: Path) -> None:
    """Raise SettingsError unless a path is a name in a directory that is there."""
    if not path.name:
        raise SettingsError(f"--output {path}: give the name of a file")
    try:
        has_directory = path.parent.is_dir()
    except OSError as error:  # one above it may not be searched
        raise SettingsError(f"--output {path} cannot be written: {error.strerror}") from None
    if not has_directory:
        raise SettingsError(f"--output {path}: the directory {path.parent} does not exist")


def refuse_existing(path: Path) -> None:
    """Raise SettingsError for a file that is there."""
    if path.exists():
        raise SettingsError(f"--output {path}: the file already exists; remove it, or choose another name")


def locked(path: Path, partial: Path) -> BinaryIO:
    """Open the partial file of a path, and keep others from it until it is closed. Raises SettingsError."""
    try:
        descriptor = os.open(partial, os.O_CREAT | os.O_RDWR, 0o644)
    except OSError as error:
        raise SettingsError(f"--output {path} cannot be written: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(descriptor), partial.stat()):
            raise FileNotFoundError  # whoever had it has just ended
    except OSError:
        os.close(descriptor)
        raise SettingsError(f"--output {path}: another export is writing this file") from None
    return os.fdopen(descriptor, "r+b", _BUFFER)


def close(file: BinaryIO) -> None:
    """Close a file. What was to be kept was written before, and a disk that is full reported."""
    with suppress(OSError):
        file.close()


def synced(path: Path) -> Path:
    """Return a file or directory once it is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return path


def _flushed(file: BinaryIO) -> int:
    """Return the size of a file once all of it is on the disk."""
    file.flush()
    os.fsync(file.fileno())
    return file.tell()

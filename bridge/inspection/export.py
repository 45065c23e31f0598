"""Writes settled bets to a file that is whole or not there, and goes on with one that was interrupted.

Until it is whole, the file is called `FILE.partial` (Parquet: `FILE.partial-1` and so on), and `FILE.resume`
says how far it goes: the bytes or parts that count, and the offsets after the last bet in them. The next
attempt cuts off what was written after them.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from bridge.errors import BridgeError, SettingsError
from bridge.inspection.formats import CsvSink, Format, JsonSink, NamesOf, ParquetSink, join_parquet
from bridge.reader import Bet

SAVE_EVERY: Final = 50_000
"""Bets between two notes of how far the file goes."""


class Export:
    """One file, of one format. `wanted` are the options that it is made with, for `FILE.resume`.

    Raises SettingsError if the file is there already, or was begun with other options.
    """

    def __init__(self, path: Path, format_: Format, wanted: Mapping[str, Any], names: NamesOf = None) -> None:
        if not path.name:
            raise SettingsError(f"--output {path}: give the name of a file")
        try:
            has_directory = path.parent.is_dir()
        except OSError as error:  # one above it may not be searched
            raise SettingsError(f"--output {path} cannot be written: {error.strerror}") from None
        if not has_directory:
            raise SettingsError(f"--output {path}: the directory {path.parent} does not exist")
        self._path = path
        self._format = format_
        self._names = names
        self._wanted = {**wanted, "format": format_}
        self._resume = path.with_name(f"{path.name}.resume")
        self._partial = path.with_name(f"{path.name}.partial")
        self.bets = 0
        """Bets in the file."""
        self.offsets: dict[int, int] | None = None
        """Partition → offset to go on from; None if nothing was written yet."""
        self.ends: list[int] = []
        """The offsets at which the first attempt was to end."""
        self.window: tuple[int, int | None] = 0, None
        """The interval of receipt, Unix milliseconds, as the first attempt understood it."""
        self._size = self._parts = 0
        self._lock = _Lock(path)
        if path.exists():
            self._lock.release()
            raise SettingsError(
                f"--output {path}: the file already exists; remove it, or choose another name"
            )
        if self._resume.exists():
            self._restore()

    def run(self, bets: Iterable[Bet], offsets: Mapping[int, int]) -> None:
        """Write all bets. `offsets` is what is read next of each partition; iterating `bets` moves it."""
        try:
            if self._format == "parquet":
                self._run_parquet(bets, offsets)
            else:
                self._run_text(bets, offsets)
            self._resume.unlink(missing_ok=True)
        except OSError as error:
            raise BridgeError(
                f"{self._path} cannot be written: {error.strerror}. Repeat the command to resume."
            ) from None
        self._lock.release()

    def _run_text(self, bets: Iterable[Bet], offsets: Mapping[int, int]) -> None:
        with self._partial.open("r+b" if self._size else "wb") as file:
            file.seek(self._size)
            file.truncate()
            sink = (
                JsonSink(file, self._names)
                if self._format == "json"
                else CsvSink(file, self._names, head=not self._size)
            )
            for bet in bets:
                sink.write(bet)
                self.bets += 1
                if self.bets % SAVE_EVERY == 0:
                    self._size = _flushed(file)
                    self._save(offsets)
            _flushed(file)
        self._partial.replace(self._path)
        _synced(self._path.parent)

    def _run_parquet(self, bets: Iterable[Bet], offsets: Mapping[int, int]) -> None:
        sink = ParquetSink(self._part(self._parts + 1), self._names)
        try:
            for bet in bets:
                sink.write(bet)
                self.bets += 1
                if self.bets % SAVE_EVERY == 0:
                    sink.close()
                    self._parts += 1
                    _synced(self._part(self._parts))
                    self._save(offsets)
                    sink = ParquetSink(self._part(self._parts + 1), self._names)
        finally:
            sink.close()
        parts = [self._part(number) for number in range(1, self._parts + 2)]
        join_parquet(parts, self._partial)
        _synced(self._partial).replace(self._path)
        _synced(self._path.parent)
        for part in parts:
            part.unlink()

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
        _synced(temporary).replace(self._resume)

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


class _Lock:
    """Keeps a second export from the same file. The lock of a process that dies is free again."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(f"{path.name}.lock")
        try:
            self._descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR, 0o644)
        except OSError as error:
            raise SettingsError(f"--output {path} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise SettingsError(f"--output {path}: another export is writing this file") from None

    def release(self) -> None:
        """Remove the lock of a file that is whole."""
        self._path.unlink(missing_ok=True)
        os.close(self._descriptor)


def _synced(path: Path) -> Path:
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

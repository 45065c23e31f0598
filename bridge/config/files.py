"""Reads files that settings name, none of which may hang the event loop (decision 0049).

To open a FIFO waits for a writer, and to read a file on a server that is gone waits for the server. While a
file cannot be used, its last usable content counts: a rotation replaces it in steps.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from pathlib import Path
from typing import Any, TypeVar

from bridge.errors import SettingsError
from bridge.log import get

T = TypeVar("T")

READ_SECONDS = 2.0
_NO_FILE = "it is not a regular file but a pipe or the like"

_hanging: dict[Path, threading.Thread] = {}
"""The last thread of each file that has not answered in time."""


def read_bytes(file: Path) -> bytes:
    """Return the content of a regular file.

    Raises OSError, also for another kind of file, and after READ_SECONDS; at once while a read hangs.
    """
    content: Future[bytes] = Future()

    def read() -> None:
        try:
            content.set_result(_read(file))
        except Exception as error:  # noqa: BLE001  # whatever it is, the reader gets it
            content.set_exception(error)

    if file not in _hanging or not _hanging[file].is_alive():
        thread = threading.Thread(target=read, name="file", daemon=True)
        thread.start()
        try:
            return content.result(READ_SECONDS)
        except TimeoutError:
            _hanging[file] = thread
    raise OSError(errno.ETIMEDOUT, f"no answer in {READ_SECONDS:g} s", str(file))


def hazard(file: Path) -> str:
    """Return why a library that opens this file would hang, "" if it would not."""
    try:
        read_bytes(file)
    except OSError as error:
        return str(error.strerror) if error.errno in (errno.ETIMEDOUT, errno.EINVAL) else ""
    return ""


def _read(file: Path) -> bytes:
    with open(file, "rb", opener=_without_waiting) as opened:  # Path.open takes no opener
        if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
            raise OSError(errno.EINVAL, _NO_FILE, str(file))
        return opened.read()


def _without_waiting(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NONBLOCK)


_last: dict[Hashable, Any] = {}
_warned: set[Hashable] = set()


def last_good(of: Hashable, read: Callable[[], T], event: str, **named: str) -> T:
    """Return what `read` returns, or what it returned last for these files while it raises SettingsError.

    Logs the event once until it succeeds. Raises SettingsError if it never has.
    """
    try:
        _last[of] = found = read()
        _warned.discard(of)
    except SettingsError as error:
        if of not in _last:
            raise
        found = _last[of]
        if of not in _warned:
            get().warning(event, reason=str(error), **named)
        _warned.add(of)
    return found

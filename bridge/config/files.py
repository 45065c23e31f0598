"""Reads files that settings name, none of which may hang the event loop (decision 0049).

To open a FIFO waits for a writer, and to read a file on a server that is gone waits for the server.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from concurrent.futures import Future
from pathlib import Path

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
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(file))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, _NO_FILE, str(file))
        with open(descriptor, "rb", closefd=False) as opened:
            return opened.read()
    finally:
        os.close(descriptor)

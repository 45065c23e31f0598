"""Files that several processes read and write at the same time."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


def write_atomically(file: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, finds either the old content or the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(file)


@contextlib.contextmanager
def lock(file: Path, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock that the kernel releases when the process ends. Calls `waiting` once before it blocks."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield

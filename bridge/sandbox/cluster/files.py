"""Files that several processes read and write at the same time, and the lines about waiting for them."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path

Progress = Callable[[str], None]
"""Takes one line for a person to read."""


def silent(line: str) -> None:
    """Drop the line."""


def write_atomically(file: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, finds either the old content or the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    part.write_text(text, "utf-8")
    part.replace(file)


@contextlib.contextmanager
def lock(file: Path, progress: Progress, what: str) -> Iterator[None]:
    """Hold a lock that the kernel releases when the process ends. Reports once if it has to wait."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for {what}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield

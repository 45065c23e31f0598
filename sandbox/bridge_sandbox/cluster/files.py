"""Files that several processes read and write at the same time, and the lines about waiting for them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

Progress = Callable[[str], None]
"""Takes one line for a person to read."""


def silent(line: str) -> None:
    """Drop the line."""


TICK_SECONDS = 4


@contextlib.contextmanager
def ticking(progress: Progress) -> Iterator[None]:
    """Report every few seconds that it goes on."""
    ended = threading.Event()

    def tick() -> None:
        seconds = 0
        while not ended.wait(TICK_SECONDS):
            seconds += TICK_SECONDS
            progress(f"  … {seconds} s")

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        ended.set()
        ticker.join()


def make_private(directory: Path) -> None:
    """Make a directory that only its owner can enter, even if it is there already."""
    directory.mkdir(0o700, parents=True, exist_ok=True)
    directory.chmod(0o700)


def open_private(path: str, flags: int) -> int:
    """Open a file as `open` does; one that it creates is for its owner alone."""
    return os.open(path, flags, 0o600)


def write_atomically(file: Path, text: str) -> None:
    """Write a file of the owner alone, so that a reader, or a crash, finds the old content or the new."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}")
    with open(part, "w", encoding="utf-8", opener=open_private) as draft:
        draft.write(text)
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

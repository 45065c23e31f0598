"""Rows in files by a hash of their key, so that what belongs together is compared in constant memory."""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

_MOST_FILES = 400
_ROWS = 100_000
"""Rows of a bucket: they are in memory together."""


class Buckets:
    """Takes rows. `expected` is how many there will be of these keys, also in other directories."""

    def __init__(self, directory: Path, expected: int) -> None:
        directory.mkdir()
        number = min(_MOST_FILES, expected // _ROWS + 1)
        self._files = ExitStack()
        self._open = [self._files.enter_context((directory / f"{n}.rows").open("wb")) for n in range(number)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()

    def put(self, key: str, row: tuple[Any, ...]) -> None:
        """Add a row under a key. Its values are texts, bytes, numbers and booleans."""
        marshal.dump((key, row), self._open[crc32(key.encode()) % len(self._open)])


def groups(*directories: Path) -> Iterator[tuple[str, Sequence[list[tuple[Any, ...]]]]]:
    """Yield each key with its rows of each directory, in the order in which they were added there.

    As many rows were expected in each.
    """
    for name in sorted(file.name for file in directories[0].iterdir()):
        found: dict[str, list[list[tuple[Any, ...]]]] = defaultdict(lambda: [[] for _ in directories])
        for place, directory in enumerate(directories):
            with (directory / name).open("rb") as file:
                while file.peek(1):
                    key, row = marshal.load(file)
                    found[key][place].append(row)
        yield from found.items()

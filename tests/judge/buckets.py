"""Rows in files by a hash of their key, so that what belongs together is compared in constant memory."""

from __future__ import annotations

import marshal
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from zlib import crc32

_MOST_FILES = 400
_ROWS = 100_000
"""Rows of a bucket: they are in memory together."""


class Buckets:
    """Takes rows and returns them key by key. `rows` is how many to expect; `work` an empty directory."""

    def __init__(self, work: Path, rows: int) -> None:
        number = min(_MOST_FILES, rows // _ROWS + 1)
        self._files = ExitStack()
        self._open = [self._files.enter_context((work / f"{n}.rows").open("w+b")) for n in range(number)]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._files.close()
        for file in self._open:
            Path(file.name).unlink()

    def put(self, key: str, row: tuple[Any, ...]) -> None:
        """Add a row under a key. Its values are texts, bytes, numbers and booleans."""
        marshal.dump((key, row), self._open[crc32(key.encode()) % len(self._open)])

    def groups(self) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """Yield each key with its rows, in the order in which they were added."""
        for file in self._open:
            file.seek(0)
            found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
            while file.peek(1):
                key, row = marshal.load(file)
                found[key].append(row)
            yield from found.items()

"""Messages as they come out of the connection, in the order in which the provider sent them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from mypy_extensions import mypyc_attr


@dataclass(frozen=True, slots=True)
class Oversized:
    """What is kept of a message above the size limit."""

    size: int
    """Bytes of the whole message, decompressed."""
    sha256: str
    """Hex digest of the whole message."""
    head: bytes
    """Its first 64 KiB."""

    def __len__(self) -> int:
        """Bytes kept."""
        return len(self.head)


@mypyc_attr(acyclic=True)  # spares the garbage collector
class Received:
    """A whole message and the time at which its last byte was read, Unix seconds.

    `after_read_pause`: the socket was not read for long before it, so it may have been sent long ago.
    """

    def __init__(self, body: bytes | Oversized, at: float, after_read_pause: bool = False) -> None:
        self.body: Final = body
        self.at: Final = at
        self.after_read_pause: Final = after_read_pause

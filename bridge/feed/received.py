"""What comes out of the connection: messages, in the order in which the provider sent them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Oversized:
    """A message above the limit of size, of which only this is kept."""

    size: int
    """Bytes of the whole message, decompressed."""
    sha256: str
    """Hex digest of the whole message."""
    head: bytes
    """Its first 64 KiB."""

    def __len__(self) -> int:
        """Bytes that it takes up."""
        return len(self.head)


class Received:
    """A whole message and the time at which its last byte was read, Unix seconds.

    `stalled` says that the socket had not been read for long before it: it may have been sent long ago.
    """

    def __init__(self, body: bytes | Oversized, at: float, stalled: bool = False) -> None:
        self.body: Final = body
        self.at: Final = at
        self.stalled: Final = stalled

"""Collects the fields of a message that the interface does not document."""

from __future__ import annotations

from typing import Final

MOST_EXTRAS: Final = 100
"""Most paths of unknown fields reported for one message."""
NAME_LENGTH: Final = 60
"""Characters shown of a foreign name."""


class Extras:
    """Paths of unknown fields."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        """Distinct paths, in order."""

    def note(self, path: str, name: str) -> None:
        """Add a field of the objects at a path, such as `data.selections[].`"""
        if len(self._paths) < MOST_EXTRAS:
            self._paths[path + cut(name, NAME_LENGTH)] = None

    def paths(self) -> tuple[str, ...]:
        """Return the distinct paths, in order; at most `MOST_EXTRAS`."""
        return tuple(self._paths) if self._paths else ()

    def clear(self) -> None:
        """Forget all paths."""
        self._paths.clear()


def cut(text: str, length: int) -> str:
    """Return a text of at most this many characters; the last one shows that it was cut."""
    return text if len(text) <= length else text[: length - 1] + "…"

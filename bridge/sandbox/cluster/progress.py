"""Lines about a start that takes a while."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[str], None]
"""Takes one line for a person to read."""


def silent(line: str) -> None:
    """Drop the line."""

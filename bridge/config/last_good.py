"""The last usable content of a file counts while the file cannot be used: a rotation replaces it in steps."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

from bridge.errors import SettingsError
from bridge.log import get

T = TypeVar("T")

_last: dict[Hashable, Any] = {}
_warned: set[Hashable] = set()


def last_good(of: Hashable, read: Callable[[], T], event: str, **named: str) -> T:
    """Return what `read` returns, or what it returned last for these files while it raises SettingsError.

    Logs the event once until it succeeds. Raises SettingsError if it never has.
    """
    try:
        _last[of] = found = read()
        _warned.discard(of)
    except SettingsError as error:
        if of not in _last:
            raise
        found = _last[of]
        if of not in _warned:
            get().warning(event, reason=str(error), **named)
        _warned.add(of)
    return found

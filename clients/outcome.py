"""What became of a client: how the bets that it printed differ from those that there are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from clients.odd import ABORTED, Bet

Rows = list[tuple[str, Any]]
STOPS = "stops"
_WORDS = 150
"""Characters of an error that are shown."""


@dataclass
class Outcome:
    """What a program has printed: keys and values in order, and the error that it ended with."""

    rows: Rows = field(default_factory=list)
    error: str = ""

    def aborted(self) -> int:
        """How many bets it shows that nobody may see."""
        return sum(key.startswith(ABORTED) for key, _ in self.rows)

    def wrong(self, truth: Sequence[tuple[str, Bet | None]]) -> Iterator[str]:
        """Yield what is wrong, besides aborted bets: once for each field."""
        keys = {key for key, _ in truth}
        if extra := sum(key not in keys and not key.startswith(ABORTED) for key, _ in self.rows):
            yield f"{extra} records that are none"
        left = iter([row for row in self.rows if row[0] in keys])
        fields = set[str]()
        found = next(left, None)
        for key, value in truth:
            if found is None or found[0] != key:
                if value is None:
                    yield "no tombstones"
                    continue
                yield f"{STOPS} before `{key}`" + (f": {self.error}" if self.error else "")
                return
            for path, right, seen in differences(value, found[1]):
                name = re.sub(r"\[\d+\]", "", path).rpartition(".")[2]
                if seen != "Unknown" and name not in fields:  # of a new symbol
                    fields.add(name)
                    yield f"`{name}` of `{key}` is {_shown(seen)}, not {_shown(right)}"
            found = next(left, None)

    def symbol(self) -> str:
        """What it makes of a symbol that is newer than the reader's schema."""
        return next((value["betSettlement"] for key, value in self.rows if key == "new-symbol"), "–")


def said_error(log: str) -> str:
    """Return what a log says went wrong, in a line."""
    patterns = (
        r"panicked at .*\n(.+)",
        r"(?m)^panic: (.+)",
        r'(?m)^\{.*?\b(Error: [^"\\]+)',
        r"(?m)^(?:Caused by: |Exception in .*?)?(?:[\w.]*\.)?(\w*(?:Error|Exception)\b.*)",
        r"(.*(?:[Ee]rror|ERROR).*)",
        r"(.+)",
    )
    log = re.sub(r"(?m)^WARNING:.*", "", log)  # the JVM's
    found = (re.findall(pattern, log) for pattern in patterns)
    words = next((match[-1] for match in found if match), "nothing is said").strip()
    return words.replace("|", "/")[:_WORDS]


def _shown(value: Any) -> str:
    return "missing" if value == MISSING else f"`{value!r}`"


MISSING = "<missing>"


def differences(truth: Any, found: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Yield where values differ, with the value that is right and the one that was found.

    A number may be a text: not every language's JSON has integers of 64 bits, or -0.
    """
    match truth, found:
        case dict(), dict():
            for name in sorted({*truth, *found}):
                inner = f"{path}.{name}" if path else name
                yield from differences(truth.get(name, MISSING), found.get(name, MISSING), inner)
        case list(), list() if len(truth) == len(found):
            for number, (one, other) in enumerate(zip(truth, found, strict=True)):
                yield from differences(one, other, f"{path}[{number}]")
        case _ if not same(truth, found):
            yield path, truth, found


def same(truth: Any, found: Any) -> bool:
    """Whether two values that hold no others are the same."""
    if isinstance(truth, float) and not isinstance(found, bool):
        with suppress(TypeError, ValueError):
            return repr(float(found)) == repr(truth)
    if isinstance(truth, int) and not isinstance(truth, bool) and isinstance(found, str):
        return found == str(truth)
    return type(truth) is type(found) and bool(truth == found)

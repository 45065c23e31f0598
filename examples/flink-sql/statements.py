"""The statements of settlements.sql as PyFlink takes them: one at a time, without the SQL client's SET."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from string import Template

SOURCES = ("bets", "settlements", "translations")
"""The tables over the bridge's topics."""
_SET = re.compile(r"SET '(?P<name>[^']+)' = '(?P<value>[^']*)'")


def statements(text: str, variables: Mapping[str, str]) -> Iterator[str]:
    """Yield the statements of a file, without comments and semicolons, `${NAME}` replaced.

    Raises KeyError for a variable that is not given.
    """
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    for statement in Template(code).substitute(variables).split(";\n"):
        if statement := statement.strip().removesuffix(";"):
            yield statement


def setting(statement: str) -> tuple[str, str] | None:
    """Return the name and the value of a SET; None for any other statement."""
    found = _SET.fullmatch(statement)
    return None if found is None else (found["name"], found["value"])


def bounded(table: str) -> str:
    """Return the statement after which a query ends at what is in a source's topic when it starts."""
    return f"ALTER TABLE {table} SET ('scan.bounded.mode' = 'latest-offset')"

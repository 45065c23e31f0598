"""The types of the records are those of the schemas."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

from bridge.avro.schemas import load
from bridge.reader import records
from bridge.reader.records import SettledBet
from bridge.records.place import moment

PRIMITIVE = {"string": str, "long": int, "double": float, "boolean": bool, "null": type(None)}


def annotation(schema: Any, named: dict[str, Any]) -> Any:
    """The type that a value of a schema has in Python."""
    match schema:
        case list():
            found = annotation(schema[0], named)
            for branch in schema[1:]:
                found = annotation(branch, named) | found
            return found
        case {"type": "record", "name": name, "fields": fields}:
            named[name] = getattr(records, name)
            hints = get_type_hints(named[name])
            assert {field["name"]: annotation(field["type"], named) for field in fields} == hints
            return named[name]
        case {"type": "enum", "name": name}:
            named[name] = str
            return str
        case {"type": "array", "items": items}:
            return list[annotation(items, named)]  # type: ignore[misc]
        case {"type": "map", "values": values}:
            return dict[str, annotation(values, named)]  # type: ignore[misc]
        case {"type": inner}:
            return annotation(inner, named)
    return named.get(schema) or PRIMITIVE[schema]


def test_a_settled_bet_has_the_fields_of_its_schema() -> None:
    assert annotation(load("settled-bet"), {}) is SettledBet


@pytest.mark.parametrize(
    ("micros", "shown"),
    [
        (1_790_000_000_000_001, "2026-09-21T14:13:20.000001+00:00"),
        (-62_135_596_800_000_000, "0001-01-01T00:00:00+00:00"),
        (-62_135_596_800_000_001, None),
        (2**63 - 1, None),
    ],
)
def test_a_time_that_python_cannot_hold_is_none(micros: int, shown: str | None) -> None:
    found = moment(micros)
    assert (found and found.isoformat()) == shown

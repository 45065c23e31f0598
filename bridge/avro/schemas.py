"""The schemas that ship with the bridge: the `.avsc` files in `schemas/`, one for each topic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, TypeAlias

from bridge.errors import SchemaError

Schema: TypeAlias = dict[str, Any]
"""A record schema as parsed JSON."""

Fields: TypeAlias = Mapping[str, "Fields"]
"""Names of fields of a record, and of those of the records within."""

ROOT: Final[Traversable] = files("bridge") / "schemas"
NAMESPACE: Final = "settlement"
SUFFIX: Final = ".avsc"

TOPICS: Final = {
    "settled-bet": "bets",
    "feed-checkpoint": "checkpoints",
    "feed-gap": "gaps",
    "translation": "translations",
    "currency": "currencies",
    "snapshot": "snapshots",
}
"""Schema → topic of its records, without the prefix."""
SCHEMAS: Final = {topic: schema for schema, topic in TOPICS.items()}


def subject(topic_prefix: str, name: str) -> str:
    """Return the subject of a schema by TopicNameStrategy: `settlement.bets-value`."""
    return f"{topic_prefix}.{TOPICS[name]}-value"


@cache
def load(name: str) -> Schema:
    """Return a schema by its name in `TOPICS`, such as `settled-bet`. Raises SchemaError like `read`."""
    return read(ROOT / f"{name}{SUFFIX}")


@cache
def versions(name: str) -> tuple[Schema, ...]:
    """Return all versions of a schema, by its full name; none if it is not one of the bridge."""
    for each in TOPICS:
        if f"{NAMESPACE}.{load(each)['name']}" == name:
            return tuple(read(file) for file in (ROOT / "history" / each).iterdir())
    return ()


def only(schema: Any, fields: Fields) -> Any:
    """Return a record's schema with some of its fields: it reads these alone."""
    match schema:
        case {"type": "record"}:
            kept = [field for field in schema["fields"] if field["name"] in fields]
            return schema | {"fields": [f | {"type": only(f["type"], fields[f["name"]])} for f in kept]}
        case {"type": "array"}:
            return schema | {"items": only(schema["items"], fields)}
        case list():
            return [only(branch, fields) for branch in schema]
    return schema


def read(file: Traversable) -> Schema:
    """Read the schema in a file. Raises SchemaError if there is no file or it is not a JSON object."""
    try:
        schema = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SchemaError(f"{file.name} cannot be read: {error}") from None
    if not isinstance(schema, dict):
        raise SchemaError(f"{file.name} must hold a JSON object, not {type(schema).__name__}")
    return schema

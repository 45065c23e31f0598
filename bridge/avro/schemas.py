"""The schemas that ship with the bridge: the `.avsc` files in `schemas/`, one a topic."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any, Final, TypeAlias

from bridge.errors import SchemaError

Schema: TypeAlias = dict[str, Any]
"""A record schema as JSON, as in its `.avsc` file."""

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
"""Schema → the topic of its records, without the prefix."""


def subject(topic_prefix: str, name: str) -> str:
    """The registry's subject of a schema's topic, by TopicNameStrategy: `settlement.bets-value`."""
    return f"{topic_prefix}.{TOPICS[name]}-value"


@cache
def load(name: str) -> Schema:
    """A schema by its name in `TOPICS`, such as `settled-bet`. Raises SchemaError if it is not JSON."""
    return read(ROOT / f"{name}{SUFFIX}")


def read(file: Traversable) -> Schema:
    """The schema in a file. Raises SchemaError when there is none or it is not a JSON object."""
    try:
        schema = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise SchemaError(f"{file.name} cannot be read: {error}") from None
    if not isinstance(schema, dict):
        raise SchemaError(f"{file.name} holds no record schema but {type(schema).__name__}")
    return schema

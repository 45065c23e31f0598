"""Decodes Avro values with fastavro, by the schema that the registry has for them."""

from __future__ import annotations

import json
from io import BytesIO
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import fastavro

SCHEMAS = Path(__file__).parents[2] / "schemas"
_SECONDS = 60.0


class Foreign(ValueError):
    """The value is not in the wire format, or its schema is not known."""


class Decoder:
    """Decodes values in Confluent's wire format. Date-times stay microseconds."""

    def __init__(self, registry_url: str) -> None:
        self._url = registry_url
        self._schemas: dict[int, Any] = {}
        self._ours: dict[int, bool] = {}
        self._files = [json.loads(file.read_text("utf-8")) for file in SCHEMAS.rglob("*.avsc")]

    def decode(self, value: bytes | None) -> dict[str, Any]:
        """Return a record. Raises Foreign if that is impossible, OSError if the registry does not answer."""
        if value is None or len(value) < 5 or value[0]:
            raise Foreign("no value in the wire format")
        schema = self._schema(int.from_bytes(value[1:5], "big"))
        try:
            rest = BytesIO(value[5:])
            datum: Any = fastavro.schemaless_reader(rest, schema, None)
        except (ValueError, IndexError, EOFError, StopIteration, KeyError) as error:
            raise Foreign(f"no record of its schema: {error}") from None
        if not isinstance(datum, dict) or rest.read(1):
            raise Foreign("no record of its schema")
        return datum

    def is_ours(self, value: bytes | None) -> bool:
        """Whether the schema of a value that was decoded is one of the files, logical types included."""
        return value is not None and self._ours[int.from_bytes(value[1:5], "big")]

    def _schema(self, schema_id: int) -> Any:
        if schema_id not in self._schemas:
            try:
                with urlopen(f"{self._url}/schemas/ids/{schema_id}", timeout=_SECONDS) as answer:
                    schema = json.loads(json.load(answer)["schema"])
            except HTTPError as error:
                raise Foreign(f"the registry does not have schema {schema_id}: {error.code}") from None
            self._ours[schema_id] = schema in self._files
            self._schemas[schema_id] = fastavro.parse_schema(_plain(schema))
        return self._schemas[schema_id]


def _plain(node: Any) -> Any:
    """Leave out logical types, which fastavro would convert."""
    if isinstance(node, dict):
        return {name: _plain(inner) for name, inner in node.items() if name != "logicalType"}
    return [_plain(inner) for inner in node] if isinstance(node, list) else node

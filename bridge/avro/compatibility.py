"""Can a reader with one schema read what was written with another?

The rules of Avro's schema resolution, and one more: a logical type must stay what it is. Avro would
let `timestamp-millis` be read as `timestamp-micros`, a thousand times too small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from fastavro.schema import SchemaParseException, parse_schema

from bridge.avro.schemas import Schema
from bridge.errors import SchemaError

Node: TypeAlias = Any
"""Any part of a schema as JSON: a name, a union's list, or an object."""

_PROMOTIONS: Final = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""Written as → may be read as, besides itself."""


def incompatibilities(reader: Schema, writer: Schema) -> list[str]:
    """Why a reader with the schema `reader` cannot read records of `writer`; empty when it can.

    Each reason begins with the path of the field. Raises SchemaError for what is no Avro schema.
    """
    comparison = _Comparison()
    return list(
        comparison.reasons(
            _parse(reader, comparison.reader_types),
            _parse(writer, comparison.writer_types),
            str(reader.get("name")),
        )
    )


def _parse(schema: Schema, named: dict[str, Node]) -> Node:
    """The schema with full names throughout; the types that it defines are added to `named`."""
    try:
        return parse_schema(schema, named)
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"{schema.get('name', 'the schema')} is no Avro schema: {error}") from None


class _Comparison:
    """One walk down a reader's and a writer's schema."""

    def __init__(self) -> None:
        self.reader_types: dict[str, Node] = {}
        self.writer_types: dict[str, Node] = {}
        self._begun: set[tuple[str, str]] = set()
        """Pairs of records already under way: a recursive type ends here."""

    def reasons(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        reader, writer = _definition(reader, self.reader_types), _definition(writer, self.writer_types)
        if isinstance(writer, list):
            for branch in writer:
                yield from self.reasons(reader, branch, path)
        elif isinstance(reader, list):
            branches = [_definition(branch, self.reader_types) for branch in reader]
            tries = [list(self.reasons(branch, writer, path)) for branch in branches]
            if all(tries):
                same = [
                    t for t, branch in zip(tries, branches, strict=True) if _kind(branch) == _kind(writer)
                ]
                yield from same[0] if same else [f"{path}: {_kind(writer)} cannot be read as {reader}"]
        elif _kind(reader) not in {_kind(writer), *_PROMOTIONS.get(_kind(writer), ())}:
            yield f"{path}: {_kind(writer)} cannot be read as {_kind(reader)}"
        elif _logical(reader) != _logical(writer):
            yield f"{path}: logical type {_logical(writer)} must not be read as {_logical(reader)}"
        elif _kind(reader) == "array":
            yield from self.reasons(reader["items"], writer["items"], f"{path}[]")
        elif _kind(reader) == "map":
            yield from self.reasons(reader["values"], writer["values"], f"{path}{{}}")
        elif _kind(reader) in ("record", "enum", "fixed"):
            yield from self._named_reasons(reader, writer, path)

    def _named_reasons(self, reader: Node, writer: Node, path: str) -> Iterator[str]:
        if reader["name"] != writer["name"]:
            yield f"{path}: {writer['name']} cannot be read as {reader['name']}"
        elif reader["type"] == "enum":
            new = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
            if new and "default" not in reader:
                yield f"{path}: the reader has neither {', '.join(new)} nor a default"
        elif reader["type"] == "fixed":
            if reader["size"] != writer["size"]:
                yield f"{path}: {writer['size']} bytes cannot be read as {reader['size']}"
        elif (reader["name"], writer["name"]) not in self._begun:
            self._begun.add((reader["name"], writer["name"]))
            written = {field["name"]: field["type"] for field in writer["fields"]}
            for field in reader["fields"]:
                place = f"{path}.{field['name']}"
                if field["name"] in written:
                    yield from self.reasons(field["type"], written[field["name"]], place)
                elif "default" not in field:
                    yield f"{place}: missing where it was written, and the reader has no default"


def _definition(node: Node, named: dict[str, Node]) -> Node:
    return named.get(node, node) if isinstance(node, str) else node


def _kind(node: Node) -> str:
    """`long`, `record`, … of a node that is no union; the full name where it is a reference."""
    return str(node["type"] if isinstance(node, dict) else node)


def _logical(node: Node) -> str | None:
    return node.get("logicalType") if isinstance(node, dict) else None

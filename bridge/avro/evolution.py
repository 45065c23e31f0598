"""Checks the schemas and their compatibility with all released versions (`bridge schemas check`).

Works offline. `history/<schema>/v<n>.avsc` holds each released version of a schema. The current one must be
FULL_TRANSITIVE-compatible with all of them: old readers read new records, new readers read old ones, across
any number of versions. The registry demands the same, but later.

The rules of compatibility are those of Avro's schema resolution, and one more: a logical type must not
change. Avro would read a `timestamp-millis` as `timestamp-micros`, a thousand times too small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.resources.abc import Traversable
from typing import Any, Final, TypeAlias

from fastavro.schema import SchemaParseException, parse_schema

from bridge.avro.schemas import NAMESPACE, ROOT, SUFFIX, TOPICS, Schema, read
from bridge.errors import SchemaError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_READERS_DEFAULT: Final = "Unknown"


def check(root: Traversable = ROOT, names: Iterable[str] = TOPICS) -> list[str]:
    """Return the problems of these schemas and their history, each with the file and the field's path."""
    return [problem for name in names for problem in _check(root, name)]


def _check(root: Traversable, name: str) -> Iterator[str]:
    file = f"{name}{SUFFIX}"
    try:
        current = read(root / file)
        incompatibilities(current, current)  # parses it
        yield from _root_problems(file, name, current)
        yield from _type_problems(f"{file}: {current.get('name')}", current)
        yield from _history_problems(root / "history" / name, file, current)
    except SchemaError as error:
        yield f"{file}: {error}"


def _root_problems(file: str, name: str, schema: Schema) -> Iterator[str]:
    expected = "".join(part.capitalize() for part in name.split("-"))
    if (schema.get("type"), schema.get("name"), schema.get("namespace")) != ("record", expected, NAMESPACE):
        yield f"{file}: must be the record {expected} in the namespace {NAMESPACE}"


def _type_problems(place: str, node: Any) -> Iterator[str]:
    """Yield the problems of a type and of the types inside it; `place` is its path."""
    if isinstance(node, list):
        if len(node) != 2 or node[0] != "null":
            yield f'{place}: a union must be ["null", X]'
        for branch in node:
            yield from _type_problems(place, branch)
    elif isinstance(node, dict):
        kind = node["type"]
        if kind in ("record", "enum"):
            yield from _named_problems(place, node)
        yield from _type_problems(f"{place}[]", node.get("items"))
        yield from _type_problems(f"{place}{{}}", node.get("values"))
        for field in node.get("fields", ()):
            yield from _field_problems(f"{place}.{field['name']}", field)


def _named_problems(place: str, node: Any) -> Iterator[str]:
    if not node.get("doc"):
        yield f"{place}: {node['name']} has no doc"
    if node["type"] == "enum" and node.get("default") != _READERS_DEFAULT:
        fix = f"needs the default {_READERS_DEFAULT}, or a new symbol breaks old readers"
        yield f"{place}: {node['name']} {fix}"
    names = [field["name"] for field in node.get("fields", ())] + node.get("symbols", [])
    for name in {name for name in names if names.count(name) > 1}:
        yield f"{place}: {name} occurs twice"
    for name in [node["name"], *names]:
        if not _NAME(name):
            yield f"{place}: {name!r} is not an Avro name: only letters, digits and _, no digit first"


def _field_problems(place: str, field: Any) -> Iterator[str]:
    if not field.get("doc"):
        yield f"{place}: has no doc"
    if isinstance(field["type"], list) and field.get("default", ...) is not None:
        yield f"{place}: may be null, so its default must be null"
    yield from _type_problems(place, field["type"])


def _history_problems(folder: Traversable, file: str, current: Schema) -> Iterator[str]:
    numbers = sorted(_released(folder))
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"history/{folder.name}: versions must be numbered from v1 without gaps, not {numbers}"
    versions = {f"history/{folder.name}/v{n}{SUFFIX}": read(folder / f"v{n}{SUFFIX}") for n in numbers}
    if current not in list(versions.values())[-1:]:
        new = f"v{max(numbers, default=0) + 1}{SUFFIX}"
        yield f"{file}: is not the latest version in the history: add it as {new}"
    for place, version in versions.items():
        for reason in incompatibilities(current, version):
            yield f"{file}: cannot read records of {place}: {reason}"
        for reason in incompatibilities(version, current):
            yield f"{file}: its records cannot be read with {place}: {reason}"


def _released(folder: Traversable) -> Iterator[int]:
    if folder.is_dir():
        for file in folder.iterdir():
            if version := re.fullmatch(rf"v([1-9][0-9]*){re.escape(SUFFIX)}", file.name):
                yield int(version[1])


# Compatibility.

Node: TypeAlias = Any
"""Any part of a schema as JSON: a name, a union's list, or an object."""

_PROMOTIONS: Final = {
    "int": {"long", "float", "double"},
    "long": {"float", "double"},
    "float": {"double"},
    "string": {"bytes"},
    "bytes": {"string"},
}
"""Written type → types that may read it, besides itself."""


def incompatibilities(reader: Schema, writer: Schema) -> list[str]:
    """Return the reasons why the schema `reader` cannot read records of `writer`.

    Each reason begins with the path of the field. Raises SchemaError for an invalid schema.
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
    """Return the schema with full names; add its named types to `named`."""
    try:
        return parse_schema(schema, named)
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"{schema.get('name', 'the schema')} is not an Avro schema: {error}") from None


class _Comparison:
    """One comparison of a reader's and a writer's schema."""

    def __init__(self) -> None:
        self.reader_types: dict[str, Node] = {}
        self.writer_types: dict[str, Node] = {}
        self._begun: set[tuple[str, str]] = set()
        """Pairs of records already visited, so that recursive types end."""

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
                    yield f"{place}: missing in written records, and the reader has no default"


def _definition(node: Node, named: dict[str, Node]) -> Node:
    return named.get(node, node) if isinstance(node, str) else node


def _kind(node: Node) -> str:
    """Return `long`, `record`, … of a node that is not a union; the full name of a reference."""
    return str(node["type"] if isinstance(node, dict) else node)


def _logical(node: Node) -> str | None:
    return node.get("logicalType") if isinstance(node, dict) else None

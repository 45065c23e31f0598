"""Checks the schemas and their compatibility with all released versions (`bridge schemas check`).

Works offline. `history/<schema>/v<n>.avsc` holds each released version of a schema. The current one must be
FULL_TRANSITIVE-compatible with all of them: old readers read new records, new readers read old ones, across
any number of versions. The registry demands the same, but later.

The rules of compatibility are those of Avro's schema resolution. In both directions they allow no other type,
and here no other logical type: Avro would read a `timestamp-millis` as `timestamp-micros`, a thousand times
too small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.resources.abc import Traversable
from itertools import pairwise
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
        differences(current, current)  # parses it
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
        for reason in differences(current, version):
            yield f"{file}: is not compatible with {place}: {reason}"
    fields = {place: set(_fields(version, "")) for place, version in versions.items()}
    for (_, before), (place, after) in pairwise(fields.items()):
        added, gone = sorted(after - before), sorted(before - after)
        if added and gone:  # the bridge before sees neither, and recognises no bet of it
            yield f"{place}: adds {added[0]} and drops {gone[0]}: drop it in a later release"


def _fields(node: Any, path: str) -> Iterator[str]:
    """Yield the path of each field of a type and of the types inside it."""
    if isinstance(node, list):
        for branch in node:
            yield from _fields(branch, path)
    elif isinstance(node, dict):
        yield from _fields(node.get("items"), path)
        yield from _fields(node.get("values"), path)
        for field in node.get("fields", ()):
            yield (place := f"{path}.{field['name']}".lstrip("."))
            yield from _fields(field["type"], place)


def _released(folder: Traversable) -> Iterator[int]:
    if folder.is_dir():
        for file in folder.iterdir():
            if version := re.fullmatch(rf"v([1-9][0-9]*){re.escape(SUFFIX)}", file.name):
                yield int(version[1])


# Compatibility.

Node: TypeAlias = Any
"""Any part of a schema as JSON: a name, a union's list, or an object."""


def differences(current: Schema, released: Schema) -> list[str]:
    """Return the reasons why records of one schema cannot be read with the other.

    A type stays as it is: Avro reads a long as a double, but no double as a long. Each reason begins with the
    path of the field. Raises SchemaError for an invalid schema.
    """
    comparison = _Comparison()
    current_root = _parse(current, comparison.current_types)
    released_root = _parse(released, comparison.released_types)
    return list(comparison.reasons(current_root, released_root, str(current.get("name"))))


def _parse(schema: Schema, named: dict[str, Node]) -> Node:
    """Return the schema with full names; add its named types to `named`."""
    try:
        return parse_schema(schema, named)
    except (SchemaParseException, KeyError, TypeError, ValueError) as error:
        raise SchemaError(f"{schema.get('name', 'the schema')} is not an Avro schema: {error}") from None


_MEANING: Final = (
    *("type", "name", "fields", "items", "values", "symbols", "size"),
    *("default", "aliases", "logicalType", "precision", "scale"),
)
"""What decides how a record is written and read; a doc or a property of one's own does not."""


def unlike(schema: Schema, other: Schema) -> str:
    """Return the path of the first part in which two schemas mean something else, "" if none does.

    Raises SchemaError for an invalid schema.
    """
    return _unlike(_parse(schema, {}), _parse(other, {}), str(schema.get("name")))


def _unlike(node: Node, other: Node, path: str) -> str:
    node, other = _plain(node), _plain(other)
    if isinstance(node, dict) and isinstance(other, dict):
        return next(filter(None, (_unlike_member(node, other, key, path) for key in _MEANING)), "")
    if isinstance(node, list) and isinstance(other, list) and len(node) == len(other):
        pairs = zip(node, other, strict=True)
        return next(filter(None, (_unlike(one, another, _path(path, one)) for one, another in pairs)), "")
    return "" if node == other else path


def _unlike_member(node: Node, other: Node, key: str, path: str) -> str:
    one, another = ([key in it, it.get(key)] if key == "default" else it.get(key) for it in (node, other))
    if key in ("type", "fields", "items", "values"):
        return _unlike(one, another, path)
    return "" if (one or None) == (another or None) else f"{path}: {key}"


def _plain(node: Node) -> Node:
    """Return a type without a wrapper: `{"type": "string"}` is `"string"`."""
    while isinstance(node, dict) and not {*_MEANING[1:]}.intersection(node) and "type" in node:
        node = node["type"]
    return node


def _path(path: str, node: Node) -> str:
    return f"{path}.{node['name']}" if isinstance(node, dict) and "type" in node and "name" in node else path


class _Comparison:
    """One comparison of a schema with a released version of it."""

    def __init__(self) -> None:
        self.current_types: dict[str, Node] = {}
        self.released_types: dict[str, Node] = {}
        self._begun: set[str] = set()
        """Records already visited, so that recursive types end."""

    def reasons(self, current: Node, released: Node, path: str) -> Iterator[str]:
        current, released = _resolved(current, self.current_types), _resolved(released, self.released_types)
        if _kind(current) != _kind(released):
            yield f"{path}: was {_kind(released)} and is {_kind(current)}"
        elif isinstance(current, list):
            for branch, other in zip(current, released, strict=True):
                yield from self.reasons(branch, other, path)
        elif _kind(current) == "array":
            yield from self.reasons(current["items"], released["items"], f"{path}[]")
        elif _kind(current) == "map":
            yield from self.reasons(current["values"], released["values"], f"{path}{{}}")
        elif isinstance(current, dict) and current["type"] == "enum":
            yield from _enum_reasons(current, released, path)
        elif isinstance(current, dict) and current["type"] == "record":
            yield from self._record_reasons(current, released, path)

    def _record_reasons(self, current: Node, released: Node, path: str) -> Iterator[str]:
        if current["name"] in self._begun:
            return
        self._begun.add(current["name"])
        fields, others = ({x["name"]: x for x in node["fields"]} for node in (current, released))
        for name, field in (others | fields).items():
            if name in fields and name in others:
                yield from self.reasons(field["type"], others[name]["type"], f"{path}.{name}")
            elif "default" not in field:
                yield f"{path}.{name}: one version lacks it, and the other has no default"


def _enum_reasons(current: Node, released: Node, path: str) -> Iterator[str]:
    for reader, writer in ((current, released), (released, current)):
        new = [symbol for symbol in writer["symbols"] if symbol not in reader["symbols"]]
        if new and "default" not in reader:
            yield f"{path}: one version has {', '.join(new)}, the other neither that nor a default"


def _resolved(node: Node, named: dict[str, Node]) -> Node:
    """Return the definition of a named type; a union with its branches resolved, ordered by kind."""
    if isinstance(node, list):
        return sorted((_resolved(branch, named) for branch in node), key=_kind)
    return named.get(node, node) if isinstance(node, str) else node


def _kind(node: Node) -> str:
    """Return what must not change: `long (timestamp-micros)`, `record settlement.Bet`, `long or null`."""
    match node:
        case list():
            return " or ".join(map(_kind, node))
        case {"logicalType": logical, **type_}:
            return f"{_kind(type_)} ({logical})"
        case {"type": "fixed"}:
            return f"fixed {node['name']} of {node['size']} bytes"
        case {"name": name}:
            return f"{node['type']} {name}"
        case {"type": kind}:
            return str(kind)
    return str(node)

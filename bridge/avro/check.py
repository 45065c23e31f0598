"""`bridge schemas check`: are the schemas as they must be, and may they replace what was released?

Offline. Each released version of a schema is kept in `history/<schema>/v<n>.avsc`, and the current one
has to be FULL_TRANSITIVE-compatible with all of them: old readers read new records, new readers read
old ones, across any number of versions. That is what the registry asks, only earlier.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.resources.abc import Traversable
from typing import Any, Final, NamedTuple

from bridge.avro.compatibility import incompatibilities
from bridge.avro.schemas import NAMESPACE, ROOT, SUFFIX, TOPICS, Schema, read
from bridge.errors import SchemaError

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_READERS_DEFAULT: Final = "Unknown"


class Problem(NamedTuple):
    """Something wrong with a schema."""

    place: str
    """The file and, after a colon, the path of the field."""
    text: str

    def __str__(self) -> str:
        return f"{self.place}: {self.text}"


def check(root: Traversable = ROOT, names: Iterable[str] = TOPICS) -> list[Problem]:
    """Everything wrong with the schemas named and their history; empty when all is well."""
    return [problem for name in names for problem in _check(root, name)]


def _check(root: Traversable, name: str) -> Iterator[Problem]:
    file = f"{name}{SUFFIX}"
    try:
        current = read(root / file)
        incompatibilities(current, current)  # parses it
        yield from _root_problems(file, name, current)
        yield from _type_problems(f"{file}: {current.get('name')}", current)
        yield from _history_problems(root / "history" / name, file, current)
    except SchemaError as error:
        yield Problem(file, str(error))


def _root_problems(file: str, name: str, schema: Schema) -> Iterator[Problem]:
    expected = "".join(part.capitalize() for part in name.split("-"))
    if (schema.get("type"), schema.get("name"), schema.get("namespace")) != ("record", expected, NAMESPACE):
        yield Problem(file, f"must be the record {expected} in the namespace {NAMESPACE}")


def _type_problems(place: str, node: Any) -> Iterator[Problem]:
    """What is wrong with a type and with those inside it. `place` names it."""
    if isinstance(node, list):
        if len(node) != 2 or node[0] != "null":
            yield Problem(place, 'the only union in use is ["null", X]')
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


def _named_problems(place: str, node: Any) -> Iterator[Problem]:
    if not node.get("doc"):
        yield Problem(place, f"{node['name']} has no doc")
    if node["type"] == "enum" and node.get("default") != _READERS_DEFAULT:
        yield Problem(
            place,
            f"{node['name']} needs the default {_READERS_DEFAULT}, or a new symbol breaks old readers",
        )
    names = [field["name"] for field in node.get("fields", ())] + node.get("symbols", [])
    for name in {name for name in names if names.count(name) > 1}:
        yield Problem(place, f"{name} occurs twice")
    for name in [node["name"], *names]:
        if not _NAME(name):
            yield Problem(place, f"{name!r} is no Avro name: letters, digits and _ only, no digit first")


def _field_problems(place: str, field: Any) -> Iterator[Problem]:
    if not field.get("doc"):
        yield Problem(place, "has no doc")
    if isinstance(field["type"], list) and field.get("default", ...) is not None:
        yield Problem(place, "may be null, so its default must be null")
    yield from _type_problems(place, field["type"])


def _history_problems(folder: Traversable, file: str, current: Schema) -> Iterator[Problem]:
    numbers = sorted(_released(folder))
    if numbers != list(range(1, len(numbers) + 1)):
        yield Problem(f"history/{folder.name}", f"versions must run from v1 without a hole, not {numbers}")
    versions = {f"history/{folder.name}/v{n}{SUFFIX}": read(folder / f"v{n}{SUFFIX}") for n in numbers}
    if current not in list(versions.values())[-1:]:
        yield Problem(
            file,
            f"is not the latest version in the history: add it as v{max(numbers, default=0) + 1}{SUFFIX}",
        )
    for place, version in versions.items():
        for reason in incompatibilities(current, version):
            yield Problem(file, f"cannot read records of {place}: {reason}")
        for reason in incompatibilities(version, current):
            yield Problem(file, f"its records cannot be read with {place}: {reason}")


def _released(folder: Traversable) -> Iterator[int]:
    if folder.is_dir():
        for file in folder.iterdir():
            if version := re.fullmatch(rf"v([1-9][0-9]*){re.escape(SUFFIX)}", file.name):
                yield int(version[1])

"""What one person can hold: small classes, few parameters, one name for one thing.

What is larger is listed with the number that it may not exceed: a record of the interface or of the settings
has as many fields as these have, and a few cores are not yet smaller.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import chain

import pytest

from tests.repo.source import MODULES

ATTRIBUTES, PARAMETERS = 14, 8
LARGER = {
    # Records.
    "SettledBetItem": 21,
    "SettledBetItemModel": 21,
    "Checkpoint": 18,
    # Cores.
    "Position": 22,
    "_Audit": 18,
    "TopicScan": 17,
    "Export": 15,
    "Replay": 16,
}
"""Class → most attributes."""
LONGER: dict[str, int] = {}
"""Function → most parameters."""
TWICE = {"Currency", "Snapshot", "Translation"}
"""Of readers and of the jobs that write: one type for both is still to come."""

TREES = {name: tree for name, tree in MODULES.items() if name.partition(".")[0] == "bridge"}


def attributes(of: ast.ClassDef) -> set[str]:
    """The names that its body declares, and those that its methods assign."""
    declared = [node.target for node in of.body if isinstance(node, ast.AnnAssign)]
    found = {target.id for target in declared if isinstance(target, ast.Name)}
    for target in chain.from_iterable(map(_targets, ast.walk(of))):
        match target:
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                found.add(name)
    return found


def _targets(node: ast.AST) -> Iterator[ast.expr]:
    match node:
        case ast.Assign(targets=targets):
            yield from chain.from_iterable(t.elts if isinstance(t, ast.Tuple) else [t] for t in targets)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            yield target


def test_a_class_has_few_attributes() -> None:
    nodes = chain.from_iterable(map(ast.walk, TREES.values()))
    found = {node.name: len(attributes(node)) for node in nodes if isinstance(node, ast.ClassDef)}
    large = {name: count for name, count in found.items() if count > LARGER.get(name, ATTRIBUTES)}
    assert not large
    assert not {name for name in LARGER if found[name] <= ATTRIBUTES}, "they need no exception any more"


def parameters(of: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The number of its parameters, without the object or class of a method."""
    names = [argument.arg for argument in (*of.args.posonlyargs, *of.args.args, *of.args.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_a_function_has_few_parameters() -> None:
    found = {
        node.name: parameters(node)
        for name, tree in TREES.items()
        if not name.startswith("bridge.cli")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and parameters(node) > PARAMETERS
    }
    assert found == LONGER


@pytest.mark.parametrize(("package", "twice"), [("bridge", TWICE), ("bridge_sandbox", set())])
def test_a_class_has_a_name_of_its_own(package: str, twice: set[str]) -> None:
    trees = [tree for name, tree in MODULES.items() if name.partition(".")[0] == package]
    nodes = chain.from_iterable(map(ast.walk, trees))
    counts = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert {name for name, count in counts.items() if count > 1} == twice

"""The two packages as their source says it: modules, what they import and what they call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "bridge"
SANDBOX = ROOT / "sandbox" / "bridge_sandbox"


def modules() -> dict[str, ast.Module]:
    """Name → syntax tree of every module, such as `bridge.feed.position`; a package by its own name."""
    found = {}
    for file in sorted([*PACKAGE.rglob("*.py"), *SANDBOX.rglob("*.py")]):
        top = SANDBOX if file.is_relative_to(SANDBOX) else PACKAGE
        parts = file.relative_to(top.parent).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(file.read_text("utf-8"), str(file))
    return found


MODULES = modules()


@cache
def imports(name: str) -> set[str]:
    """The modules of the packages that a module imports, wherever in it the import stands."""
    return {module for found in dotted(MODULES[name]) if (module := _module(found)) and module != name}


@cache
def outside(name: str) -> set[str]:
    """What a module imports from outside the packages, dotted."""
    return {found for found in dotted(MODULES[name]) if _module(found) is None}


def dotted(tree: ast.AST) -> Iterator[str]:
    """Whatever a module imports, dotted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _module(dotted: str) -> str | None:
    """The module that a dotted name is, or that it is in; None when it is outside the packages."""
    while dotted and dotted not in MODULES:
        dotted = dotted.rpartition(".")[0]
    return dotted or None


def called(name: str) -> Iterator[tuple[str, int]]:
    """Every `library.function` that a module mentions, by the library's own names, and the line."""
    tree = MODULES[name]
    aliases: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            aliases |= {alias.asname or alias.name: alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            aliases |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            first, _, rest = ast.unparse(node).partition(".")
            if first in aliases:
                yield f"{aliases[first]}.{rest}".rstrip("."), node.lineno

"""What the files are like, whatever is in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.repo.source import MODULES, ROOT
from tests.tools import ran


def own_files() -> list[Path]:
    """The files of the project: what is tracked, and what is about to be."""
    listed = ran("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def test_every_module_says_what_it_is() -> None:
    silent = [
        f"{name}: {getattr(node, 'name', 'module')}"
        for name, tree in MODULES.items()
        if not name.endswith("__main__")
        for node in public(tree)
        if not ast.get_docstring(node) and getattr(node, "name", "") != "main"
    ]
    assert silent == []


Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def public(node: ast.Module | ast.ClassDef) -> Iterator[Documented]:
    """A module or class with all that is public in it, on every level but inside functions."""
    yield node
    for child in node.body:
        if isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from public(child)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) and not child.name.startswith("_"):
            yield child


def test_no_file_names_a_registry() -> None:
    hosts = [".".join(parts) for parts in _REGISTRIES]
    named = [
        f"{file.relative_to(ROOT)}: {host}"
        for file in own_files()
        for host in hosts
        if host.encode() in file.read_bytes()
    ]
    assert named == []


_REGISTRIES = [
    ("pypi", "org"),
    ("pythonhosted", "org"),
    ("maven", "org"),
    ("maven", "apache", "org"),
    ("packages", "confluent", "io"),
    ("docker", "io"),
    ("ghcr", "io"),
    ("quay", "io"),
    ("npmjs", "org"),
    ("proxy", "golang", "org"),
]


@pytest.mark.parametrize("file", sorted((ROOT / "requirements").glob("*.txt")), ids=lambda file: file.name)
def test_requirements_are_locked_by_hash_and_name_no_address(file: Path) -> None:
    text = file.read_text("utf-8")
    assert "://" not in text
    requirements = [r for r in re.split(r"(?<!\\)\n", text) if r and not r.startswith("#")]
    assert requirements
    assert [
        r for r in requirements if not re.match(r"[\w.-]+(\[[\w,]+\])?==[^ ]+ .*--hash=sha256:", r, re.S)
    ] == []

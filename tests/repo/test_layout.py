"""What the files are like, whatever is in them."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.config import KafkaSettings, Settings
from bridge.errors import BridgeError
from tests.repo.source import MODULES, ROOT


def own_files() -> list[Path]:
    """The files of the project: what is tracked, and what is about to be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()]


def test_every_module_says_what_it_is() -> None:
    """And so does every public class and function in it; a script's `main` is its module."""
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
    """Where packages come from is the business of whoever installs them."""
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
    """Each with its version and at least one hash."""
    text = file.read_text("utf-8")
    assert "://" not in text
    requirements = [r for r in re.split(r"(?<!\\)\n", text) if r and not r.startswith("#")]
    assert requirements
    assert [
        r for r in requirements if not re.match(r"[\w.-]+(\[[\w,]+\])?==[^ ]+ .*--hash=sha256:", r, re.S)
    ] == []


def documented() -> dict[str, set[str]]:
    """Section → settings in the example file, commented out or not."""
    found: dict[str, set[str]] = {}
    section = ""
    for line in (ROOT / "bridge.example.toml").read_text("utf-8").splitlines():
        if match := re.match(r"#?\[(\w+)\]$", line):
            section = match[1]
            found[section] = set()
        elif match := re.match(r"#?(\w+) = ", line):
            found[section].add(match[1])
    return found


def test_every_setting_is_in_the_example_file() -> None:
    """And nothing else is, but for Kafka's own properties."""
    example = documented()
    assert example.keys() == Settings.model_fields.keys()
    for section, field in Settings.model_fields.items():
        model = field.annotation
        assert isinstance(model, type)
        names = set(model.model_fields)
        assert names <= example[section]
        assert names == example[section] or model is KafkaSettings


def test_the_example_file_shows_the_defaults() -> None:
    """What is commented out there is what holds when it is left so."""
    text = (ROOT / "bridge.example.toml").read_text("utf-8")
    values = tomllib.loads(re.sub(r"^#(\w+ = )", r"\1", text, flags=re.MULTILINE))
    defaults = Settings().model_dump(mode="json")
    for section, settings in values.items():
        for name, value in settings.items():
            default = defaults[section].get(name)
            if default is not None:
                assert value == default, f"{section}.{name}"


def test_the_readme_lists_the_exit_codes() -> None:
    """Exactly those of the errors, of success and of Ctrl-C."""
    readme = (ROOT / "README.md").read_text("utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", readme, re.MULTILINE)}
    assert listed == {0, 130} | {error.exit_code for error in below(BridgeError)}


def below(root: type[BridgeError]) -> list[type[BridgeError]]:
    """A class and all below it."""
    return [root, *(error for child in root.__subclasses__() for error in below(child))]

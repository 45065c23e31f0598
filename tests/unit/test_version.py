"""The version tells each build from every other."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from bridge import RELEASE, __version__, version_of
from tests.repo.source import ROOT

HOOK = "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])('..')"
TOOL = ["git", "-c", "user.name=x", "-c", "user.email=x@y.example"]


def git(checkout: Path, *arguments: str) -> str:
    ran = subprocess.run([*TOOL, *arguments], cwd=checkout, check=True, capture_output=True, text=True)
    return ran.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What the metadata is built from, in a repository of one commit."""
    (there := tmp_path / "checkout").mkdir()
    (there / "bridge").mkdir()
    (there / "sandbox").mkdir()
    project = ("pyproject.toml", "setup.py", "README.md", "LICENSE")
    for name in (*project, "bridge/__init__.py", *(f"sandbox/{name}" for name in project)):
        (there / name).write_bytes((ROOT / name).read_bytes())
    git(there, "init", "--quiet")
    git(there, "add", ".")
    git(there, "commit", "--quiet", "-m", "first")
    return there


def built(source: Path, hook: str, **environment: str) -> str:
    """The version of what is built from there, by name."""
    inherited = {name: value for name, value in os.environ.items() if name != "BRIDGE_VERSION"}
    command = [sys.executable, "-c", HOOK, hook]
    subprocess.run(command, cwd=source, env=inherited | environment, check=True, capture_output=True)
    made = {path.name for path in source.parent.iterdir()} - {source.name}
    found: str
    [found] = re.findall(
        r"^settlement_bridge(?:_sandbox)?-(.+?)(?:\.dist-info|\.tar\.gz)$", "\n".join(made), re.MULTILINE
    )
    return found


def test_a_checkout_has_the_commit_and_what_is_built_from_it_too(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=8", "HEAD")
    assert version_of(checkout) == f"{RELEASE}+g{commit}"
    git(checkout, "tag", f"v{RELEASE}")
    assert version_of(checkout) == RELEASE
    (checkout / "README.md").write_text("changed")
    assert version_of(checkout) == f"{RELEASE}+0.g{commit}.dirty"
    git(checkout, "commit", "--quiet", "-a", "-m", "second")
    commit = git(checkout, "rev-parse", "--short=8", "HEAD")
    assert version_of(checkout) == f"{RELEASE}+1.g{commit}"
    for source in (checkout, checkout / "sandbox"):
        assert built(source, "prepare_metadata_for_build_wheel") == f"{RELEASE}+1.g{commit}"


@pytest.mark.parametrize("project", [".", "sandbox"])
def test_an_sdist_keeps_the_version(project: str, checkout: Path, tmp_path: Path) -> None:
    commit = git(checkout, "rev-parse", "--short=8", "HEAD")
    assert built(checkout / project, "build_sdist") == f"{RELEASE}+g{commit}"
    [archive] = (checkout / project).parent.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "of", filter="data")
    [source] = (tmp_path / "of").iterdir()
    found = built(source, "prepare_metadata_for_build_wheel", BRIDGE_VERSION="1.2.3")
    assert found == f"{RELEASE}+g{commit}"


@pytest.mark.parametrize("given", ["", "0.2.0+7.g12345678"])
def test_a_build_without_git_has_the_version_that_it_is_given(given: str, checkout: Path) -> None:
    (checkout / ".git").rename(checkout.parent / "git")
    found = built(checkout, "prepare_metadata_for_build_wheel", BRIDGE_VERSION=given, PYTHONNOUSERSITE="1")
    assert found == (given or f"{RELEASE}+unknown")


def test_without_git_on_the_machine_the_commit_is_unknown(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    assert version_of(checkout) == f"{RELEASE}+unknown"


def test_an_installed_package_has_the_version_of_its_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (info := tmp_path / "settlement_bridge-9.9.9+7.gabc.dist-info").mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: settlement-bridge\nVersion: 9.9.9+7.gabc\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert version_of(tmp_path) == "9.9.9+7.gabc"


def test_the_command_says_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "bridge", "--version"], cwd=ROOT, capture_output=True, text=True
    )
    assert ran.stdout == f"settlement-bridge {__version__}\n"
    assert __version__.startswith(f"{RELEASE}")

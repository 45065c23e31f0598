"""The Containerfile: what can be known of it without building it."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from bridge import RELEASE, __version__
from tests.repo.manifests import pods
from tests.repo.source import ROOT
from tests.tools import lacking, ran

FILE = ROOT / "Containerfile"
TEXT = re.sub(r"\\\n\s*", "", FILE.read_text("utf-8"))
"""Each instruction on one line."""
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PROJECT = PYPROJECT["project"]


def instructions(name: str, text: str = TEXT) -> list[str]:
    """What follows the name of an instruction, wherever it stands."""
    return re.findall(rf"^{name} (.+)$", text, re.MULTILINE)


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    if not hadolint.exists():
        lacking("there is no hadolint for this platform")
    found = ran(hadolint, FILE)
    assert found.returncode == 0, found.stdout


def test_what_is_copied_is_there() -> None:
    sources = {
        s.rstrip("/") for copy in instructions("COPY") if "--from" not in copy for s in copy.split()[:-1]
    }
    assert all((ROOT / source).exists() for source in sources)
    ignored = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    assert ignored[ignored.index("*") :] == [
        "*",
        *(f"!{source}" for source in sorted(sources, key=lambda it: ((ROOT / it).is_file(), it))),
        "**/__pycache__",
    ]


def test_what_is_installed_is_locked() -> None:
    name = re.compile(r"^[a-z0-9-]+", re.MULTILINE)
    for lines, lock in (
        (PROJECT["dependencies"], "runtime"),
        (PYPROJECT["build-system"]["requires"], "build"),
    ):
        needed = {found for line in lines for found in name.findall(line)}
        locked = (ROOT / "requirements" / f"{lock}.txt").read_text("utf-8")
        assert needed <= set(name.findall(locked))
    for command in [
        c for run in instructions("RUN") for c in run.split(" && ") if re.match("pip .*install", c)
    ]:
        assert "--require-hashes" in command or "--no-deps" in command


def test_python_is_one_that_the_package_supports() -> None:
    [image] = {stage.split()[0] for stage in instructions("FROM")}
    match = re.fullmatch(r"python:(3\.\d+)-slim-\w+", image)
    assert match is not None
    assert f"Programming Language :: Python :: {match[1]}" in PROJECT["classifiers"]


def test_it_runs_the_bridge_as_the_user_that_the_manifests_name() -> None:
    last_stage = TEXT.rpartition("\nFROM ")[2]
    [entry] = instructions("ENTRYPOINT", last_stage)
    [command] = instructions("CMD", last_stage)
    [user] = instructions("USER", last_stage)
    assert json.loads(entry) == [
        name for name, place in PROJECT["scripts"].items() if place == "bridge.__main__:main"
    ]
    assert json.loads(command) == ["run"]
    users = {"{runAsUser}:{runAsGroup}".format(**pod["spec"]["securityContext"]) for pod in pods().values()}
    assert users == {user}
    assert user.split(":")[0] != "0"


@pytest.mark.parametrize("given", [[], ["IMAGE=registry.example/bridge:1"]], ids=["by itself", "named"])
def test_make_builds_it_with_what_is_installed(tmp_path: Path, given: list[str]) -> None:
    make = shutil.which("make")
    if make is None:
        lacking("there is no make")
    buildah = tmp_path / "buildah"
    buildah.write_text('#!/bin/sh\nprintf "%s " "$@"')
    buildah.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    made = ran(make, "--no-print-directory", "image", *given, env={"PATH": path})
    # The commit's own tag, unless that is the release's.
    own = [f"settlement-bridge:{name}" for name in sorted({RELEASE, __version__.replace("+", "-")})]
    names = [given[0].partition("=")[2]] if given else own
    tags = " ".join(f"-t {name}" for name in names)
    assert made.stdout == f"build -f Containerfile --build-arg VERSION={__version__} {tags} . "


def test_the_labels_say_what_the_package_says() -> None:
    [labels] = instructions("LABEL")
    said = dict(re.findall(r'org\.opencontainers\.image\.(\w+)="([^"]*)"', labels))
    assert said == {
        "title": PROJECT["name"],
        "version": "$VERSION",
        "description": PROJECT["description"],
        "licenses": PROJECT["license"],
    }

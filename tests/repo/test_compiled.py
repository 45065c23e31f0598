"""What is compiled: no form of it hides a newer source, and either form can be had."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from bridge.avro.encoder import compiled
from bridge.doctor.local_checks import outdated
from tests.repo.source import PACKAGE, ROOT
from tests.tools import ran

PLAIN = ROOT / "tests" / "plain"
COMPILED = re.findall(r'^    "(bridge/.+\.py)",$', (ROOT / "setup.py").read_text("utf-8"), re.MULTILINE)
LIBRARIES = sorted(PACKAGE.rglob(f"*{EXTENSION_SUFFIXES[0]}"))
"""Those that this Python loads."""


def test_no_compiled_module_is_older_than_its_source() -> None:
    assert outdated(PACKAGE) == []


def test_nothing_else_is_compiled() -> None:
    sources = {library.with_name(f"{library.name.partition('.')[0]}.py") for library in LIBRARIES}
    listed = {ROOT / name for name in COMPILED}
    assert all(source.exists() for source in listed)
    assert sources <= listed


@pytest.mark.parametrize("path", ["", str(PLAIN)])
def test_the_plain_form_is_used_where_it_is_asked_for(path: str) -> None:
    script = "from bridge.avro.encoder import compiled; print(compiled())"
    done = ran(sys.executable, "-c", script, env=os.environ | {"PYTHONPATH": path})
    assert done.stdout.strip() == str(bool(LIBRARIES) and not path)


def test_this_run_uses_the_form_it_should() -> None:
    assert compiled() == (bool(LIBRARIES) and str(PLAIN) not in os.environ.get("PYTHONPATH", ""))


def test_what_builds_the_wheel_is_what_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert project["build-system"]["requires"] == project["dependency-groups"]["build"]

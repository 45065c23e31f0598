"""The wheel, installed where nothing of the checkout is."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from bridge import __version__
from bridge.avro.encoder import compiled

ROOT = Path(__file__).parents[2]
FORM = "from bridge.avro.encoder import compiled; print(compiled())"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A clone of the checkout, without what was built there."""
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(tmp_path / "source")], check=True)
    return tmp_path / "source"


def built(source: Path, **environment: str) -> tuple[Path, list[str]]:
    """A wheel of the source, and the names of the files in it."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run(
        [*build, "--wheel-dir", str(source.parent), str(source)], env=os.environ | environment, check=True
    )
    [wheel] = source.parent.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return wheel, archive.namelist()


def test_the_wheel_stands_alone(source: Path, tmp_path: Path) -> None:
    """In an empty environment, outside the checkout: it checks its schemas, it is compiled."""
    wheel, names = built(source)
    assert "bridge/py.typed" in names
    assert "bridge/schemas/history/settled-bet/v1.avsc" in names
    assert not [name for name in names if name.startswith("tests/")]

    environment = tmp_path / "environment"
    venv.create(environment, with_pip=True)
    python = environment / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    requirements = str(ROOT / "requirements" / "runtime.txt")
    subprocess.run([*pip, "--require-hashes", "-r", requirements], check=True)
    subprocess.run([*pip, "--no-deps", str(wheel)], check=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    command = str(environment / "bin" / "bridge")
    for arguments, said in (
        ([command, "--version"], f"settlement-bridge {__version__}"),
        ([command, "schemas", "check"], "all schemas are well"),
        ([command, "run", "--help"], "Own the feed"),
        ([str(python), "-c", FORM], str(compiled())),  # as in the checkout, by the same compiler or none
    ):
        ran = subprocess.run(arguments, cwd=outside, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert said in ran.stdout
    missing = subprocess.run(
        [command, "dev", "status"], cwd=outside, capture_output=True, text=True, check=False
    )
    assert missing.returncode == 7
    assert "pip install 'settlement-bridge[dev]'" in missing.stderr


def test_a_compiler_that_fails_leaves_plain_python(source: Path, tmp_path: Path) -> None:
    """Though it fails only for what the compiled modules share, and an earlier build has left just that."""
    earlier = source / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    earlier.mkdir(parents=True)
    (earlier / f"bridge__mypyc{sysconfig.get_config_var('EXT_SUFFIX')}").touch()
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *__native*) exit 1;; esac\nexec cc "$@"\n')
    compiler.chmod(0o755)
    wheel, names = built(source, CC=str(compiler))
    _assert_plain(wheel, names)


def test_what_mypy_refuses_is_plain_python(source: Path) -> None:
    """A newer one may find errors in what worked; those who ask for the compiled form get the error."""
    with (source / "bridge" / "scalars.py").open("a", encoding="utf-8") as module:
        module.write("\nWRONG: int = str()\n")
    with pytest.raises(subprocess.CalledProcessError):
        built(source, BRIDGE_MUST_COMPILE="1")
    _assert_plain(*built(source))


def _assert_plain(wheel: Path, names: list[str]) -> None:
    """The wheel holds nothing that is compiled, and works."""
    assert "bridge/avro/encoder.py" in names
    assert not [name for name in names if name.endswith(".so")]
    ran = subprocess.run(
        [sys.executable, "-c", FORM],
        cwd=wheel.parent,
        env=os.environ | {"PYTHONPATH": str(wheel)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "False\n", ran.stderr

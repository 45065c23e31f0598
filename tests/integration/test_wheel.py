"""The wheel, installed where nothing of the checkout is."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

from bridge import __version__

ROOT = Path(__file__).parents[2]


def test_the_wheel_stands_alone(tmp_path: Path) -> None:
    """In an empty environment, outside the checkout, it checks its schemas and knows its version."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    source = tmp_path / "source"
    subprocess.run(["git", "clone", "--quiet", "--shared", str(ROOT), str(source)], check=True)
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(source)], check=True)
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
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
        (["--version"], f"settlement-bridge {__version__}"),
        (["schemas", "check"], "all schemas are well"),
        (["run", "--help"], "Own the feed"),
    ):
        ran = subprocess.run([command, *arguments], cwd=outside, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stderr
        assert said in ran.stdout
    missing = subprocess.run(
        [command, "dev", "status"], cwd=outside, capture_output=True, text=True, check=False
    )
    assert missing.returncode == 7
    assert "pip install 'settlement-bridge[dev]'" in missing.stderr

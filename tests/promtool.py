"""Prometheus' own tool: found on the PATH, or unpacked from Debian's package into the environment."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from bridge_sandbox.cluster.files import lock, silent

_UNPACKED = Path(sys.executable).parent / "promtool"


@cache
def promtool() -> Path | None:
    """Return the program; None where there is neither it nor a Debian that has it."""
    if found := shutil.which("promtool"):
        return Path(found)
    with lock(_UNPACKED.with_suffix(".lock"), silent, "another download to end"):
        if not _UNPACKED.exists() and shutil.which("apt-get") and shutil.which("dpkg"):
            _unpack()
    return _UNPACKED if _UNPACKED.exists() else None


def _unpack() -> None:
    with TemporaryDirectory() as directory:
        steps = ["apt-get", "download", "--quiet", "prometheus"], ["sh", "-c", "dpkg -x *.deb unpacked"]
        if all(subprocess.run(step, cwd=directory, capture_output=True).returncode == 0 for step in steps):
            shutil.copy2(Path(directory) / "unpacked" / "usr" / "bin" / "promtool", _UNPACKED)

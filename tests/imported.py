"""Imports what commands import, in the server that they are forked from: modules only, no state."""

from __future__ import annotations

import importlib
import pkgutil

import bridge

for found in pkgutil.walk_packages(bridge.__path__, "bridge."):
    if not found.name.endswith("__main__") and ".sandbox" not in found.name:
        importlib.import_module(found.name)

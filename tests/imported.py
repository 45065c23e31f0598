"""Imports what commands import and builds the command tree, in the server that they are forked from."""

from __future__ import annotations

import functools
import gc
import importlib
import pkgutil

import typer.main

import bridge
from bridge.cli import app

for found in pkgutil.walk_packages(bridge.__path__, "bridge."):
    if not found.name.endswith("__main__"):
        importlib.import_module(found.name)

typer.main.get_command = functools.cache(typer.main.get_command)  # each call of the app makes the tree anew
typer.main.get_command(app)
gc.collect()
gc.freeze()  # a collection in a fork would copy all pages

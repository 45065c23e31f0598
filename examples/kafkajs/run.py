"""Runs join.js, which prints the rows of settled bets, with the Node.js that npm has installed.

On stdout: two lines for each row on a terminal, a line of JSON with key and value elsewhere. A value of null
takes a row back. Settings, by environment:

    BRIDGE_KAFKA__BOOTSTRAP_SERVERS   127.0.0.1:9092 by default
    BRIDGE_REGISTRY__URL              http://127.0.0.1:8080/apis/ccompat/v7
    BRIDGE_TOPICS__PREFIX             settlement
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # this file is run by its path

from examples.programs import run  # noqa: E402

installed = HERE / "node_modules" / ".bin" / "node"
NODE = str(installed) if installed.exists() else "node"
"""There is none to install on other machines than Linux on x86-64."""

if __name__ == "__main__":
    run(NODE, str(HERE / "join.js"))

"""Builds and runs main.go, which prints the rows of settled bets.

On stdout: two lines for each row on a terminal, a line of JSON with key and value elsewhere. A value of null
takes a row back. `state` in the working directory has the program. Settings, by environment:

    BRIDGE_KAFKA__BOOTSTRAP_SERVERS   127.0.0.1:9092 by default
    BRIDGE_REGISTRY__URL              http://127.0.0.1:8080/apis/ccompat/v7
    BRIDGE_TOPICS__PREFIX             settlement
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))  # this file is run by its path

from examples.programs import run  # noqa: E402


def built(directory: Path) -> Path:
    """Build the programs into a directory, and return it. Ends this one if that fails."""
    go = shutil.which("go")
    if go is None:
        sys.exit("error: go is not installed")
    if subprocess.run(
        [go, "build", "-o", f"{directory.resolve()}/", "./..."], cwd=HERE, check=False
    ).returncode:
        sys.exit("error: the program was not built")
    return directory.resolve()


if __name__ == "__main__":
    run(str(built(Path("state")) / "join"))

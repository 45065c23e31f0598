"""From a clone to the first bet: `make demo` in a fresh clone with an empty HOME, and once more.

    python3 benchmarks/first_run.py

Prints a line of JSON for each run: seconds until the line of the first bet, those of a CPU until then (which
downloads and other programs hardly change), the longest time without a line, and what was installed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
FIRST_BET = re.compile(r": [1-9][\d,]* of [\d,]+ bets in the topic")
INSTALLED = {"venv": "clone/.venv", "cache": "home/.cache/settlement-bridge", "maven": "home/.m2"}
DEMO = ("make", "demo", "SECONDS=10")


def cpu_seconds(root: int) -> float:
    """The CPU time of a process and of all that it has started and waited for, or is running."""
    rows = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        rows[int(stat.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    family = {root}
    while more := {pid for pid, (parent, _) in rows.items() if parent in family} - family:
        family |= more
    return sum(rows[pid][1] for pid in family & rows.keys()) / os.sysconf("SC_CLK_TCK")


def run(clone: Path, home: Path) -> dict[str, float]:
    """Run the demo to its end. Raises CalledProcessError if it fails."""
    began = last = time.monotonic()
    silent, found = 0.0, dict[str, float]()
    environment = os.environ | {"HOME": str(home)}
    with subprocess.Popen(
        DEMO, cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            now = time.monotonic()
            silent, last = max(silent, now - last), now
            if not found and FIRST_BET.search(line):
                found = {"seconds": now - began, "cpu_seconds": cpu_seconds(demo.pid), "silent": silent}
    if demo.returncode:
        raise subprocess.CalledProcessError(demo.returncode, DEMO)
    return {name: round(value, 1) for name, value in found.items()}


def megabytes(directory: Path) -> int:
    return int(subprocess.check_output(("du", "-sm", directory), text=True).split()[0])  # noqa: S607


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="settlement-bridge-first-run-") as name:
        place = Path(name)
        subprocess.run(["git", "clone", "--quiet", ROOT, place / "clone"], check=True)  # noqa: S607
        (place / "home").mkdir()
        for which in ("cold", "warm"):
            found = run(place / "clone", place / "home") | {"load": round(os.getloadavg()[0], 1)}
            sizes = {f"{part}_mb": megabytes(place / path) for part, path in INSTALLED.items()}
            print(json.dumps({"run": which, **found, **sizes}), flush=True)


if __name__ == "__main__":
    main()

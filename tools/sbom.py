"""Write the bill of materials of what runs in production: `python -m tools.sbom`, into dist/sbom.cdx.json.

CycloneDX's own program looks at an environment with the packages of `requirements/runtime.txt` and no others.
"""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from tempfile import TemporaryDirectory

from bridge import __version__

ROOT = Path(__file__).parents[1]


def write(target: Path) -> None:
    """Install what is to be looked at, and what looks, in environments that are deleted afterwards."""
    with TemporaryDirectory() as directory:
        runtime, tool = (_environment(Path(directory) / name, name) for name in ("runtime", "sbom"))
        options = ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
        command = [str(tool / "cyclonedx-py"), "environment", *options, str(runtime / "python")]
        written = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
    bill = json.loads(written)
    bill["metadata"]["component"]["version"] = __version__  # setup.py has it from the package
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill, indent=2) + "\n", "utf-8")


def _environment(place: Path, lock: str) -> Path:
    """The commands of a new environment with what is locked, and without pip."""
    venv.create(place)
    pip = [sys.executable, "-m", "pip", "--python", str(place / "bin" / "python"), "install"]
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--require-hashes"]
    subprocess.run([*pip, *options, "-r", str(ROOT / "requirements" / f"{lock}.txt")], check=True)
    return place / "bin"


if __name__ == "__main__":
    write(ROOT / "dist" / "sbom.cdx.json")

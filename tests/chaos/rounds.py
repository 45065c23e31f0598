"""A campaign in rounds. What is finished stays in `.chaos/CAMPAIGN`, so an interrupted campaign goes on.

A round is finished once its directory has a `result.json`; `FRESH=1` ignores those of earlier runs. A round
with another extent (other counts, another seed, other code) is another round: what one bridge has passed says
nothing about the next. Code that changes while a campaign is played belongs to none of its rounds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.__main__ import machine
from bridge.avro.encoder import compiled

ROOT = Path(__file__).parents[2]
_RESULT = "result.json"
_finished: set[Path] = set()
"""The result files that this process wrote."""
_PLAYED = (
    "bridge/**/*.py",
    "schemas/*.avsc",
    "requirements/dev.txt",
    "tests/judge/*.py",
    *(
        f"tests/{name}.py"
        for name in ("chaos/owners", "chaos/provider", "harness", "interruption", "killed", "processes")
    ),
)
"""What campaigns share."""


class Rounds:
    """The directories of a campaign's rounds."""

    def __init__(self, campaign: str, extent: dict[str, Any]) -> None:
        self.directory = ROOT / ".chaos" / campaign
        self._campaign = campaign
        self._extent = {**extent, "code": _at_first(campaign, ROOT), "compiled": compiled()}
        self.directory.mkdir(parents=True, exist_ok=True)

    def result(self, name: str) -> dict[str, Any] | None:
        """Return the result of a finished round of this extent, or None."""
        file = self.directory / name / _RESULT
        if not file.is_file() or (os.environ.get("FRESH") and file not in _finished):
            return None
        stored = json.loads(file.read_text("utf-8"))
        return dict(stored["result"]) if stored["extent"] == self._extent else None

    def begin(self, name: str) -> Path:
        """Return the empty directory of a round that is not finished."""
        directory = self.directory / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        return directory

    def finish(self, name: str, result: dict[str, Any]) -> None:
        """Store the result of a round, and on which machine. Fails if the code has changed meanwhile."""
        assert code(self._campaign) == self._extent["code"], "the code has changed: begin the campaign anew"
        result["machine"] = machine()
        file = self.directory / name / _RESULT
        partial = file.with_suffix(".partial")
        partial.write_text(json.dumps({"extent": self._extent, "result": result}, indent=1) + "\n", "utf-8")
        partial.rename(file)
        _finished.add(file)


@cache
def _at_first(campaign: str, _root: Path) -> str:
    """Return the digest of what this process has imported, or has its commands import."""
    return code(campaign)


def code(campaign: str) -> str:
    """Return a digest of what is played: the bridge, the judge, and the modules of the campaign."""
    own = f"tests/chaos/test_{campaign}.py", f"tests/{campaign}/*.py"
    files = {file for pattern in (*_PLAYED, *own) for file in ROOT.glob(pattern)}
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.relative_to(ROOT)}\0{file.read_text('utf-8')}\0".encode())
    return digest.hexdigest()[:16]

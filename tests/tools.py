"""Programs that tests run, and that not every machine has."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).parents[1]


def ran(*command: str | Path, **options: Any) -> subprocess.CompletedProcess[Any]:
    """Run a program to its end, by default in the checkout; its output is captured as text."""
    given: dict[str, Any] = {
        "cwd": ROOT,
        "capture_output": True,
        "text": True,
        "check": False,
        "timeout": 600,
    }
    done: subprocess.CompletedProcess[Any] = subprocess.run(command, **given | options)
    return done


def lacking(what: str) -> NoReturn:
    """Skip the test. Fail it in CI, which has all of them: else a check would do nothing, and nobody knew."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)

"""The example on the first page of the sandbox."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.repo.source import ROOT


def example() -> str:
    """The module that the page shows."""
    page = (ROOT / "sandbox" / "README.md").read_text("utf-8")
    return page.partition("```python\n")[2].partition("```")[0]


def test_the_example_passes_where_a_user_puts_it(tmp_path: Path) -> None:
    (file := tmp_path / "test_client.py").write_text(example())
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert re.search(r"^1 passed", ran.stdout, re.MULTILINE), ran.stdout

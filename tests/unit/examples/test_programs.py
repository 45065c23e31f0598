"""What is shown of the rows that an engine's program prints."""

from __future__ import annotations

import os
import subprocess
import sys

from examples.engines import ROOT

ROW = '{"key": "b:1", "value": null}'
RUN = f"import sys; from examples.programs import run; run(sys.executable, '-c', {f'print({ROW!r})'!r})"


def test_they_are_lines_of_json() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == f"{ROW}\n"


def test_on_a_terminal_they_are_for_a_person() -> None:
    terminal, stdout = os.openpty()
    subprocess.run([sys.executable, "-c", RUN], cwd=ROOT, stdout=stdout, check=True)
    assert os.read(terminal, 1000).decode().startswith("b:1  taken back")

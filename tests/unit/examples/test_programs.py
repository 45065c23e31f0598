"""What is shown of the rows that an engine's program prints."""

from __future__ import annotations

import os
import sys

from tests.tools import ran

ROW = '{"key": "b:1", "value": null}'
RUN = f"import sys; from examples.programs import run; run(sys.executable, '-c', {f'print({ROW!r})'!r})"


def test_they_are_lines_of_json() -> None:
    done = ran(sys.executable, "-c", RUN)
    assert done.stdout == f"{ROW}\n"


def test_on_a_terminal_they_are_for_a_person() -> None:
    terminal, stdout = os.openpty()
    ran(sys.executable, "-c", RUN, capture_output=False, stdout=stdout)
    assert os.read(terminal, 1000).decode().startswith("b:1  taken back")

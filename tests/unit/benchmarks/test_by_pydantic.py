"""The contender that is the bridge without its transcoder."""

from __future__ import annotations

import subprocess
import sys

from benchmarks.process import ROOT

SCRIPT = """
import bridge.cli

def main():
    from bridge.messages import converter
    print(converter.make_transcoder.__name__)

bridge.cli.main = main
from benchmarks import by_pydantic
by_pydantic.main()
"""


def test_the_converter_has_no_transcoder() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "no_transcoder"), done.stderr

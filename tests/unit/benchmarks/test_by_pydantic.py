"""The contender that is the bridge without its transcoder."""

from __future__ import annotations

import sys

from tests.tools import ran

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
    done = ran(sys.executable, "-c", SCRIPT)
    assert (done.returncode, done.stdout.strip()) == (0, "no_transcoder"), done.stderr

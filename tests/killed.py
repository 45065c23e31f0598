"""`bridge`, killed at a chosen call: `python -m tests.killed PLACE WHEN NUMBER deadletters redrive`.

The arguments are those of `tests.interruption.interrupt`.
"""

from __future__ import annotations

import sys

from bridge.cli import main
from tests.interruption import interrupt

if __name__ == "__main__":
    place, when, number = sys.argv[1:4]
    del sys.argv[1:4]
    interrupt(place, when, int(number))
    main()

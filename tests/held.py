"""`bridge` with a record of how long each turn of its event loop took: `python -m tests.held FILE run`.

The file gets a line, milliseconds, for every callback that took more than `TOLD_MS` of its thread's CPU: time
that the machine gave to others does not count.
"""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

from bridge.cli import main

TOLD_MS = 5.0


def watch(file: Path) -> None:
    """Measure all callbacks from now on."""
    out = file.open("a", buffering=1)
    run = asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        took = (time.thread_time() - began) * 1000
        if took > TOLD_MS:
            out.write(f"{took:.0f}\n")

    setattr(asyncio.Handle, "_run", timed)  # noqa: B010


if __name__ == "__main__":
    watch(Path(sys.argv.pop(1)))
    main()

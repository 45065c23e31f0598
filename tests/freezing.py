"""`bridge` whose event loop stands still from SIGUSR1 on: `python -m tests.freezing SECONDS run`.

The bridge has that many seconds of patience with it.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time

from bridge.cli import main
from bridge.service import pulse

if __name__ == "__main__":
    pulse.SILENT_SECONDS = float(sys.argv.pop(1))
    signal.signal(
        signal.SIGUSR1, lambda *_: asyncio.get_running_loop().call_soon_threadsafe(time.sleep, 3600)
    )
    main()

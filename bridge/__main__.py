"""Runs the command `bridge`, also as `python -m bridge`."""

from __future__ import annotations

import signal
from typing import Never


def main() -> Never:
    """Run the command. Ctrl-C while it is imported ends it without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # a shell has a background process ignore it
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from bridge import cli

    signal.signal(signal.SIGINT, before)
    cli.main()


if __name__ == "__main__":
    main()

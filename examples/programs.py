"""Runs an engine's program in place of this one: those that are not written in Python or Java."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys

from examples.engines import module_of


def run(*command: str) -> None:
    """Become a program, with this one's arguments.

    On stdout: two lines for each row on a terminal, the program's lines of JSON elsewhere.
    """
    if sys.stdout.isatty():
        read, write = os.pipe()
        if os.fork() == 0:
            os.close(write)
            _show(read)
            return
        os.dup2(write, sys.stdout.fileno())
    os.execvp(command[0], [*command, *sys.argv[1:]])  # noqa: S606  # the one that was built or installed


def _show(read: int) -> None:
    """Show what the program prints until it has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    display = module_of("kafka-streams", "display")
    for row in map(json.loads, os.fdopen(read)):
        print(display.lines(row["key"], row["value"], shutil.get_terminal_size().columns), flush=True)

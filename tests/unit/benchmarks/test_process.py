"""What a process has used."""

from __future__ import annotations

import os
import subprocess
import sys

from benchmarks.process import usage


def test_a_process_is_counted_with_those_that_it_has_started() -> None:
    """A contender may do its work in a process of its own."""
    alone = usage(os.getpid())
    waits = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(waits, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()  # it grows no more
        both, own = usage(os.getpid()), usage(child.pid)
    assert own.rss > 0
    assert both.rss >= alone.rss + own.rss / 2
    assert both.peak >= both.rss
    assert both.cpu >= alone.cpu > 0

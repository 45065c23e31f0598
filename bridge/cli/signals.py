"""How Ctrl-C and SIGTERM end a command in the midst of what it does."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from bridge.cli.output import print_note
from bridge.errors import NotCommitted


@contextmanager
def stoppable(note: str = "") -> Iterator[threading.Event]:
    """End the block on Ctrl-C and SIGTERM; set the event first, for what looks at it.

    Prints the note and raises KeyboardInterrupt then, whatever interrupted clients make of the signal.
    """
    import asyncio

    stop = threading.Event()

    def end(number: int, frame: object) -> None:
        stop.set()
        with suppress(RuntimeError):  # no loop runs
            loop = asyncio.get_running_loop()
            # As `asyncio.run` would: an exception in the midst of a task is lost, or comes out in a group.
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in asyncio.all_tasks(loop)])
            return
        raise KeyboardInterrupt

    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    for number, handler in former.items():
        if handler is not signal.SIG_IGN:  # a shell has a background process ignore Ctrl-C
            signal.signal(number, end)
    try:
        yield stop
    except (KeyboardInterrupt, asyncio.CancelledError, NotCommitted):
        if note:
            print_note(note)
        raise KeyboardInterrupt from None
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)

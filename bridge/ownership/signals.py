"""Ctrl-C and SIGTERM while a command owns a feed or a job.

An exception that a signal raises amid a task is lost, or comes out in a group. So the first signal cancels
what `run` runs; elsewhere, and from the second one on, KeyboardInterrupt is raised at once.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from bridge.errors import NotCommitted

T = TypeVar("T")

_main: dict[asyncio.AbstractEventLoop, asyncio.Task[Any]] = {}
"""What `run` runs."""


class Stop(threading.Event):
    """Whether a signal has come. `set` takes a lock, which the thread that the signal interrupts may hold."""

    asked = False

    def is_set(self) -> bool:
        """Return whether a signal has come, or `set` was called."""
        return self.asked or super().is_set()

    def check(self) -> None:
        """Raise KeyboardInterrupt if a signal has come, in case that the one that it has raised was lost."""
        if self.is_set():
            raise KeyboardInterrupt


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` as `asyncio.run`; the first signal cancels it."""

    async def cancellable() -> T:
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        _main[loop] = task
        try:
            result = await main
            await asyncio.sleep(0)  # a signal in its last step
            return result
        finally:
            del _main[loop]

    return asyncio.run(cancellable())


_INTERRUPTIONS = (KeyboardInterrupt, asyncio.CancelledError, NotCommitted)


def _came_of_signal(error: BaseException | None) -> bool:
    """Return whether an error is an interruption, or was raised as one passed: by a group, or a lost lock."""
    return error is not None and (isinstance(error, _INTERRUPTIONS) or _came_of_signal(error.__context__))


@contextmanager
def stoppable() -> Iterator[Stop]:
    """End the block on Ctrl-C and SIGTERM. Raises KeyboardInterrupt then, whatever came of the signal."""
    stop = Stop()

    def end(number: int, frame: object) -> None:
        again, stop.asked = stop.asked, True
        with suppress(RuntimeError):  # no loop runs
            loop = asyncio.get_running_loop()
            if loop in _main and not again:
                loop.call_soon_threadsafe(_main[loop].cancel)
                return
        raise KeyboardInterrupt

    former = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for number, handler in former.items():
            # A shell has a command in the background ignore Ctrl-C.
            if number == signal.SIGTERM or handler is not signal.SIG_IGN:
                signal.signal(number, end)
        yield stop
    except BaseException as error:
        if stop.asked and _came_of_signal(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        for number, handler in former.items():
            signal.signal(number, handler or signal.SIG_DFL)

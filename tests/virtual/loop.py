"""An event loop on which waiting takes no time: the clock jumps to the next timer.

With nothing to run and no timer set nothing can ever happen again; with tasks that are busy for ever no time
passes. In both cases the loop fails instead of hanging.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


MOST_TURNS = 100_000
"""Of the loop at one moment."""


class _Jump(selectors.DefaultSelector):
    """Looks at the sockets (the loop wakes itself by one) and, instead of sleeping, moves the clock."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self._turns = 0
        """Since the clock last moved."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready. Raises RuntimeError when nothing ever will be, or when there is no end of it."""
        ready = super().select(0)
        self._turns += 1
        if self._turns > MOST_TURNS:
            self._turns = 0  # what is cancelled now may still end
            raise RuntimeError("livelock: the tasks are busy, and no time passes")
        if not ready and timeout is None:
            raise RuntimeError("deadlock: every task waits, and no timer is set")
        if not ready and timeout:
            self.now += timeout
            self._turns = 0
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """Begins at 0. Seconds pass only while every task waits for a timer.

    Good for three months: asyncio counts in nanoseconds, and a float of more seconds holds none.
    """

    def __init__(self) -> None:
        self._jump = _Jump()
        super().__init__(self._jump)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jump.now


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(story)

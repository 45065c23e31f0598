"""Ends a process whose event loop stands still (decision 0049).

The membership in the owner group has threads of its own: it would outlive the loop, and no standby could take
over. And a signal is heard by the loop.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bridge.errors import BridgeError
from bridge.log import drain, get

SILENT_SECONDS = 30.0
"""Patience with a loop that does not beat: it beats each second, and no callback may take longer."""
ENDING_SECONDS = 5.0
"""The same once a signal has asked the process to end."""
LOOK_SECONDS = 0.5


class Pulse:
    """The heartbeat of the event loop, for a thread that watches it.

    Time is counted in looks. So time in which the whole process is stopped, suspended or starved of CPU does
    not count.
    """

    def __init__(self, end: Callable[[int], object] = os._exit) -> None:
        self._end = end
        self._beats = 0
        self._ending = False
        self.leave: Callable[[], object] = lambda: None
        """Gives up the membership, within seconds."""
        self.done = False
        """Whether all is done, and only a thread still hangs, as one that waits for the address of a host."""
        self.tell: Callable[[BridgeError], object] = lambda _: None
        """Says what `error` is."""
        self.error: BridgeError | None = None
        """What ended the loop's work, if it was not a signal."""

    def beat(self) -> None:
        """Must be called by the event loop, each second."""
        self._beats += 1

    def asked_to_end(self, *_: object) -> None:
        """Take note of a signal, as its handler: Python calls it even where the loop waits for a pipe."""
        self._ending = True

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the loop that runs in the block."""
        over = threading.Event()
        threading.Thread(target=self._watch, args=(over,), name="pulse", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def _watch(self, over: threading.Event) -> None:
        seen, silent = self._beats, 0.0
        while not over.wait(LOOK_SECONDS):
            seen, silent = self._beats, silent + LOOK_SECONDS if seen == self._beats else 0.0
            if silent >= (ENDING_SECONDS if self._ending or self.done else SILENT_SECONDS):
                if not self.done:
                    self.leave()  # first: the loop may hold the log
                    get().critical("the event loop stands still, ending the process", seconds=silent)
                elif self.error:
                    self.tell(self.error)
                drain()
                self._end(self.error.exit_code if self.error else int(not self.done))
                return

"""One thread that does jobs in order. It does not keep the process from ending."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TypeVar

T = TypeVar("T")


class Worker:
    """Like an executor of one thread, but a daemon: a job that is stuck in a call dies with the process."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def submit(self, job: Callable[[], T]) -> Future[T]:
        """Queue a job behind all others; the future has its result or its exception."""
        future: Future[T] = Future()

        def work() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(job())
                except BaseException as error:  # noqa: BLE001  # whatever it is, it belongs to who waits
                    future.set_exception(error)

        self._jobs.put(work)
        return future

    def close(self, seconds: float) -> None:
        """End after the jobs that are queued; waits so long for that, in seconds."""
        self._jobs.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (work := self._jobs.get()) is not None:
            work()

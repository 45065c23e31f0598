"""The worker as the event loop sees it: at most one batch commits while the next is filled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bridge.clock import Clock
from bridge.kafka.batch import Batch, Record
from bridge.observability.status import DurationHistogram
from bridge.service.interfaces import Writer

T = TypeVar("T")

REST_SECONDS = 0.003
"""Between a commit and the first record of the next transaction: one that begins while the coordinator still
writes the markers of the last is refused, and tried again only after 20 ms."""
LOOK_SECONDS = 1.0
TROUBLE_SECONDS = 2.0
"""A job that takes longer is told: the bridge is waiting for Kafka."""


class Committer:
    """Gives jobs to the writer's thread and waits for them, one at a time.

    `make` makes the writer, which tells its troubles to the function that it is given. `wake` is set
    whenever something has come about. `told` is called when Kafka keeps us waiting, with what it says.
    """

    def __init__(
        self,
        make: Callable[[Callable[[str], None]], Writer],
        clock: Clock,
        wake: asyncio.Event,
        told: Callable[[str], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._wake = wake
        self._told = told
        self._committing: asyncio.Future[None] | None = None
        self._trouble = self._doing = ""
        self._since: float | None = None
        """Since when the job that is awaited has been under way, monotonic."""
        self.next_begin_at = 0.0
        """When the next transaction may begin, monotonic."""
        self.durations = DurationHistogram()
        """Durations of all commits so far."""
        self.writer = make(self.report_error)

    @property
    def busy(self) -> bool:
        """Whether a batch is being committed."""
        return self._committing is not None

    def report_if_blocked(self) -> bool:
        """Whether Kafka keeps us waiting; if so, it is told."""
        waiting = self._since is not None and self._clock().monotonic - self._since > TROUBLE_SECONDS
        if waiting:
            self._told(self._trouble or self._doing or "it has not answered yet")
        return waiting

    def produce(self, batch: Batch) -> None:
        """Let the broker have what the batch has gained; nothing is being committed.

        On the event loop: it only fills the client's queue. Another thread would wait for the
        interpreter's lock record by record, for as long as the event loop is busy.
        """
        assert self._committing is None
        self.writer.write(batch)

    def start(self, batch: Batch, checkpoint: Record) -> None:
        """Begin to commit a batch; nothing else is being committed."""
        assert self._committing is None
        self._committing = self._submit(partial(self.writer.commit, batch, checkpoint))

    def collect(self) -> bool:
        """Whether nothing is being committed any more. Raises what ended the commit."""
        if self._committing is None:
            return True
        if not self._committing.done():
            return False
        committed, self._committing = self._committing, None
        began, self._since, self._trouble = self._since, None, ""
        committed.result()
        now = self._clock().monotonic
        self.durations.observe(now - (began or 0.0))
        self.next_begin_at = now + REST_SECONDS
        return True

    async def finish(self) -> None:
        """Wait for the commit under way. Raises what ended it. A commit goes on when this is cancelled."""
        if self._committing is not None:
            await self._wait(self._committing)
        self.collect()

    async def run(self, job: Callable[[], T], doing: str) -> T:
        """Do a job on the worker and wait for it; `doing` says what it is, should it take long.

        Raises as `finish` does, and what the job raises.
        """
        self._doing = doing
        future = self._submit(job)
        await self._wait(future)
        self._since, self._trouble, self._doing = None, "", ""
        return future.result()

    def close(self, *, abandon: bool) -> None:
        """End the writer; what is not committed is given up, a replay brings it back."""
        self.writer.close(abandon=abandon or self.busy)

    def _submit(self, job: Callable[[], T]) -> asyncio.Future[T]:
        future = asyncio.wrap_future(self.writer.run(job))
        future.add_done_callback(lambda _: self._wake.set())
        self._since = self._clock().monotonic
        return future

    async def _wait(self, job: asyncio.Future[T]) -> None:
        while not job.done():
            await asyncio.wait({job}, timeout=LOOK_SECONDS)
            self.report_if_blocked()

    def report_error(self, reason: str) -> None:
        """What stands in the way of the job under way, "" if nothing does any more. Called on its thread."""
        if reason != self._trouble:
            self._trouble = reason
            self._loop.call_soon_threadsafe(self._wake.set)

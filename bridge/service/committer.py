"""The writer's thread as the event loop sees it: one batch is committed while the next is filled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bridge.clock import Clock
from bridge.kafka.batch import Batch
from bridge.kafka.errors import TooMuch
from bridge.kafka.outage import Outage
from bridge.kafka.pace import SIGN_SECONDS
from bridge.observability.status import DurationHistogram
from bridge.ownership.batch_writer import Complete
from bridge.service.interfaces import Writer

T = TypeVar("T")

REST_SECONDS = 0.003
"""Pause between a commit and the next transaction. One that begins while the coordinator still writes the
markers of the last is refused, and retried only after 20 ms."""
LOOK_SECONDS = 1.0
TROUBLE_SECONDS = 2.0
"""A job that takes longer is reported: the bridge is waiting for Kafka."""


class Committer:
    """Submits jobs to the writer's thread and waits for them, one at a time.

    `make` creates the writer with a callback for its errors. `wake` is set when a job ends or fails to
    advance. `on_blocked` is called with the reason while Kafka blocks a job.
    """

    def __init__(
        self,
        make: Callable[[Callable[[str], None]], Writer],
        clock: Clock,
        wake: asyncio.Event,
        on_blocked: Callable[[str], None],
        outage: Outage,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._wake = wake
        self._on_blocked = on_blocked
        self._outage = outage
        self._committing: asyncio.Future[None] | None = None
        self._failed: BaseException | None = None
        """The error of the commit that failed. None may follow: its checkpoint would cover that batch too."""
        self._problem = self._doing = ""
        self._since: float | None = None
        """Start of the running job, monotonic seconds."""
        self.next_begin_at = 0.0
        """When the next transaction may begin, monotonic seconds."""
        self.durations = DurationHistogram()
        """Durations of all commits so far."""
        self.took = 0.0
        """That of the last one, seconds."""
        self.writer = make(self.report_error)

    @property
    def busy(self) -> bool:
        """Whether a batch is being committed."""
        return self._committing is not None

    def report_if_blocked(self) -> bool:
        """Return whether Kafka blocks the running job; if so, report it. One that is slow is no trouble."""
        now, pace = self._clock().monotonic, self.writer.pace
        patience = TROUBLE_SECONDS + (SIGN_SECONDS if pace.reason(now) else 0)
        waiting = self._since is not None and now - self._since > patience and not pace.moves(now)
        if waiting:
            self._on_blocked(self._problem or self._outage.explain(self._doing))
        return waiting

    def start(
        self, batch: Batch, complete: Complete, *, check_generation: bool = False, divisible: bool = False
    ) -> None:
        """Begin to commit a batch, as `Writer.commit`, after `collect` has returned that none is running."""
        assert self._committing is None
        assert self._failed is None
        options = {"check_generation": check_generation, "divisible": divisible}
        self._committing = self._submit(partial(self.writer.commit, batch, complete, **options))

    def collect(self) -> bool:
        """Return whether no commit is running. Raises the error of the last one, again and again.

        Only TooMuch is raised once: the next commit may hold less, and goes on with what blocks this one.
        """
        if self._failed is not None:
            raise self._failed
        if self._committing is None:
            return True
        if not self._committing.done():
            return False
        committed, self._committing = self._committing, None
        error = None if committed.cancelled() else committed.exception()
        if isinstance(error, TooMuch):
            raise error
        began, self._since = self._since or 0.0, None
        self._failed = error
        committed.result()
        now = self._clock().monotonic
        self.took = now - began
        self.durations.observe(self.took)
        self.next_begin_at = now + REST_SECONDS
        return True

    async def finish(self) -> None:
        """Wait for the running commit, which continues if this is cancelled. Raises its error."""
        if self._committing is not None:
            await self._wait(self._committing)
        self.collect()

    async def run(self, job: Callable[[], T], doing: str) -> T:
        """Run a job on the writer's thread. `doing` describes it if it takes long. Raises its error."""
        future = self._submit(job, doing)
        try:
            await self._wait(future)
        finally:
            self._since = None
        return future.result()

    def close(self, *, abandon: bool) -> None:
        """Close the writer. Uncommitted records are dropped: a replay repeats them."""
        self.writer.close(abandon=abandon or self.busy)

    def _submit(self, job: Callable[[], T], doing: str = "it has not answered yet") -> asyncio.Future[T]:
        if self._since is None:
            self._since, self._problem = self._clock().monotonic, ""
        self._doing = doing
        future = asyncio.wrap_future(self.writer.run(job))
        future.add_done_callback(lambda _: self._wake.set())
        return future

    async def _wait(self, job: asyncio.Future[T]) -> None:
        while not job.done():
            await asyncio.wait({job}, timeout=LOOK_SECONDS)
            self.report_if_blocked()

    def report_error(self, reason: str) -> None:
        """Note what blocks the running job, "" for nothing. Called on its thread."""
        if reason != self._problem:
            self._problem = reason
            self._loop.call_soon_threadsafe(self._wake.set)

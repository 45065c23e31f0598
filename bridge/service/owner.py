"""The time from winning leadership to losing it: fence, read back, ask the limiter, connect, read.

The order is what makes it safe. `init_transactions` fences the former owner, so the checkpoint and the
deduplicator that are read after it are final; the checkpoint that holds the attempt is committed before the
connection is opened; and the socket is closed before leadership is given up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, NoReturn, TypeVar

from bridge.clock import Instant
from bridge.config import Settings, parse_start
from bridge.errors import AuthError, ClockError, FeedError, GapError, NotOwner, SettingsError
from bridge.feed.position import Position
from bridge.feed.rate_limits import Limiter
from bridge.log import get
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.connector import HOW_TO_GO_ON, Connector
from bridge.service.interfaces import Dependencies
from bridge.service.pipeline import Pipeline
from bridge.service.pump import Pump, deduplicated_from, sleep
from bridge.service.status import Status
from bridge.service.timekeeper import Timekeeper
from bridge.state.checkpoint import Checkpoint, Counters, State

T = TypeVar("T")

LAST_COMMIT_SECONDS = 3.0
"""How long a process that ends waits for its last commit."""
FOLLOWS_SECONDS = 3600.0
"""A revision closer to the clock than this may have followed it."""


class FeedOwner:
    """This process owns the feed, for one term of leadership."""

    def __init__(self, settings: Settings, dependencies: Dependencies, status: Status, owner_id: str) -> None:
        self._settings = settings
        self._dependencies = dependencies
        self._clock = dependencies.clock
        self.term = dependencies.leadership.term
        self._status = status
        self._owner_id = owner_id
        self._wake = asyncio.Event()
        self._changed = asyncio.Event()
        """Set when leadership may have changed."""
        self._ending = False
        self._timekeeper = Timekeeper(settings.feed, dependencies.clock, dependencies.ask_time)
        self._committer = Committer(dependencies.writer, dependencies.clock, self._wake, self._kafka_is_away)
        self._pump: Pump | None = None
        """None until the state in Kafka was restored."""

    def leadership_changed(self) -> None:
        """Check whether this process still leads. Must be called on the event loop."""
        self._changed.set()

    def snapshot(self) -> dict[str, Any]:
        """Return what the owner contributes to a `bridge.observability.status.StatusSnapshot`."""
        return {"owner": True, **(self._pump.snapshot() if self._pump else {})}

    async def run(self) -> NoReturn:
        """Own the feed until cancelled. What was received is then committed, if Kafka answers in time.

        Raises NotOwner when leadership is lost, GapError, ClockError, AuthError, SinkBroken and
        SettingsError when an operator has to act.
        """
        try:
            await unless(self._own(), self._loss())
        except asyncio.CancelledError:
            self._status.become(State.STOPPED)
            await self._commit_last()
            if self._status.state is State.STOPPED_ON_GAP:
                raise self._stopped_on_gap() from None
            raise
        except (ClockError, AuthError, SettingsError) as error:
            self._status.become(State.STOPPED, str(error))
            with suppress(asyncio.CancelledError):  # SIGTERM must not hide the error
                await self._commit_last()
            raise
        finally:
            self._ending = True
            self._timekeeper.close()
            self._committer.close(abandon=not self._leads())

    async def _own(self) -> NoReturn:
        self._pump = await self._take_over()
        await self._pump.run()

    async def _loss(self) -> NoReturn:
        while self._leads():
            self._changed.clear()
            await self._changed.wait()
        raise NotOwner("leadership was lost")

    async def _commit_last(self) -> None:
        """Commit what was received and the final state, if Kafka answers in time."""
        self._ending = True
        if self._pump is not None:
            try:
                async with asyncio.timeout(LAST_COMMIT_SECONDS):
                    await self._pump.commit_last()
            except (TimeoutError, NotOwner):  # a commit gives up as soon as this process ends
                get().warning("last commit failed, a replay brings back the uncommitted messages")

    def _stopped_on_gap(self) -> GapError:
        feed, reason = self._settings.feed.name, self._status.reason
        return GapError(f"the feed {feed} was stopped on a gap ({reason}). {HOW_TO_GO_ON}")

    async def _take_over(self) -> Pump:
        settings, feed = self._settings, self._settings.feed
        value = await self._committer.run(self._committer.writer.open, "taking over from the former owner")
        previous = (
            None
            if value is None
            else Checkpoint.from_avro(self._dependencies.codecs.checkpoints.decode(value))
        )
        if previous and previous.state is State.STOPPED_ON_GAP and feed.on_gap == "stop":
            self._status.become(State.STOPPED_ON_GAP, previous.reason)
            raise self._stopped_on_gap()
        await self._compare_clocks()  # before anything depends on ours
        revision = previous.revision if previous else self._beginning(self._clock())
        position = Position(feed, revision)
        limiter = Limiter(
            settings.limits,
            feed.connect_timeout_seconds,
            feed.max_clock_skew_seconds,
            previous.ledger if previous else (),
        )
        limiter.observe(self._clock())  # from here on the ledger grows older by the monotonic clock
        certain = self._certain(previous, limiter) if previous else None
        restoring = partial(
            self._dependencies.state_reader.deduplicator,
            deduplicated_from(feed, revision if certain is None else certain),
            self._gone,
            self._committer.report_error,
        )
        deduplicator = await self._committer.run(restoring, "restoring the published bets")
        pipeline = Pipeline(
            settings,
            self._dependencies.topics,
            self._dependencies.codecs,
            deduplicator,
            position,
            previous.counters.copy() if previous else Counters(),
            previous.newest if previous else None,
        )
        shared = (
            settings,
            self._dependencies,
            self._status,
            limiter,
            pipeline,
            self._committer,
            self._timekeeper,
        )
        checkpointer = Checkpointer(*shared, owner_id=self._owner_id, committed=previous)
        connector = Connector(
            *shared,
            checkpointer=checkpointer,
            first=previous is None and feed.start == "0",
            certain=certain,
            pause=partial(sleep, self._wake),
            still_owner=self._still_owner,
            woken=self._wake.set,
        )
        get().info(
            "owning the feed",
            feed=feed.name,
            revision=revision,
            known=len(deduplicator),
            first=previous is None,
        )
        return Pump(
            *shared,
            deduplicator=deduplicator,
            checkpointer=checkpointer,
            connector=connector,
            wake=self._wake,
        )

    async def _compare_clocks(self) -> None:
        """Raises ClockError when the provider tells its time and the clocks differ by too much."""
        try:
            await self._timekeeper.compare()
        except FeedError as error:
            get().warning("provider's time unavailable", reason=str(error))

    def _beginning(self, now: Instant) -> int:
        """Return the position of a first start, Unix seconds."""
        feed = self._settings.feed
        start = parse_start(feed.start, now.wall)
        if start is None:
            return int(now.wall - feed.safety_margin_seconds)
        if start > now.wall:
            raise SettingsError(f"feed.start (BRIDGE_FEED__START) = {feed.start} is in the future")
        return start

    def _certain(self, previous: Checkpoint, limiter: Limiter) -> int | None:
        """Return the revision to go back to if the position lies in the future; None if that is unknown.

        Everything published before the newest settlementTime was received. If nothing was published, only the
        oldest replayable revision is safe. A settlementTime in the future as well means that our clock is
        wrong, unless the provider has confirmed it.
        """
        now, skew = self._clock().wall, self._settings.feed.max_clock_skew_seconds
        newest, oldest_replayable = previous.newest, limiter.oldest_replayable(now)
        # Written by a clock that was ahead; while live, the revision follows the clock.
        by_wrong_clock = (
            previous.updated_at > now + 2 * skew and previous.revision > previous.updated_at - FOLLOWS_SECONDS
        )
        if previous.revision <= now + skew and not by_wrong_clock:
            return None
        if newest is None:
            return oldest_replayable
        if newest > now + skew and self._timekeeper.skew is None:
            return None
        return max(oldest_replayable, int(deduplicated_from(self._settings.feed, min(newest, now))))

    def _leads(self) -> bool:
        return self._dependencies.leadership.holds(self.term)

    async def _still_owner(self) -> bool:
        confirm = partial(self._dependencies.leadership.confirm, self._gone)
        return await self._committer.run(confirm, "confirming the leadership")

    def _gone(self) -> bool:
        """Return whether a thread that waits for Kafka must give up."""
        return self._ending or not self._leads()

    def _kafka_is_away(self, reason: str) -> None:
        if not self._ending:
            self._status.become(State.WAITING_FOR_KAFKA, reason)


async def unless(job: Coroutine[Any, Any, T], end: Coroutine[Any, Any, NoReturn]) -> T:
    """Return the result of `job`, which is cancelled if `end` raises first. Neither is running afterwards."""
    tasks = asyncio.ensure_future(job), asyncio.ensure_future(end)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        errors = [error for task in tasks if not task.cancelled() and (error := task.exception())]
    if errors:
        raise errors[0]
    return tasks[0].result()

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

from bridge.config import parse_start
from bridge.errors import (
    AuthError,
    ClockError,
    FeedError,
    GapError,
    NotOwner,
    SettingsError,
    TopologyError,
    Unconvertible,
)
from bridge.formatting import format_utc
from bridge.kafka.outage import outage_of
from bridge.log import get
from bridge.observability.status import TermStatus
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.records.reach import WHAT_TO_TYPE, TopicReach
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.connector import GAP_RECOVERY_HINT, Connector
from bridge.service.feed_loop import FeedLoop
from bridge.service.interfaces import Dependencies
from bridge.service.pipeline import Pipeline
from bridge.service.term import Term
from bridge.service.timekeeper import Timekeeper
from bridge.stored.restore import deduplicated_from

T = TypeVar("T")

LAST_COMMIT_SECONDS = 3.0
"""How long a process that ends waits for its last commit."""


class FeedOwner:
    """This process owns the feed, for one term of leadership."""

    def __init__(self, dependencies: Dependencies, before: Checkpoint | None = None) -> None:
        self._dependencies = dependencies
        self._before = before
        """The last checkpoint that this process committed, in a former term."""
        self._feed = dependencies.settings.feed
        self._clock = dependencies.clock
        self.term = dependencies.leadership.term
        self._status = dependencies.status
        self._wake = asyncio.Event()
        self._ending = False
        self._other_topics = ""
        """Why the topics are not those that this term has written."""
        self._timekeeper = Timekeeper(self._feed, dependencies.clock, dependencies.ask_time)
        outage = outage_of(dependencies.settings.kafka)
        self._committer = Committer(
            dependencies.writer, dependencies.clock, self._wake, self._kafka_is_away, outage
        )
        self._feed_loop: FeedLoop | None = None
        """None until the state in Kafka was restored."""

    def seen(self) -> TermStatus:
        """Return what the term has come to."""
        return self._feed_loop.seen() if self._feed_loop else TermStatus()

    async def run(self) -> NoReturn:
        """Own the feed until cancelled. What was received is then committed, if Kafka answers in time.

        Raises NotOwner when leadership is lost, GapError, ClockError, AuthError, SinkBroken, SettingsError,
        TopologyError and Unconvertible when an operator has to act.
        """
        try:
            await run_until_raises(self._own(), self._loss())
        except asyncio.CancelledError:
            self._status.become(State.STOPPED)
            await self._commit_last()
            if self._status.state is State.STOPPED_ON_GAP:
                raise self._stopped_on_gap() from None
            raise
        except TopologyError as error:  # nothing is committed any more: the topics may be another feed's
            self._status.become(State.STOPPED, str(error))
            raise
        except (ClockError, AuthError, SettingsError, Unconvertible) as error:
            self._status.become(State.STOPPED, str(error))
            with suppress(asyncio.CancelledError):  # SIGTERM must not hide the error
                await self._commit_last()
            raise
        finally:
            self._ending = True
            self._timekeeper.close()
            self._committer.close(abandon=not self._leads())

    async def _own(self) -> NoReturn:
        self._feed_loop = await self._take_over()
        await self._feed_loop.run()

    async def _loss(self) -> NoReturn:
        changed = self._dependencies.leadership_changed
        while self._leads() and not self._other_topics:
            changed.clear()
            await changed.wait()
        if self._leads():
            raise TopologyError(f"{self._other_topics}. {WHAT_TO_TYPE}")
        raise NotOwner("leadership was lost")

    @property
    def topics(self) -> tuple[TopicReach, ...]:
        """The topics that were written, and how far they reach; empty until they are compared."""
        return self._feed_loop.term.topics if self._feed_loop else ()

    @property
    def committed(self) -> Checkpoint | None:
        """The last checkpoint that this process has read or committed."""
        return self._before if self._feed_loop is None else self._feed_loop.term.committed

    def topics_differ(self, reason: str) -> None:
        """End the term: the topics are not those that were written, or lack records."""
        if not self._other_topics:
            get().error("topics are not those that were written", reason=reason)
        self._other_topics = reason
        self._dependencies.leadership_changed.set()

    async def _commit_last(self) -> None:
        """Commit what was received and the final state, if there was an attempt and Kafka answers in time."""
        self._ending = True
        if self._feed_loop is not None and self._feed_loop.term.committed is not None:
            try:
                async with asyncio.timeout(LAST_COMMIT_SECONDS):
                    await self._feed_loop.checkpointer.commit()
            except (TimeoutError, NotOwner):  # a commit gives up as soon as this process ends
                get().warning("last commit failed, a replay brings back the uncommitted messages")

    def _stopped_on_gap(self) -> GapError:
        reason = self._status.reason
        return GapError(f"the feed {self._feed.name} was stopped on a gap ({reason}). {GAP_RECOVERY_HINT}")

    async def _take_over(self) -> FeedLoop:
        """Fence the former owner, restore the state, and assemble the parts around it."""
        dependencies, stored, committer = self._dependencies, self._dependencies.stored, self._committer
        gone, report = self._gone, committer.report_error
        await committer.run(partial(stored.judge_topics, gone, report), "looking at the topics")
        value = await committer.run(committer.writer.open, "taking over from the former owner")
        committed = self._accepted(value)
        try:
            await self._timekeeper.compare()  # before anything depends on our clock
        except FeedError as error:
            get().warning("provider's time unavailable", reason=str(error))
        agree = partial(stored.agree_on_topics, committed, gone, report)
        topics = await committer.run(agree, "comparing the topics")
        if not topics:
            raise NotOwner("leadership was lost")
        start = committed or self._first_checkpoint(self._clock().wall)
        term = Term(
            dependencies.settings, self._status, self._timekeeper, self._wake, start, committed, topics
        )
        safe = term.safe_revision
        since = deduplicated_from(self._feed, start.revision if safe is None else safe)
        restore = partial(stored.restore, since, gone, report, start.unproven)
        deduplicator = await committer.run(restore, "restoring the published bets")
        pipeline = Pipeline(term, dependencies.topics, dependencies.codecs, deduplicator)
        checkpointer = Checkpointer(dependencies, term, pipeline, committer)
        connector = Connector(dependencies.connect, term, pipeline, checkpointer, self)
        get().info(
            "owning the feed",
            feed=self._feed.name,
            revision=start.revision,
            known=len(deduplicator),
            first=committed is None,
        )
        return FeedLoop(term, pipeline, committer, checkpointer, connector)

    def _accepted(self, value: bytes | None) -> Checkpoint | None:
        """Return the checkpoint of the former owner, if this one may go on from it. Raises as `run`."""
        codec = self._dependencies.codecs.checkpoints
        committed = None if value is None else Checkpoint.from_avro(codec.decode(value))
        if committed is None and self._before is not None:
            raise TopologyError(
                f"{self._dependencies.topics.checkpoints.name} has no checkpoint of the feed, and this "
                "bridge has committed one: this is another cluster, or the topics were made anew. Lead "
                "kafka.bootstrap_servers back to the cluster that was written; or go on with this one: set "
                "feed.start (BRIDGE_FEED__START) to a time before "
                f"{format_utc(self._before.revision)}, and start again."
            )
        if committed and not committed.counters.balanced:
            get().warning("a newer bridge had other counters, received is made to follow from these")
            committed.counters.balance()
        if committed and committed.state is State.STOPPED_ON_GAP and self._feed.on_gap == "stop":
            self._status.become(State.STOPPED_ON_GAP, committed.reason)
            raise self._stopped_on_gap()
        return committed

    def _first_checkpoint(self, now: float) -> Checkpoint:
        """Return the state of a first start, which is not committed yet."""
        feed, owner = self._feed, self._dependencies.owner_id
        start = parse_start(feed.start, now)
        if start is None:
            start = int(now - feed.safety_margin_seconds)
        elif start > now:
            raise SettingsError(f"feed.start (BRIDGE_FEED__START) = {feed.start} is in the future")
        return Checkpoint(feed.name, start, State.CONNECTING, (), Counters(), now, owner)

    def _leads(self) -> bool:
        return self._dependencies.leadership.holds(self.term)

    async def still_owner(self) -> bool:
        """Ask the group's coordinator whether this process still owns the feed."""
        confirm = partial(self._dependencies.leadership.confirm, self._gone)
        return await self._committer.run(confirm, "confirming the leadership")

    async def refuse_other_feeds(self) -> None:
        """Raise TopologyError if another feed goes before this one on the same topics."""
        stored, report = self._dependencies.stored, self._committer.report_error
        refuse = partial(stored.refuse_other_feeds, self._gone, report)
        await self._committer.run(refuse, "looking for other feeds on these topics")
        if self._gone():  # it may not have read to the end
            raise NotOwner("leadership was lost")

    def _gone(self) -> bool:
        """Return whether a thread that waits for Kafka must give up."""
        return self._ending or not self._leads()

    def _kafka_is_away(self, reason: str) -> None:
        if not self._ending:
            self._status.become(State.WAITING_FOR_KAFKA, reason)


async def run_until_raises(job: Coroutine[Any, Any, T], end: Coroutine[Any, Any, NoReturn]) -> T:
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

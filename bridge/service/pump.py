"""Reads one connection after the other, in bursts, and commits when due."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf
from typing import Any, NoReturn

from bridge.clock import Instant
from bridge.config import FeedSettings
from bridge.errors import FeedError, FeedLost
from bridge.feed.protocol import ping_reply
from bridge.formatting import format_duration, format_utc
from bridge.log import get
from bridge.service.checkpointer import Checkpointer, Part
from bridge.service.connector import Connector
from bridge.service.interfaces import Connection
from bridge.service.timekeeper import check_skew
from bridge.state.checkpoint import State
from bridge.state.deduplicator import Deduplicator

BURST = 500
"""Messages handled before other tasks of the event loop run, unless BURST_SECONDS end first."""
BURST_SECONDS = 0.1
"""Time limit of a burst: an invalid message may cost a thousand times as much as a valid one."""
PORTION = 50
"""Messages handled between two readings of the clock."""
BREATH_SECONDS = 1.0
EVICT_SECONDS = 5.0
PROGRESS_SECONDS = 10.0
"""Interval of the log lines during catch-up."""


@dataclass(eq=False, repr=False)
class Pump(Part):
    """Moves messages from the feed to Kafka until cancelled. `wake` ends its pauses early."""

    deduplicator: Deduplicator
    checkpointer: Checkpointer
    connector: Connector
    wake: asyncio.Event
    _connection: Connection | None = None
    _evict_at: float = 0.0
    _log_at: float = 0.0

    async def run(self) -> NoReturn:
        """Open one connection after the other, and read each to its end.

        Raises GapError, ClockError, AuthError, SettingsError and the errors of a commit.
        """
        while True:
            connection = await self.connector.connect()
            if connection is not None:
                await self._use(connection)

    async def commit_last(self) -> None:
        """Commit what was received and the final state, unless the feed was never connected to."""
        if self.checkpointer.committed is not None:
            await self.checkpointer.commit()

    def snapshot(self) -> dict[str, Any]:
        """Return fields of a `bridge.observability.status.StatusSnapshot`."""
        now, pipeline, checkpointer = self.clock(), self.pipeline, self.checkpointer
        committed = checkpointer.committed
        catch_up = checkpointer.progress.catch_up(now.wall)
        return {
            "revision": committed and committed.revision,
            "committed_at": committed.updated_at if committed and self.committer.durations.count else None,
            "counters": pipeline.counters.copy(),
            "dedup_entries": len(self.deduplicator),
            "skew": self.timekeeper.skew and self.timekeeper.skew.seconds,
            "gaps": pipeline.gaps,
            "connections": dict(self.connector.connections),
            "newest": pipeline.position.newest,
            "rate": catch_up.rate,
            "eta": catch_up.remaining if self.status.state is State.CATCHING_UP else None,
            "usage": self.limiter.usage(now),
            "next_connect": self.connector.decide(now).until,
            "extras": dict(pipeline.extras),
            "fallbacks": pipeline.fallbacks,
            "queue_messages": self._connection.waiting if self._connection else 0,
            "batch_records": len(pipeline.batch.records),
            "commit_durations": self.committer.durations.copy(),
        }

    async def _use(self, connection: Connection) -> None:
        """Read a connection until it ends, and commit what it delivered."""
        self._connection = connection
        try:
            await self._read(connection)
        except FeedError as error:
            self.connector.ended(error)
        finally:
            self._connection = None
            self.timekeeper.close()
            await connection.disconnect()
        await self.checkpointer.commit()

    async def _read(self, connection: Connection) -> NoReturn:
        pipeline, idle_timeout = self.pipeline, self.settings.feed.idle_timeout_seconds
        heard_at = self.clock().monotonic
        while True:
            connection.note_alive()
            goes_on = self._handle_burst(connection)
            if pipeline.missing_in_replay is not None:
                gap, pipeline.missing_in_replay = pipeline.missing_in_replay, None
                await self.connector.declared(gap)
            self._update_state()
            self.checkpointer.go_on(connection.waiting)
            if connection.closed and not connection.waiting:
                raise connection.end_reason()
            now = self.clock().monotonic
            # While reading is paused, silence means nothing.
            paused = connection.reading_paused or pipeline.full
            heard_at = max(heard_at, now if paused else connection.heard_at)
            if now >= heard_at + idle_timeout:
                self.status.become(State.IDLE_TIMEOUT)
                raise FeedLost(f"nothing came for {format_duration(idle_timeout)}")
            if goes_on and not pipeline.full:
                await asyncio.sleep(0)
            else:
                await sleep(self.wake, self._until_due(heard_at + idle_timeout, connection.waiting))

    def _handle_burst(self, connection: Connection) -> bool:
        """Handle waiting messages for one burst. Returns whether there were any."""
        pipeline, began, handled = self.pipeline, self.clock().monotonic, 0
        now = began
        while handled < BURST and now - began < BURST_SECONDS and not pipeline.full:
            taken = connection.receive_many(PORTION)
            for message in taken:
                ping_id = pipeline.handle(message, now)
                if ping_id is not None and isinstance(message.body, bytes):
                    reply = ping_reply(self.settings.feed.ping_reply, ping_id, message.body)
                    if reply is not None:
                        connection.reply(reply)
            if not taken:
                break
            handled += len(taken)
            now = self.clock().monotonic
        return handled > 0

    def _until_due(self, silent_at: float, backlog: int) -> float:
        now, due = self.clock().monotonic, self.checkpointer.due_at(backlog)
        return max(0.0, min(BREATH_SECONDS, silent_at - now, inf if due is None else due - now))

    def _update_state(self) -> None:
        position = self.pipeline.position
        moved = self.timekeeper.watch(doubted=position.doubts_clocks)
        if self.connector.moved(moved):
            raise FeedLost("this machine's clock was corrected: the times of waiting messages are unknown")
        if moved is not None and (skew := self.timekeeper.skew) is not None:
            position.compared(skew.seconds, skew.high)
        check_skew(self.settings.feed, position.skew)
        now = self.clock()
        self.checkpointer.progress.observe(now.monotonic, self.pipeline.counters.received, position.newest)
        self._evict(now)
        if self.committer.report_if_blocked():
            return
        if not position.live or position.stagnant(now.wall):
            self.status.become(State.CATCHING_UP, revision=position.revision)
            self._log_progress(now)
        elif position.quiet(now.wall):
            self.status.become(State.QUIET, revision=position.revision)
        else:
            self.status.become(State.LIVE, revision=position.revision)

    def _log_progress(self, now: Instant) -> None:
        if now.monotonic < self._log_at:
            return
        self._log_at = now.monotonic + PROGRESS_SECONDS
        catch_up = self.checkpointer.progress.catch_up(now.wall)
        if catch_up.position is not None:
            get().info(
                "catch-up progress",
                position=format_utc(int(catch_up.position)),
                behind=format_duration(max(0.0, now.wall - catch_up.position)),
                messages_per_second=round(catch_up.rate),
                remaining="unknown" if catch_up.remaining is None else format_duration(catch_up.remaining),
            )

    def _evict(self, now: Instant) -> None:
        """Evict what no replay can bring back."""
        committed = self.checkpointer.committed
        if now.monotonic >= self._evict_at and committed is not None:
            self._evict_at = now.monotonic + EVICT_SECONDS
            self.deduplicator.evict(
                deduplicated_from(self.settings.feed, min(committed.revision, self.pipeline.replays_from))
            )


def deduplicated_from(feed: FeedSettings, revision: float) -> float:
    """Return the oldest time of receipt, Unix seconds, that a replay from the revision may repeat."""
    margins = feed.safety_margin_seconds + feed.max_out_of_orderness_seconds + feed.max_clock_skew_seconds
    return revision - margins


async def sleep(wake: asyncio.Event, seconds: float) -> None:
    """Sleep, or return early when `wake` is set. Clears `wake`."""
    timer = asyncio.get_running_loop().call_later(seconds, wake.set)
    try:
        await wake.wait()
    finally:
        timer.cancel()
    wake.clear()

"""Reads one connection after the other, in bursts, and commits when due."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf
from typing import Any, NoReturn

from bridge.clock import Instant
from bridge.errors import FeedError, FeedLost, Unconvertible
from bridge.feed.catch_up import CatchUp
from bridge.feed.protocol import ping_reply
from bridge.feed.provider_clock import check_skew
from bridge.feed.rate_limits import Limiter
from bridge.formatting import format_duration, format_utc
from bridge.kafka.batch import BACKLOG
from bridge.log import get
from bridge.observability.rates import RateMeter
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.connector import Connector, sleep
from bridge.service.interfaces import Connection, Dependencies
from bridge.service.pipeline import Pipeline
from bridge.service.timekeeper import Timekeeper
from bridge.state.checkpoint import State
from bridge.state.counters import Counters
from bridge.state.restore import deduplicated_from

BURST = 500
"""Messages handled before other tasks of the event loop run, unless BURST_SECONDS end first."""
BURST_SECONDS = 0.1
"""Time limit of a burst: an invalid message may cost a thousand times as much as a valid one."""
PORTION = 100
"""Messages handled between two readings of the clock."""
BREATH_SECONDS = 1.0
EVICT_SECONDS = 5.0
PROGRESS_SECONDS = 10.0
"""Interval of the log lines during catch-up."""


@dataclass(eq=False, repr=False)
class Pump:
    """Moves messages from the feed to Kafka until cancelled."""

    dependencies: Dependencies
    limiter: Limiter
    pipeline: Pipeline
    committer: Committer
    timekeeper: Timekeeper
    checkpointer: Checkpointer
    connector: Connector
    wake: asyncio.Event

    def __post_init__(self) -> None:
        self._feed = self.dependencies.settings.feed
        self._clock = self.dependencies.clock
        self._status = self.dependencies.status
        self._connection: Connection | None = None
        self._evict_at = 0.0
        self._log_at = 0.0
        self._meter = RateMeter()
        self._unconverted, self._published = "", 0
        """Since when nothing can be converted, in words, and how many bets had been published then."""

    async def run(self) -> NoReturn:
        """Open one connection after the other, and read each to its end.

        Raises GapError, ClockError, AuthError, SettingsError, Unconvertible and the errors of a commit.
        """
        while True:
            connection = await self.connector.connect()
            if connection is not None:
                await self._use(connection)

    def snapshot(self) -> dict[str, Any]:
        """Return fields of a `bridge.observability.status.StatusSnapshot`."""
        now, pipeline, checkpointer = self._clock(), self.pipeline, self.checkpointer
        committed = checkpointer.committed
        written = committed.counters.published + committed.counters.dead_lettered if committed else 0
        catch_up = checkpointer.progress.catch_up(now.wall)
        return {
            "revision": committed and committed.revision,
            "committed_at": committed.updated_at if committed and self.committer.durations.count else None,
            # Not the pipeline's: what is not committed yet may come again, and a counter must not go back.
            "counters": committed.counters.copy() if committed else Counters(),
            "dedup_entries": len(pipeline.deduplicator),
            "skew": self.timekeeper.skew and self.timekeeper.skew.seconds,
            "gaps": pipeline.gaps,
            "connections": dict(self.connector.connections),
            "last_bets": checkpointer.last_bets.values if checkpointer.last_bets else None,
            "declared": tuple(pipeline.declared),
            "dead_letters": dict(pipeline.causes),
            "unconverted": self._unconverted,
            "newest": pipeline.position.newest,
            "rates": self._meter.observe(now.monotonic, pipeline.counters.received, written),
            "eta": catch_up.remaining if self._status.state is State.CATCHING_UP else None,
            "usage": self.limiter.usage(now),
            "next_connect": self.connector.next_attempt(now)[1].until,
            "extras": dict(pipeline.extras),
            "fallbacks": pipeline.fallbacks,
            "queue_messages": self._connection.waiting if self._connection else 0,
            "batch_records": checkpointer.uncommitted,
            "transaction_bytes": pipeline.transaction_bytes,
            "kafka_rate": self.committer.writer.pace.slow_rate(now.monotonic),
            "commit_durations": self.committer.durations.copy(),
            "receipt_to_visible": checkpointer.receipt_to_visible.copy(),
            "settlement_to_visible": checkpointer.settlement_to_visible.copy(),
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
        pipeline, idle_timeout = self.pipeline, self._feed.idle_timeout_seconds
        heard_at = self._clock().monotonic
        while True:
            handled = self._handle_burst(connection)
            if not handled:
                connection.note_alive()
            backlog = handled + connection.waiting
            if pipeline.missing_in_replay is not None:
                gap, pipeline.missing_in_replay = pipeline.missing_in_replay, None
                await self.connector.report(gap)
            if pipeline.position.live:
                self.connector.caught_up()
            self._check_clock()
            self._judge_unconverted()
            now = self._clock()
            self._evict(now.monotonic)
            self._update_state(now)
            self.checkpointer.advance(backlog)
            if connection.ended and not connection.waiting:
                raise connection.end_reason()
            # While reading is paused, silence means nothing.
            paused = connection.reading_paused or pipeline.full
            heard_at = max(heard_at, now.monotonic if paused else connection.heard_at)
            if now.monotonic >= heard_at + idle_timeout:
                self._status.become(State.IDLE_TIMEOUT)
                raise FeedLost(f"nothing came for {format_duration(idle_timeout)}")
            if (connection.waiting or handled >= BACKLOG) and not pipeline.full:
                await asyncio.sleep(0)  # of a large backlog, more is likely to be there
            else:
                due = self.checkpointer.due_at(0)
                wake_at = min(heard_at + idle_timeout, inf if due is None else due)
                await sleep(self.wake, max(0.0, min(wake_at - now.monotonic, BREATH_SECONDS)))

    def _handle_burst(self, connection: Connection) -> int:
        """Handle waiting messages for one burst. Returns how many."""
        pipeline, began, handled = self.pipeline, self._clock().monotonic, 0
        now = began
        while handled < BURST and now - began < BURST_SECONDS and not pipeline.full:
            taken = connection.receive_many(PORTION)
            for ping_id, body in pipeline.handle(taken, now):
                reply = ping_reply(self._feed.ping_reply, ping_id, body)
                if reply is not None:
                    connection.reply(reply)
            handled += len(taken)
            if not connection.waiting:
                break
            now = self._clock().monotonic
        return handled

    def _check_clock(self) -> None:
        position = self.pipeline.position
        if (skew := self.timekeeper.watch(doubted=position.doubts_clocks)) is not None:
            position.clocks_compared(skew)
        check_skew(self._feed, position.skew)

    def _judge_unconverted(self) -> None:
        """Report once when the provider sends nothing any more that can be converted, and when it does again.

        Raises Unconvertible if that is to end the process.
        """
        feed, pipeline = self._feed, self.pipeline
        lasted = pipeline.unconverted_until - pipeline.unconverted_since
        lasts = pipeline.unconverted >= feed.unconverted_messages and lasted >= feed.unconverted_seconds
        if lasts and not self._unconverted:
            self._published = pipeline.counters.published
            since = format_utc(int(pipeline.unconverted_since))
            self._unconverted = f"nothing that came since {since} could be converted"
            if feed.on_unconverted == "stop":
                raise Unconvertible(f"{self._unconverted}: “bridge deadletters list” has the reasons")
            get().warning("nothing can be converted", since=since, see="bridge deadletters list")
        elif (
            self._unconverted and pipeline.counters.published > self._published
        ):  # in a replay others may come
            self._unconverted = ""
            get().info("bets can be converted again")

    def _evict(self, now: float) -> None:
        """Evict what no replay can bring back. `now` is monotonic."""
        committed = self.checkpointer.committed
        if now >= self._evict_at and committed is not None:
            self._evict_at = now + EVICT_SECONDS
            self.pipeline.deduplicator.evict(
                deduplicated_from(self._feed, min(committed.revision, self.pipeline.replays_from))
            )

    def _update_state(self, now: Instant) -> None:
        position, progress = self.pipeline.position, self.checkpointer.progress
        progress.observe(now.monotonic, self.pipeline.counters.received, position.newest)
        if self.committer.report_if_blocked():
            return
        slow = self.committer.writer.pace.reason(now.monotonic)
        if not position.live or position.stagnant(now.wall):
            self._status.become(State.CATCHING_UP, slow, revision=position.revision)
            if now.monotonic >= self._log_at:
                self._log_at = now.monotonic + PROGRESS_SECONDS
                _log_progress(progress.catch_up(now.wall), now.wall)
        else:
            state = State.QUIET if position.quiet(now.wall) else State.LIVE
            self._status.become(state, slow, revision=position.revision)


def _log_progress(catch_up: CatchUp, now: float) -> None:
    if catch_up.position is not None:
        get().info(
            "catch-up progress",
            position=format_utc(int(catch_up.position)),
            behind=format_duration(max(0.0, now - catch_up.position)),
            messages_per_second=round(catch_up.rate),
            remaining="unknown" if catch_up.remaining is None else format_duration(catch_up.remaining),
        )

"""Reads one connection after the other, in bursts, and commits when due."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from math import inf
from typing import NoReturn

from bridge.clock import Instant
from bridge.errors import FeedError, FeedLost
from bridge.feed.catch_up import CatchUp
from bridge.feed.protocol import ping_reply
from bridge.feed.provider_clock import check_skew
from bridge.formatting import format_duration, format_utc
from bridge.kafka.batch import BACKLOG
from bridge.log import get
from bridge.observability.rates import RateMeter
from bridge.observability.status import DeliveryStatus, IntakeStatus, KnownStatus, TermStatus
from bridge.records.checkpoint import State
from bridge.records.counters import Counters
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.connector import Connector, sleep
from bridge.service.interfaces import FeedConnection
from bridge.service.pipeline import Pipeline
from bridge.service.term import Term
from bridge.stored.restore import deduplicated_from

BURST = 500
"""Messages handled before other tasks of the event loop run, unless BURST_SECONDS end first."""
BURST_SECONDS = 0.1
"""Time limit of a burst: an invalid message may cost a thousand times as much as a valid one."""
CLOCK_READ_EVERY = 100
"""Messages."""
MAX_SLEEP_SECONDS = 1.0
EVICT_SECONDS = 5.0
PROGRESS_SECONDS = 10.0
"""Interval of the log lines during catch-up."""


@dataclass(eq=False, repr=False)
class FeedLoop:
    """Moves messages from the feed to Kafka until cancelled."""

    term: Term
    pipeline: Pipeline
    committer: Committer
    checkpointer: Checkpointer
    connector: Connector

    def __post_init__(self) -> None:
        self._feed = self.term.settings.feed
        self._clock = self.term.clock
        self._status = self.term.status
        self._connection: FeedConnection | None = None
        self._evict_at = 0.0
        self._log_at = 0.0
        self._meter = RateMeter()

    async def run(self) -> NoReturn:
        """Open one connection after the other, and read each to its end.

        Raises GapError, ClockError, AuthError, SettingsError, Unconvertible and the errors of a commit.
        """
        while True:
            connection = await self.connector.connect()
            if connection is not None:
                await self._use(connection)

    def seen(self) -> TermStatus:
        """Return what the term has come to."""
        now, term, pipeline = self._clock(), self.term, self.pipeline
        visibility, committed, skew = self.checkpointer.visibility, term.committed, term.timekeeper.skew
        # Not the term's: what is not committed yet may come again, and a counter must not go back.
        counters = committed.counters.copy() if committed else Counters()
        written = counters.published + counters.dead_lettered
        catch_up = term.progress.catch_up(now.wall)
        known = KnownStatus(
            revision=committed.revision if committed else None,
            committed_at=committed.updated_at if committed and self.committer.durations.count else None,
            skew=skew.seconds if skew else None,
            gaps=pipeline.gaps,
            declared=tuple(pipeline.declared),
            dead_letters=dict(pipeline.conversion_log.causes),
        )
        intake = IntakeStatus(
            counters=counters,
            dedup_entries=len(pipeline.deduplicator),
            unconverted=pipeline.conversion_log.unconverted,
            connections=dict(self.connector.attempts.results),
            newest=term.position.newest,
            rates=self._meter.observe(now.monotonic, term.counters.received, written),
            eta=catch_up.remaining if self._status.state is State.CATCHING_UP else None,
            usage=term.limiter.usage(now),
            next_connect=self.connector.next_attempt(now)[1].until,
            extras=dict(pipeline.conversion_log.extras),
            fallbacks=pipeline.fallbacks,
            queue_messages=self._connection.waiting if self._connection else 0,
        )
        delivery = DeliveryStatus(
            last_bets=None if visibility.last_bets is None else tuple(visibility.last_bets),
            batch_records=self.checkpointer.uncommitted,
            transaction_bytes=pipeline.transaction_bytes,
            kafka_rate=self.committer.writer.pace.slow_rate(now.monotonic),
            commit_durations=self.committer.durations.copy(),
            receipt_to_visible=visibility.receipt.copy(),
            settlement_to_visible=visibility.settlement.copy(),
        )
        return TermStatus(known, intake, delivery)

    async def _use(self, connection: FeedConnection) -> None:
        """Read a connection until it ends, and commit what it delivered."""
        self._connection = connection
        try:
            await self._read(connection)
        except FeedError as error:
            self.connector.attempts.ended(error)
        finally:
            self._connection = None
            self.term.timekeeper.close()
            await connection.disconnect()
        await self.checkpointer.commit()

    async def _read(self, connection: FeedConnection) -> NoReturn:
        pipeline, position = self.pipeline, self.term.position
        idle_timeout = self._feed.idle_timeout_seconds
        heard_at = self._clock().monotonic
        while True:
            handled = self._handle_burst(connection)
            if not handled:
                connection.note_alive()
            backlog = handled + connection.waiting
            if pipeline.missing_in_replay is not None:
                gap, pipeline.missing_in_replay = pipeline.missing_in_replay, None
                await self.connector.report(gap)
            if position.live:
                self.connector.caught_up()
            self._check_clock()
            pipeline.conversion_log.judge(self.term.counters.published)
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
                await sleep(self.term.wake, max(0.0, min(wake_at - now.monotonic, MAX_SLEEP_SECONDS)))

    def _handle_burst(self, connection: FeedConnection) -> int:
        """Handle waiting messages for one burst. Returns how many."""
        pipeline, began, handled = self.pipeline, self._clock().monotonic, 0
        now = began
        while handled < BURST and now - began < BURST_SECONDS and not pipeline.full:
            taken = connection.receive_many(CLOCK_READ_EVERY)
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
        position = self.term.position
        if (skew := self.term.timekeeper.watch(doubted=position.doubts_clocks)) is not None:
            position.clocks_compared(skew)
        check_skew(self._feed, position.skew)

    def _evict(self, now: float) -> None:
        """Evict what no replay can bring back. `now` is monotonic."""
        committed = self.term.committed
        if now >= self._evict_at and committed is not None:
            self._evict_at = now + EVICT_SECONDS
            self.pipeline.deduplicator.evict(
                deduplicated_from(self._feed, min(committed.revision, self.pipeline.replay.since))
            )

    def _update_state(self, now: Instant) -> None:
        position, progress = self.term.position, self.term.progress
        progress.observe(now.monotonic, self.term.counters.received, position.newest)
        if self.committer.report_if_blocked():
            return
        slow = self.committer.writer.pace.reason(now.monotonic)
        if not position.live or position.is_stalled(now.wall):
            self._status.become(State.CATCHING_UP, slow, revision=position.revision)
            if now.monotonic >= self._log_at:
                self._log_at = now.monotonic + PROGRESS_SECONDS
                _log_progress(progress.catch_up(now.wall), now.wall)
        else:
            state = State.QUIET if position.is_silent(now.wall) else State.LIVE
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

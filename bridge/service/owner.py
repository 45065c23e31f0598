"""The time from winning leadership to losing it: fence, read back, ask the limiter, dial, pump.

The order is what makes it safe. `init_transactions` fences the former owner, so the checkpoint and the
guard that are read after it are the last word; the checkpoint that holds the attempt is committed
before the dial; and the socket is closed before leadership is given up.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from bridge.clock import Instant
from bridge.config import Settings, parse_start
from bridge.errors import (
    AuthError,
    ClockError,
    FeedError,
    FeedLost,
    GapError,
    NotOwner,
    SettingsError,
)
from bridge.feed.position import Position, PositionSettings
from bridge.feed.protocol import Session
from bridge.feed.rate_limits import Limiter
from bridge.formatting import duration, utc
from bridge.log import get
from bridge.service.checkpointer import Checkpointer
from bridge.service.committer import Committer
from bridge.service.connector import HOW_TO_GO_ON, Connector, answer
from bridge.service.interfaces import Connection, Dependencies
from bridge.service.pipeline import Pipeline
from bridge.service.status import Status
from bridge.service.timekeeper import Timekeeper, check_skew
from bridge.state.checkpoint import Checkpoint, Counters, State

BURST = 500
"""Messages handled before others on the event loop get their turn,"""
BURST_SECONDS = 0.1
"""or fewer, if they take longer: what is wrong may cost a thousand times as much as what is right."""
PORTION = 50
"""Messages handled before the clock is read again."""
BREATH_SECONDS = 1.0
EVICT_SECONDS = 5.0
FOLLOWS_SECONDS = 3600.0
"""A revision that is nearer than that to the clock may have followed it."""
PROGRESS_SECONDS = 10.0
"""Between two lines of the log on how a replay goes."""


class FeedOwner:
    """This process owns the feed. `run` returns when `stop` is set, and raises NotOwner on a loss."""

    def __init__(
        self,
        settings: Settings,
        dependencies: Dependencies,
        status: Status,
        owner_id: str,
        stop: asyncio.Event,
    ) -> None:
        self._settings = settings
        self._dependencies = dependencies
        self._clock = dependencies.clock
        self._term = dependencies.leadership.term
        self._status = status
        self._timekeeper = Timekeeper(settings.feed, dependencies.clock, dependencies.ask_time)
        self._owner_id = owner_id
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._evict_at = self._tell_at = 0.0
        self._connection: Connection | None = None
        self._committer = Committer(
            dependencies.writer, dependencies.clock, self._wake, stop, self._kafka_is_away
        )
        self._is_open = False

    def wake(self) -> None:
        """Something happened that the reign should look at: a loss, a stop. Thread-safe."""
        self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Own the feed until told to stop.

        Raises NotOwner when leadership is lost, GapError, ClockError, AuthError, SinkBroken and
        SettingsError when a person has to act.
        """
        try:
            await self._open()
            while self._goes_on():
                connection = await self._connector.connect()
                if connection is not None:
                    await self._use(connection)
            self._status.become(State.STOPPED)
            await self._leave_word()
        except (ClockError, AuthError, SettingsError) as error:
            self._status.become(State.STOPPED, str(error))
            if self._is_open:
                await self._leave_word()
            raise
        finally:
            self._timekeeper.close()
            self._committer.close(abandon=not self._owned())

    async def _leave_word(self) -> None:
        """Commit why this ends; unless nothing was ever asked, so that the next start is still the first."""
        if self._checkpointer.committed is not None:
            await self._checkpointer.commit()

    def snapshot(self) -> dict[str, Any]:
        """Return what the owner contributes to a `bridge.observability.status.StatusSnapshot`."""
        if not self._is_open:
            return {"owner": True}
        now, pipeline, checkpointer = self._clock(), self._pipeline, self._checkpointer
        committed = checkpointer.committed
        catch_up = checkpointer.progress.catch_up(now.wall)
        return {
            "owner": True,
            "revision": committed and committed.revision,
            "committed_at": committed.updated_at if committed and self._committer.durations.count else None,
            "counters": pipeline.counters.copy(),
            "dedup_entries": len(self._deduplicator),
            "skew": self._timekeeper.skew and self._timekeeper.skew.seconds,
            "gaps": pipeline.gaps,
            "connections": dict(self._connector.connections),
            "newest": pipeline.position.newest,
            "rate": catch_up.rate,
            "eta": catch_up.remaining if self._status.state is State.CATCHING_UP else None,
            "usage": self._limiter.usage(now),
            "next_connect": self._connector.decide(now).until,
            "extras": dict(pipeline.extras),
            "fallbacks": pipeline.fallbacks,
            "queue_messages": self._connection.waiting if self._connection else 0,
            "batch_records": len(pipeline.batch.records),
            "commit_durations": self._committer.durations.copy(),
        }

    # Opening.

    async def _open(self) -> None:
        settings, feed = self._settings, self._settings.feed
        value = await self._committer.run(self._committer.writer.open, "taking over from the former owner")
        previous = (
            None
            if value is None
            else Checkpoint.from_avro(self._dependencies.codecs.checkpoints.decode(value))
        )
        if previous and previous.state is State.STOPPED_ON_GAP and feed.on_gap == "stop":
            self._status.become(State.STOPPED_ON_GAP, previous.reason)
            raise GapError(f"the feed {feed.name} was stopped on a gap ({previous.reason}). {HOW_TO_GO_ON}")
        await self._compare_clocks()  # before anything depends on ours
        revision = previous.revision if previous else self._beginning(self._clock())
        margins = PositionSettings(
            feed.safety_margin_seconds, feed.max_out_of_orderness_seconds, feed.live_after_pings_seconds
        )
        position = Position(margins, revision)
        self._limiter = Limiter(
            settings.limits,
            feed.connect_timeout_seconds,
            feed.max_clock_skew_seconds,
            previous.ledger if previous else (),
        )
        self._limiter.observe(self._clock())  # from here on the ledger grows older by the monotonic clock
        certain = self._certain(previous) if previous else None
        restoring = partial(
            self._dependencies.store.deduplicator,
            self._guarded_from(revision if certain is None else certain),
            self._gone,
            self._committer.troubled,
        )
        self._deduplicator = await self._committer.run(restoring, "reading back what is published already")
        self._pipeline = Pipeline(
            settings,
            self._dependencies.topics,
            self._dependencies.codecs,
            self._deduplicator,
            position,
            previous.counters.copy() if previous else Counters(),
            previous.newest if previous else None,
            self._on_new_extra,
        )
        self._checkpointer = Checkpointer(
            settings,
            self._dependencies,
            self._committer,
            self._pipeline,
            self._limiter,
            self._status,
            self._timekeeper,
            self._owner_id,
            previous,
        )
        self._connector = Connector(
            settings,
            self._dependencies,
            self._status,
            self._limiter,
            self._pipeline,
            self._checkpointer,
            self._timekeeper,
            first=previous is None and feed.start == "0",
            certain=certain,
            pause=self._sleep,
            goes_on=self._goes_on,
            still_owner=self._still_owner,
            woken=self._wake.set,
        )
        self._is_open = True
        get().info(
            "owning the feed",
            feed=feed.name,
            revision=revision,
            known=len(self._deduplicator),
            first=previous is None,
        )

    async def _compare_clocks(self) -> None:
        """Raises ClockError when the provider can be asked for the time and ours is too far from it."""
        try:
            await answer(self._timekeeper.compare(), self._goes_on)
        except FeedError as error:
            get().warning("the provider cannot be asked for the time", reason=str(error))

    def _beginning(self, now: Instant) -> int:
        """The position of a first start, Unix seconds."""
        feed = self._settings.feed
        start = parse_start(feed.start, now.wall)
        if start is None:
            return int(now.wall - feed.safety_margin_seconds)
        if start > now.wall:
            raise SettingsError(f"feed.start (BRIDGE_FEED__START) = {feed.start} is in the future")
        return start

    def _certain(self, previous: Checkpoint) -> int | None:
        """Where to go back to if the position turns out to lie in the future; None where that is not known.

        Everything published before the newest settlementTime had come. Where nothing was published, nothing
        is certain but the edge of the feed's memory. A settlementTime that lies in the future as well speaks
        against our clock, unless the provider has confirmed that.
        """
        now, skew = self._clock().wall, self._settings.feed.max_clock_skew_seconds
        newest, edge = previous.newest, self._limiter.edge(now)
        # Written by a clock that was ahead, and while live the revision follows that.
        by_wrong_clock = (
            previous.updated_at > now + 2 * skew and previous.revision > previous.updated_at - FOLLOWS_SECONDS
        )
        if previous.revision <= now + skew and not by_wrong_clock:
            return None
        if newest is None:
            return edge
        if newest > now + skew and self._timekeeper.skew is None:
            return None
        return max(edge, int(self._guarded_from(min(newest, now))))

    def _guarded_from(self, revision: float) -> float:
        feed = self._settings.feed
        return (
            revision
            - feed.safety_margin_seconds
            - feed.max_out_of_orderness_seconds
            - feed.max_clock_skew_seconds
        )

    # One connection.

    async def _use(self, connection: Connection) -> None:
        """Read a connection until it ends, and commit what came of it."""
        self._connection = connection
        try:
            await self._pump(connection)
        except FeedError as error:
            self._connector.ended(error)
        finally:
            self._connection = None
            self._timekeeper.close()
            await connection.hang_up()
        await self._checkpointer.commit()

    async def _pump(self, connection: Connection) -> None:
        pipeline = self._pipeline
        session = Session(self._settings.feed, self._clock().monotonic)
        while self._goes_on():
            connection.breathe()
            goes_on = self._handle_burst(connection, session)
            if pipeline.missing_in_replay is not None:
                gap, pipeline.missing_in_replay = pipeline.missing_in_replay, None
                await self._connector.declared(gap)
            self._tell_state()
            self._checkpointer.go_on(connection.waiting)
            if connection.over and not connection.waiting:
                raise connection.why_over()
            now = self._clock().monotonic
            # What we do not read, we do not hear.
            session.heard(now if connection.held or pipeline.full else connection.heard_at)
            if now >= session.silent_at:
                self._status.become(State.IDLE_TIMEOUT)
                raise FeedLost(f"nothing came for {self._settings.feed.idle_timeout_seconds:g} s")
            if goes_on and not pipeline.full:
                await asyncio.sleep(0)
            else:
                await self._sleep(self._until_due(session, connection.waiting))

    def _handle_burst(self, connection: Connection, session: Session) -> bool:
        """Handle what waits, for a moment; returns whether there was anything."""
        pipeline, began, handled = self._pipeline, self._clock().monotonic, 0
        now = began
        while handled < BURST and now - began < BURST_SECONDS and not pipeline.full:
            taken = connection.take(PORTION)
            for message in taken:
                ping_id = pipeline.handle(message, now)
                if ping_id is not None and isinstance(message.body, bytes):
                    reply = session.reply(ping_id, message.body)
                    if reply is not None:
                        connection.reply(reply)
            if not taken:
                break
            handled += len(taken)
            now = self._clock().monotonic
        return handled > 0

    def _until_due(self, session: Session, backlog: int) -> float:
        now = self._clock().monotonic
        moments = [now + BREATH_SECONDS, session.silent_at]
        due = self._checkpointer.due_at(backlog)
        if due is not None:
            moments.append(due)
        return max(0.0, min(moments) - now)

    def _tell_state(self) -> None:
        position = self._pipeline.position
        moved = self._timekeeper.watch(doubted=position.doubts_clocks)
        if self._connector.moved(moved):
            raise FeedLost("this machine's clock was set right: nobody knows when what waits was sent")
        if moved is not None and (skew := self._timekeeper.skew) is not None:
            position.compared(skew.seconds, skew.high)
        check_skew(self._settings.feed, position.skew)
        now = self._clock()
        self._checkpointer.progress.observe(now.monotonic, self._pipeline.counters.received, position.newest)
        self._evict(now)
        if self._committer.tell_if_waiting():
            return
        if not position.live or position.held(now.wall):
            self._status.become(State.CATCHING_UP, revision=position.revision)
            self._tell_progress(now)
        elif position.quiet(now.wall):
            self._status.become(State.QUIET, revision=position.revision)
        else:
            self._status.become(State.LIVE, revision=position.revision)

    def _tell_progress(self, now: Instant) -> None:
        if now.monotonic < self._tell_at:
            return
        self._tell_at = now.monotonic + PROGRESS_SECONDS
        catch_up = self._checkpointer.progress.catch_up(now.wall)
        if catch_up.position is not None:
            get().info(
                "catching up",
                position=utc(int(catch_up.position)),
                behind=duration(max(0.0, now.wall - catch_up.position)),
                messages_per_second=round(catch_up.rate),
                remaining="unknown" if catch_up.remaining is None else duration(catch_up.remaining),
            )

    def _evict(self, now: Instant) -> None:
        """Forget what no replay can bring back any more."""
        committed = self._checkpointer.committed
        if now.monotonic >= self._evict_at and committed is not None:
            self._evict_at = now.monotonic + EVICT_SECONDS
            self._deduplicator.evict(self._guarded_from(min(committed.revision, self._pipeline.replays_from)))

    # Little things.

    def _goes_on(self) -> bool:
        """Whether to go on; raises NotOwner when leadership was lost."""
        if not self._owned():
            raise NotOwner("leadership was lost")
        return not self._stop.is_set()

    def _owned(self) -> bool:
        return self._dependencies.leadership.holds(self._term)

    async def _still_owner(self) -> bool:
        confirm = partial(self._dependencies.leadership.confirm, self._gone)
        return await self._committer.run(confirm, "asking whether the feed is still ours")

    def _gone(self) -> bool:
        return self._stop.is_set() or not self._owned()

    def _kafka_is_away(self, reason: str) -> None:
        self._status.become(State.WAITING_FOR_KAFKA, reason)

    def _on_new_extra(self, path: str) -> None:
        get().warning("a field that the interface does not know", path=path)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, or until something happens."""
        timer = self._loop.call_later(seconds, self._wake.set)
        await self._wake.wait()
        timer.cancel()
        self._wake.clear()

"""The time from winning leadership to losing it: fence, read back, ask the limiter, dial, pump.

The order is what makes it safe. `init_transactions` fences the former owner, so the checkpoint and the
guard that are read after it are the last word; the checkpoint that holds the attempt is committed
before the dial; and the socket is closed before leadership is given up.
"""

from __future__ import annotations

import asyncio
import random
import time
from functools import partial

from bridge.avro.codec import Codec
from bridge.committer import Committer
from bridge.config import Settings, parse_start
from bridge.errors import (
    AuthError,
    FeedError,
    FeedLost,
    FeedRefused,
    GapError,
    NotOwner,
    SettingsError,
)
from bridge.feed import client
from bridge.feed.limits import MARGIN_SECONDS, Attempt, Limiter
from bridge.feed.position import Position, PositionSettings
from bridge.feed.session import Request, Session, request
from bridge.log import get
from bridge.pipeline import Pipeline
from bridge.sink.batch import Record
from bridge.sink.checkpoint import Checkpoint, Counters, State
from bridge.sink.leadership import Leadership
from bridge.sink.producer import TransactionalWriter
from bridge.sink.store import Store
from bridge.status import Status
from bridge.topics import Topics

BURST = 500
"""Messages handled before others on the event loop get their turn."""
BREATH_SECONDS = 1.0
DIAL_LOOK_SECONDS = 0.2
EVICT_SECONDS = 60.0
FUTURE_SECONDS = 60.0
"""A position further ahead than that is a clock that was wrong."""
FIRST_BACKOFF_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 300.0
STEADY_SECONDS = 300.0
"""A connection that lasted so long was a good one: the next dial is not held back for its failure."""


class Reign:
    """This process owns the feed. `run` returns when `stop` is set, and raises NotOwner on a loss."""

    def __init__(
        self,
        settings: Settings,
        topics: Topics,
        codecs: tuple[Codec, Codec],
        store: Store,
        leadership: Leadership,
        status: Status,
        owner_id: str,
        stop: asyncio.Event,
    ) -> None:
        self._settings = settings
        self._topics = topics
        self._bets, self._checkpoints = codecs
        self._store = store
        self._leadership = leadership
        self._term = leadership.term
        self._status = status
        self._owner_id = owner_id
        self._stop = stop
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._evict_at = 0.0
        self._failures = 0
        self._previous: Checkpoint | None = None
        self._first = False
        """Whether nothing was ever asked of the feed: only then the URL says `revision=0`."""
        self._committer = Committer(
            lambda trouble: TransactionalWriter(settings, leadership, store.checkpoint, trouble),
            self._wake,
            stop,
            lambda reason: status.become(State.WAITING_FOR_KAFKA, reason),
        )
        self._limiter: Limiter
        self._pipeline: Pipeline

    def wake(self) -> None:
        """Something happened that the reign should look at: a loss, a stop. Thread-safe."""
        self._loop.call_soon_threadsafe(self._wake.set)

    async def run(self) -> None:
        """Own the feed until told to stop.

        Raises NotOwner when leadership is lost, GapError, AuthError, SinkBroken and SettingsError when
        a person has to act.
        """
        try:
            await self._open()
            while self._goes_on():
                await self._connect_once()
            await self._commit_now(State.STOPPED)
        finally:
            self._committer.close(abandon=not self._owned())

    # Opening.

    async def _open(self) -> None:
        settings, now = self._settings, time.time()
        ledger: tuple[Attempt, ...] = ()
        value = await self._committer.run(self._committer.writer.open)
        if value is None:
            start = parse_start(settings.feed.start, now)
            revision = int(now - settings.feed.overlap_seconds) if start is None else start
            counters, self._first = Counters(), start is None
            if revision > now:
                raise SettingsError(
                    f"feed.start (BRIDGE_FEED__START) = {settings.feed.start} is in the future"
                )
        else:
            checkpoint = Checkpoint.from_avro(self._checkpoints.decode(value))
            revision, counters, ledger = checkpoint.revision, checkpoint.counters, checkpoint.ledger
            self._previous = checkpoint
        feed = settings.feed
        margins = PositionSettings(feed.overlap_seconds, feed.disorder_seconds, feed.quiet_seconds)
        position = Position(margins, revision)
        self._limiter = Limiter(settings.limits, feed.connect_timeout_seconds, ledger)
        restoring = partial(self._store.guard, self._guarded_from(revision), self._gone)
        guard = await self._committer.run(restoring)
        self._guard = guard
        self._pipeline = Pipeline(
            settings, self._topics, self._bets, guard, position, counters, self._on_new_extra
        )
        get().info(
            "owning the feed", feed=feed.name, revision=revision, known=len(guard), first=value is None
        )

    def _guarded_from(self, revision: int) -> float:
        feed = self._settings.feed
        return revision - feed.overlap_seconds - feed.disorder_seconds

    # One connection.

    async def _connect_once(self) -> None:
        await self._wait_for_limiter()
        if not self._goes_on():
            return
        pipeline, limiter = self._pipeline, self._limiter
        revision = None if self._first else pipeline.position.revision
        now = time.time()
        self._refuse_gap(now)
        asked = request(self._settings.feed, revision)  # a credential that cannot be read costs no attempt
        limiter.attempt(now, revision)
        self._status.become(State.CONNECTING, revision=revision or 0)
        await self._commit_now()
        if time.time() - now > MARGIN_SECONDS:
            get().warning("Kafka took long for the checkpoint: asking the limiter anew")
            limiter.withdraw()  # what was decided then need not hold now
            return
        opened_at = time.monotonic()
        try:
            try:
                connection = await self._dial(asked)
            except FeedRefused:
                limiter.answered(time.time(), refused=True)
                raise
            if connection is None:
                return
            limiter.answered(time.time(), refused=False)
            self._first = False
            try:
                await self._pump(connection)
            finally:
                await client.hang_up(connection)
        except FeedError as error:
            if isinstance(error, FeedRefused) and error.status == 401:
                raise AuthError(
                    f"{error}. Check feed.auth (BRIDGE_FEED__AUTH) and the credential that goes with it."
                ) from None
            long_enough = time.monotonic() - opened_at >= STEADY_SECONDS / self._settings.limits.scale
            self._failures = 1 if long_enough else self._failures + 1
            get().warning("the connection is over", reason=str(error), failures=self._failures)
        await self._settle()

    async def _dial(self, asked: Request) -> client.Connection | None:
        """One attempt, given up when this process is told to stop. Raises as `client.dial` does."""
        dialling = asyncio.ensure_future(client.dial(self._settings.feed, asked, self._wake.set))
        try:
            while self._goes_on():
                await asyncio.wait({dialling}, timeout=DIAL_LOOK_SECONDS)
                if dialling.done():
                    return dialling.result()
            return None
        finally:
            if not dialling.done():  # the socket is closed before leadership is given up
                dialling.cancel()
                await asyncio.wait({dialling})

    def _refuse_gap(self, now: float) -> None:
        revision, memory = self._pipeline.position.revision, self._settings.limits.memory_seconds
        if revision > now + FUTURE_SECONDS:
            raise GapError(
                f"the committed position {_utc(revision)} is in the future: a clock was wrong, here or when "
                "it was written. Set this machine's clock right; if it is right, what was published since "
                "the other went wrong has to be had from the provider by other means."
            )
        if not self._first and now - revision > memory:
            self._status.become(State.STOPPED_ON_GAP, revision=revision)
            raise GapError(
                f"the position is {now - revision:.0f} s old and the feed remembers {memory:.0f} s: what was "
                f"published from {_utc(revision)} to {_utc(now - memory)} can no longer be had from "
                "the feed. Get that interval from the provider by other means before going on."
            )

    async def _wait_for_limiter(self) -> None:
        """Wait for the provider's limits, and after a failure for a growing, jittered while."""
        backoff = 0.0
        if self._failures:
            longest = LONGEST_BACKOFF_SECONDS / self._settings.limits.scale
            backoff = min(longest, FIRST_BACKOFF_SECONDS * 2 ** min(self._failures - 1, 16))
            backoff *= random.uniform(0.5, 1.0)
        not_before = time.time() + backoff
        while self._goes_on():
            now = time.time()
            revision = None if self._first else self._pipeline.position.revision
            decision = self._limiter.decide(now, revision)
            until = max(decision.until, not_before)
            if until <= now:
                return
            reason = decision.reason if decision.until > not_before else "backing off after a failure"
            self._status.become(State.WAITING_FOR_LIMIT, reason, until=_utc(until))
            await self._sleep(min(until - now, 30.0))

    async def _pump(self, connection: client.Connection) -> None:
        pipeline = self._pipeline
        session = Session(self._settings.feed, time.monotonic())
        pipeline.position.connected()
        self._guard.connected()
        while self._goes_on():
            connection.breathe()
            taken = [] if pipeline.full else connection.take(BURST)
            now = time.monotonic()
            for message in taken:
                ping_id = pipeline.handle(message, now)
                if ping_id is not None and isinstance(message.body, bytes):
                    reply = session.reply(ping_id, message.body)
                    if reply is not None:
                        connection.reply(reply)
            if pipeline.batch.records:
                self._committer.hand_over(pipeline.batch)
            self._commit_if_due()
            self._tell_state()
            if connection.over and not connection.waiting:
                raise connection.why_over()
            # What we do not read, we do not hear.
            session.heard(time.monotonic() if connection.held or pipeline.full else connection.heard_at)
            if time.monotonic() >= session.silent_at:
                self._status.become(State.HALF_OPEN)
                raise FeedLost(f"nothing came for {self._settings.feed.silence_seconds:g} s")
            if taken and not pipeline.full:
                await asyncio.sleep(0)
            else:
                await self._sleep(self._until_due(session))

    def _until_due(self, session: Session) -> float:
        now = time.monotonic()
        moments = [now + BREATH_SECONDS, session.silent_at]
        due = self._pipeline.batch.due_at(self._settings.batch)
        if due is not None and not self._committer.busy:
            moments.append(due)
        return max(0.0, min(moments) - now)

    def _tell_state(self) -> None:
        position = self._pipeline.position
        if self._committer.tell_if_waiting():
            return
        if not position.live:
            self._status.become(State.CATCHING_UP, revision=position.revision)
        elif position.quiet(time.time()):
            self._status.become(State.QUIET, revision=position.revision)
        else:
            self._status.become(State.LIVE, revision=position.revision)

    # Committing.

    def _commit_if_due(self) -> None:
        if not self._committer.collect():
            return
        due = self._pipeline.batch.due_at(self._settings.batch)
        if self._pipeline.full or (due is not None and time.monotonic() >= due):
            self._start_commit()

    def _start_commit(self, state: State | None = None) -> None:
        now = time.time()
        checkpoint = Checkpoint(
            feed=self._settings.feed.name,
            revision=self._pipeline.position.revision,
            state=state or self._status.state or State.CONNECTING,
            ledger=self._limiter.ledger,
            counters=self._pipeline.counters.copy(),
            updated_at=now,
            owner=self._owner_id,
        )
        record = Record(
            self._topics.checkpoints.name,
            checkpoint.feed.encode(),
            self._checkpoints.encode(checkpoint.to_avro()),
            int(now * 1000),
            partition=0,
        )
        assert checkpoint.counters.balanced, f"messages unaccounted for: {checkpoint.counters}"
        assert self._previous is None or checkpoint.follows(self._previous), "the checkpoint would go back"
        self._previous = checkpoint
        self._committer.start(self._pipeline.seal(), record)
        if now >= self._evict_at:
            self._evict_at = now + EVICT_SECONDS
            self._guard.evict(self._guarded_from(checkpoint.revision))

    async def _settle(self) -> None:
        """Wait for the commit under way, then commit what is in hand."""
        await self._committer.finish()
        if self._pipeline.batch.messages:
            await self._commit_now()

    async def _commit_now(self, state: State | None = None) -> None:
        """Commit at once, an empty batch too: the checkpoint is what matters."""
        await self._committer.finish()
        self._start_commit(state)
        await self._committer.finish()

    # Little things.

    def _goes_on(self) -> bool:
        """Whether to go on; raises NotOwner when leadership was lost."""
        if not self._owned():
            raise NotOwner("leadership was lost")
        return not self._stop.is_set()

    def _owned(self) -> bool:
        return self._leadership.holds(self._term)

    def _gone(self) -> bool:
        return self._stop.is_set() or not self._owned()

    def _on_new_extra(self, path: str) -> None:
        get().warning("a field that the interface does not know", path=path)

    async def _sleep(self, seconds: float) -> None:
        """Sleep, or until something happens."""
        timer = self._loop.call_later(seconds, self._wake.set)
        await self._wake.wait()
        timer.cancel()
        self._wake.clear()


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))

"""From one connection to the next: wait for the limits, declare gaps, commit the attempt, connect.

The provider's rules on reconnecting are in `bridge.feed.rate_limits`; the pause after a failure, which is
ours, is in `bridge.feed.backoff`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from bridge.clock import Instant
from bridge.clock_skew import Skew
from bridge.errors import (
    AuthError,
    ClockError,
    FeedError,
    FeedLost,
    FeedRefused,
    FeedUnreached,
    GapError,
    NotOwner,
    SettingsError,
)
from bridge.feed.catch_up import CatchUpTracker
from bridge.feed.protocol import HandshakeRequest, request
from bridge.feed.rate_limits import DECIDED_SECONDS, Decision
from bridge.formatting import format_duration, format_utc
from bridge.log import get
from bridge.records.checkpoint import State
from bridge.records.gap import Cause, FeedGap
from bridge.service.attempts import Attempts
from bridge.service.checkpointer import Checkpointer
from bridge.service.interfaces import Connect, FeedConnection, OwnerChecks
from bridge.service.pipeline import Pipeline
from bridge.service.term import Term

LONGEST_WAIT_SECONDS = 30.0
"""The limiter is consulted again after this time: a clock may have been set."""
EDGE_SECONDS = 600
"""Distance kept to the oldest replayable revision, which advances until the connection is open."""
CREDENTIAL_SECONDS = 5.0
"""How often the credential's file is read again after a refusal."""
GAP_RECOVERY_HINT = (
    "Get that interval from the provider by other means; to go on after it, start with feed.on_gap "
    "(BRIDGE_FEED__ON_GAP) = continue. `bridge gaps` lists all gaps."
)


@dataclass(eq=False, repr=False)
class Connector:
    """Opens one connection after the other."""

    open: Connect
    term: Term
    pipeline: Pipeline
    checkpointer: Checkpointer
    checks: OwnerChecks

    def __post_init__(self) -> None:
        self._feed = self.term.settings.feed
        self._clock = self.term.clock
        self._status = self.term.status
        self._provisional = False
        """Whether the last attempt asked for 0 and was not the first: what came before it may be missing."""
        self._credential_read_again = False
        self.attempts = Attempts(self.term)

    async def connect(self) -> FeedConnection | None:
        """Open a connection as soon as that is allowed. Returns None if the attempt failed or was put off.

        Every attempt is in the committed ledger before it is made. Raises GapError, ClockError, AuthError and
        SettingsError when an operator has to act, and the errors of a commit.
        """
        try:
            if self.term.timekeeper.stepped:
                await self._wait(self.attempts.pause)  # no answer is a failure, too
                await self.term.timekeeper.settle()  # the limits compute ages by this clock
            await self._wait(self.next_attempt)
            if self.term.timekeeper.stepped or not await self._confirm_position():
                return None  # the limits allowed another revision
            now = self._clock()
            revision = self._revision(now)
            is_first = self.term.committed is None
            if revision is None and is_first:  # nothing is promised yet, all from here on will be
                self.term.position.skip(int(now.wall - self._feed.safety_margin_seconds))
            self._provisional = revision is None and not is_first
            # Before the attempt: an unreadable credential must not cost one.
            asked = request(self._feed, revision)
            self.term.limiter.attempt(now, revision)
            self.pipeline.replay.asked(revision, now.wall)
            # Between attempts that reach nobody, the pauses are short: one state lasts through all of it.
            if not (self.attempts.unreached and self._status.state is State.BACKING_OFF):
                self._status.become(State.CONNECTING, revision=revision or 0)
            await self.checkpointer.commit(check_generation=True)  # a replaced owner must not connect
            if not self.term.counters.received:  # one that began at the same time was not there before
                await self.checks.refuse_other_feeds()
            if self._clock().monotonic - now.monotonic > DECIDED_SECONDS:
                get().warning("checkpoint commit took too long, asking the limiter again")
                self.term.limiter.withdraw()  # its decision may be outdated
                return None
            connection = await self._open(asked, decided=now)
            try:
                await self._accepted(connection, revision, decided=now)
            except BaseException:
                await connection.disconnect()
                raise
            return connection
        except FeedError as error:
            self.attempts.ended(error)
            if isinstance(error, FeedRefused) and error.status == 401:
                await self._credential_refused(error, asked, revision)
            return None

    def next_attempt(self, now: Instant) -> tuple[State, Decision]:
        """Return the state until the next attempt, and when limits and backoff allow it."""
        decision = self.term.limiter.decide(now, self._revision(now))
        pausing, pause = self.attempts.pause(now)
        return (State.WAITING_FOR_LIMIT, decision) if decision.until >= pause.until else (pausing, pause)

    def caught_up(self) -> None:
        """Note that all that this connection replays has come.

        Raises FeedLost if it asked for 0 after an earlier attempt: where 0 replays nothing, what was
        published in between is still to come, and the next connection asks for it.
        """
        if self.term.starting:
            self.term.starting = False
            if self._provisional:
                raise FeedLost("revision 0 has been received, asking for all since the first attempt")

    async def report(self, gap: FeedGap) -> None:
        """Log a gap that is in the current batch; stop if `feed.on_gap` is stop.

        Raises GapError then, once the gap is committed with a checkpoint after it.
        """
        get().error(
            "gap declared, bets published in it may be missing",
            feed=gap.feed,
            start=format_utc(gap.start),
            end=format_utc(gap.end),
            lasted=format_duration(gap.seconds),
            cause=gap.cause.value,
            on_gap=self._feed.on_gap,
            what_to_do="obtain the bets of this interval from the provider; `bridge gaps` lists it",
        )
        if self._feed.on_gap == "stop":
            self._status.become(
                State.STOPPED_ON_GAP, f"{gap.cause.value}: {format_utc(gap.start)} to {format_utc(gap.end)}"
            )
            await self.checkpointer.commit()
            raise GapError(gap_text(gap))

    def _revision(self, now: Instant) -> int | None:
        """Return the revision to request: not in the future of the provider's clock, and still replayable."""
        if self.term.starting:
            return None
        present = int(now.wall - self._feed.max_clock_skew_seconds)
        return max(min(self.term.position.revision, present), self.term.limiter.oldest_replayable(now.wall))

    async def _wait(self, decide: Callable[[Instant], tuple[State, Decision]]) -> None:
        while True:
            now = self._clock()
            state, decision = decide(now)
            if decision.until <= now.wall:
                return
            changed = self._status.become(state, decision.reason, until=decision.until)
            if changed and self.term.committed is not None:  # else the position would be a promise
                await self.checkpointer.commit()
                continue
            await sleep(self.term.wake, min(decision.until - now.wall, LONGEST_WAIT_SECONDS))

    async def _confirm_position(self) -> bool:
        """Return whether to connect now: neither our clock nor the position had to be corrected.

        Raises GapError if the feed can no longer replay the position and `feed.on_gap` is stop, ClockError if
        a clock is wrong, FeedError if the provider does not tell its time.
        """
        if self.term.safe_revision is not None or self.term.is_ahead:
            await self.term.timekeeper.compare()
            if self.term.clock_was_wrong:  # then the position may well be right
                self.term.safe_revision = self.term.find_safe_revision()
            if self.term.safe_revision is not None or self.term.is_ahead:
                await self._take_back()
            return False
        oldest = self.term.limiter.oldest_replayable(self._clock().wall)
        if self.term.starting or self.term.position.revision >= oldest:
            return True
        # A clock that is days ahead would skip what the provider can still replay. A gateway may answer
        # nothing but connections to the feed: then the handshake confirms the clock before that.
        if await self.term.timekeeper.check_or_assume():
            return False
        if self._feed.on_gap == "stop" and self.term.timekeeper.skew is not None:
            await self._skip(self.term.limiter.oldest_replayable(self._clock().wall))
        return True

    async def _take_back(self) -> None:
        """Go back to the certain revision and declare the rest as a gap. Raises as `report`."""
        term, position, now = self.term, self.term.position, self._clock().wall
        if term.safe_revision is None or term.clock_was_wrong:
            raise ClockError(
                f"the committed position {format_utc(position.revision)} is in the future: this machine's "
                "clock is behind, or was wrong until now. Correct it (is NTP running?) and start the "
                "bridge again: what was promised too early, if anything, is then received again and "
                "declared as a gap."
            )
        start, end = term.safe_revision, position.revision
        position.rewind_to(max(start, self.term.limiter.oldest_replayable(now) + EDGE_SECONDS))
        term.safe_revision = None  # no longer covered by the restored state, which is evicted from now on
        await self._declare(start, end, Cause.POSITION_IN_FUTURE)

    async def _skip(self, revision: int) -> None:
        """Continue from a later revision; the interval between is a gap. Raises as `report`."""
        position = self.term.position
        start = position.revision
        position.skip(revision)
        await self._declare(start, revision, Cause.TOO_OLD)

    async def _declare(self, start: int, end: int, cause: Cause) -> None:
        gap = FeedGap(self._feed.name, start, end, cause, self._clock().wall)
        self.pipeline.declare(gap)
        await self.report(gap)

    async def _open(self, asked: HandshakeRequest, decided: Instant) -> FeedConnection:
        try:
            connection = await self.open(self._feed, asked, self.term.wake.set, self._clock)
        except FeedRefused as error:
            refused, pause = self.attempts.is_refusal(error), error.retry_after
            self.term.limiter.answered(self._clock(), refused=refused, retry_after=pause)
            if error.skew is not None:
                self.term.timekeeper.note(Skew(*error.skew))
            raise
        except SettingsError:  # before anything was sent
            self.term.limiter.withdraw()
            raise
        except FeedUnreached as error:
            if self.term.settings.limits.count_unreached:
                raise FeedLost(str(error)) from None
            self.term.limiter.withdraw()
            raise
        except FeedLost:
            if self._suspended_since(decided):  # the request may have left just now
                self.term.limiter.answered(self._clock(), refused=False)
            raise
        now = self._clock()
        self.term.limiter.answered(now, refused=False)
        self.attempts.accepted(now)
        return connection

    async def _accepted(self, connection: FeedConnection, revision: int | None, decided: Instant) -> None:
        """Begin to use an accepted connection. Raises if what the attempt relied on no longer holds."""
        suspended = self._suspended_since(decided)
        # A process that was paused may have lost the feed without knowing it yet.
        if not await self.checks.still_owner():
            raise NotOwner("leadership was lost while connecting")
        if suspended:
            raise FeedLost("this process was suspended while it connected: the limiter's decision is too old")
        if self.term.timekeeper.note(connection.skew):
            raise FeedLost("this machine's clock was corrected: the revision was older than it seemed")
        if self.term.is_ahead:
            raise FeedLost("the position turns out to be in the future")
        self._credential_read_again = False
        if revision is not None and revision > self.term.position.revision:
            # Only now: the gap grows until a connection is open, and one record is enough.
            await self._skip(revision)
        keeper = self.term.timekeeper
        self.pipeline.connected(revision, keeper.skew, keeper.corrected_at, provisional=self._provisional)
        self.term.progress = CatchUpTracker()

    def _suspended_since(self, decided: Instant) -> bool:
        """Return whether an attempt took longer than it may: this process, or its machine, stood still."""
        took = self._clock().monotonic - decided.monotonic
        return took > DECIDED_SECONDS + self._feed.connect_timeout_seconds

    async def _credential_refused(
        self, error: FeedRefused, asked: HandshakeRequest, revision: int | None
    ) -> None:
        """Read the credential again, once: its file may have been rotated. Raises AuthError.

        While the file cannot be read, no connection is attempted.
        """
        while problem := self._feed.secret.problem():
            reason = f"the credential was refused, and its file cannot be used: {problem}"
            if self._status.become(State.BACKING_OFF, reason):
                await self.checkpointer.commit()
            await sleep(self.term.wake, CREDENTIAL_SECONDS)
        if not self._credential_read_again and request(self._feed, revision).secret != asked.secret:
            self._credential_read_again = True
            get().warning("credential refused, trying the new one in its file")
            return
        raise AuthError(
            f"{error}. Check feed.auth (BRIDGE_FEED__AUTH) and the credential that goes with it."
        ) from None


def gap_text(gap: FeedGap) -> str:
    """Return what an operator has to know and do about a gap at which the bridge stopped."""
    return (
        f"a gap of {format_duration(gap.seconds)}: what the provider published from {format_utc(gap.start)} "
        f"to {format_utc(gap.end)} may be missing ({gap.cause.value}). {GAP_RECOVERY_HINT}"
    )


async def sleep(wake: asyncio.Event, seconds: float) -> None:
    """Sleep, or return early when `wake` is set. Clears `wake`."""
    timer = asyncio.get_running_loop().call_later(seconds, wake.set)
    try:
        await wake.wait()
    finally:
        timer.cancel()
    wake.clear()

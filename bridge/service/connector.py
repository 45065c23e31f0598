"""From one connection to the next: wait for the limits, declare what is lost, write it down, dial.

What the interface says of reconnecting is in `bridge.feed.rate_limits`; what comes on top of it, a pause
after a failure, in `bridge.feed.backoff`.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable

from bridge.clock import Instant
from bridge.config import Settings
from bridge.errors import AuthError, ClockError, FeedError, FeedLost, FeedRefused, GapError, NotOwner
from bridge.feed.backoff import Backoff
from bridge.feed.protocol import Request, request
from bridge.feed.rate_limits import DECIDED_SECONDS, Decision, Limiter
from bridge.formatting import duration, utc
from bridge.log import get
from bridge.service.checkpointer import Checkpointer
from bridge.service.interfaces import Connection, Dependencies
from bridge.service.pipeline import Pipeline
from bridge.service.status import Status
from bridge.service.timekeeper import STEP_SECONDS, Timekeeper
from bridge.state.checkpoint import State
from bridge.state.gap import Cause, Gap

LONGEST_WAIT_SECONDS = 30.0
"""After which the limiter is asked again: a clock may have been set."""
EDGE_SECONDS = 600
"""Room between a position that is taken back and the edge of memory, which moves on until the dial."""
CREDENTIAL_SECONDS = 5.0
"""From one look for a credential's file to the next, where the last credential was refused."""
HOW_TO_GO_ON = (
    "Get that interval from the provider by other means; to go on behind it, start with feed.on_gap "
    "(BRIDGE_FEED__ON_GAP) = continue. `bridge gaps` lists all gaps."
)


class Connector:
    """Opens one connection after the other.

    `first` says that nothing was ever asked of the feed: only then the URL has `revision=0`. `certain` is
    the revision to go back to where the position lay in the future when the guard was restored, else None.
    `pause` sleeps for at most the given seconds, `still_owner` asks the coordinator, `woken` is called when a
    connection has received something.
    """

    def __init__(
        self,
        settings: Settings,
        dependencies: Dependencies,
        status: Status,
        limiter: Limiter,
        pipeline: Pipeline,
        checkpointer: Checkpointer,
        timekeeper: Timekeeper,
        *,
        first: bool,
        certain: int | None,
        pause: Callable[[float], Awaitable[None]],
        still_owner: Callable[[], Awaitable[bool]],
        woken: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._feed = settings.feed
        self._dependencies = dependencies
        self._clock = dependencies.clock
        self._status = status
        self._limiter = limiter
        self._pipeline = pipeline
        self._checkpointer = checkpointer
        self._timekeeper = timekeeper
        self._first = first
        self._certain = certain
        self._offset = dependencies.clock.offset
        self._pause = pause
        self._still_owner = still_owner
        self._woken = woken
        self._backoff = Backoff(settings.limits.scale, random.uniform)
        self._credential_read_again = False
        self._opened_at: float | None = None
        self.connections: Counter[str] = Counter()
        """Attempts so far: `accepted`, `refused`, `failed`."""

    def decide(self, now: Instant) -> Decision:
        """When the next dial is let in, by the provider's limits and by the pause after a failure."""
        return self._wait_for(now)[1]

    def _wait_for(self, now: Instant) -> tuple[State, Decision]:
        decision = self._limiter.decide(now, None if self._first else self._revision(now))
        rested = now.wall + self._backoff.left(now.monotonic)
        if decision.until >= rested:
            return State.WAITING_FOR_LIMIT, decision
        return State.BACKING_OFF, Decision(rested, "a pause after a failure")

    async def connect(self) -> Connection | None:
        """Open a connection as soon as that is allowed; None when there is none, for now.

        Raises GapError, ClockError, AuthError and SettingsError when a person has to act, and what
        ends a commit. Every attempt is in the committed ledger before it is made.
        """
        try:
            await self._settle()
            await self._wait()
            if self._timekeeper.stepped or not await self._look_back():
                return None
            now = self._clock()
            revision = None if self._first else self._revision(now)
            if revision is None:  # nothing was asked yet, so nothing is promised
                self._pipeline.position.skip(int(now.wall - self._feed.safety_margin_seconds))
            asked = request(self._feed, revision)  # a credential that cannot be read costs no attempt
            self._limiter.attempt(now, revision)
            self._status.become(State.CONNECTING, revision=revision or 0)
            await self._checkpointer.commit()
            if self._clock().monotonic - now.monotonic > DECIDED_SECONDS:
                get().warning("Kafka took long for the checkpoint: asking the limiter anew")
                self._limiter.withdraw()  # what was decided then need not hold now
                return None
            self._first = False  # from here on the position is promised
            return await self._dial(asked, revision, now)
        except FeedError as error:
            self.ended(error)
            if isinstance(error, FeedRefused) and error.status == 401:
                await self._credential_refused(error, asked, revision)
            return None

    def ended(self, error: FeedError) -> None:
        """The connection, or the attempt at one, has come to this end."""
        now = self._clock()
        refused = self._is_refusal(error)
        if refused and self._opened_at is not None:  # let in, and then closed for a limit
            self._limiter.answered(now, refused=True)
        if self._opened_at is None or refused:
            self.connections["refused" if refused else "failed"] += 1
        lasted = 0.0 if self._opened_at is None else now.monotonic - self._opened_at
        self._opened_at = None
        self._backoff.failed(now.monotonic, lasted=lasted, refused=refused)
        get().warning("the connection is over", reason=str(error), failures=self._backoff.failures)

    async def _wait(self) -> None:
        while True:
            now = self._clock()
            state, decision = self._wait_for(now)
            if decision.until <= now.wall:
                return
            if self._status.become(state, decision.reason, until=decision.until):
                await self._checkpointer.commit()
                continue
            await self._pause(min(decision.until - now.wall, LONGEST_WAIT_SECONDS))

    def _revision(self, now: Instant) -> int:
        """What to ask for: never what may lie ahead by the provider's clock, nor what is forgotten."""
        present = int(now.wall - self._feed.max_clock_skew_seconds)
        return max(min(self._pipeline.position.revision, present), self._limiter.oldest_replayable(now.wall))

    async def _settle(self) -> None:
        """Have a clock that ages can be taken by. Raises FeedError, ClockError."""
        self.moved(await self._timekeeper.settle())

    def moved(self, seconds: float | None) -> bool:
        """The clock was set right by so many seconds; returns whether that is more than the margins bear."""
        far = seconds is not None and abs(seconds) > self._feed.max_clock_skew_seconds
        if far:
            self._pipeline.position.set_right(self._clock().wall)
        return far

    async def _look_back(self) -> bool:
        """Whether the feed still has what comes after the position, so that the limiter's decision holds.

        Raises GapError when it has not and the operator wants to stop then, ClockError when a clock is
        wrong, FeedError when the provider cannot be asked for the time: then a dial would fail as well.
        """
        position, now = self._pipeline.position, self._clock().wall
        if self._certain is not None or self._in_future(now):
            self.moved(await self._timekeeper.compare())
            if self._certain is not None or self._in_future(self._clock().wall):
                await self._take_back()
            return False
        if self._first or position.revision >= self._limiter.oldest_replayable(now):
            return True
        # A clock that runs days ahead would give away what the provider still has.
        if self.moved(await self._timekeeper.compare()):
            return False
        if self._feed.on_gap == "stop":
            await self._skip(self._limiter.oldest_replayable(self._clock().wall))
        return True

    def _in_future(self, now: float) -> bool:
        """Whether the position lies ahead of the provider's clock, however far that is from ours."""
        return self._pipeline.position.revision > now + self._feed.max_clock_skew_seconds

    async def _take_back(self) -> None:
        """Go back to what is certain: what was promised beyond may not have come. Raises as `declared`."""
        position, now = self._pipeline.position, self._clock().wall
        clock_was_wrong = abs(self._clock.offset - self._offset) > STEP_SECONDS
        if self._certain is None or clock_was_wrong:  # and so is what the guard was restored from
            raise ClockError(
                f"the committed position {utc(position.revision)} is in the future: this machine's clock is "
                "behind, or was wrong until now. Set it right (is NTP running?) and start the bridge again: "
                "what was promised too early, if anything, is then received again and declared as a gap."
            )
        gap = Gap(self._feed.name, self._certain, position.revision, Cause.POSITION_IN_FUTURE, now)
        self._pipeline.declare(gap)
        position.reset(max(self._certain, self._limiter.oldest_replayable(now) + EDGE_SECONDS))
        self._certain = None  # what the guard was restored from; it forgets from here on
        await self.declared(gap)

    async def _skip(self, revision: int) -> None:
        """Go on from a revision behind the position; what lies between is a gap. Raises as `declared`."""
        position, now = self._pipeline.position, self._clock().wall
        gap = Gap(self._feed.name, position.revision, revision, Cause.TOO_OLD, now)
        self._pipeline.declare(gap)
        position.skip(revision)
        await self.declared(gap)

    async def declared(self, gap: Gap) -> None:
        """A gap is in the batch in hand: say so, loudly, and stop where the operator wants that.

        Raises GapError, once the gap is committed with a checkpoint that goes on behind it.
        """
        get().error(
            "a gap: what the provider published in this interval may be missing",
            feed=gap.feed,
            start=utc(gap.start),
            end=utc(gap.end),
            lasted=duration(gap.seconds),
            cause=gap.cause.value,
            on_gap=self._feed.on_gap,
            what_to_do="get this interval from the provider by other means; `bridge gaps` lists it",
        )
        if self._feed.on_gap == "stop":
            self._status.become(
                State.STOPPED_ON_GAP, f"{gap.cause.value}: {utc(gap.start)} to {utc(gap.end)}"
            )
            await self._checkpointer.commit()
            raise GapError(gap_text(gap))

    async def _dial(self, asked: Request, revision: int | None, decided: Instant) -> Connection:
        try:
            connection = await self._dependencies.dial(self._feed, asked, self._woken, self._clock)
        except FeedRefused as error:
            self._limiter.answered(self._clock(), refused=self._is_refusal(error))
            raise
        try:
            await self._opened(connection, revision, decided)
        except BaseException:
            await connection.disconnect()
            raise
        return connection

    async def _opened(self, connection: Connection, revision: int | None, decided: Instant) -> None:
        now = self._clock()
        self._limiter.answered(now, refused=False)
        self._opened_at = now.monotonic
        self.connections["accepted"] += 1
        # A process that was stopped meanwhile may have lost the feed, and does not know it yet.
        if not await self._still_owner():
            raise NotOwner("leadership was lost while dialling")
        if now.monotonic - decided.monotonic > DECIDED_SECONDS + self._feed.connect_timeout_seconds:
            raise FeedLost("this process stood still while it dialled: what was decided is too old")
        if self.moved(self._timekeeper.note(connection.skew)):
            raise FeedLost("this machine's clock was set right: what was asked for was older than it seemed")
        now = self._clock()
        if self._in_future(now.wall):
            raise FeedLost("the position turns out to be in the future")
        self._credential_read_again = False
        if revision is not None and revision > self._pipeline.position.revision:
            # Only now: as long as nobody answers, the gap grows, and one is enough.
            await self._skip(revision)
        self._pipeline.connected(revision, self._timekeeper.skew, now.wall)
        self._checkpointer.progress.connected()

    def _is_refusal(self, error: FeedError) -> bool:
        """Whether the provider meant: not now. Any other answer is a fault of somebody's."""
        return isinstance(error, FeedRefused) and error.status in {None, *self._feed.refusal_statuses}

    async def _credential_refused(self, error: FeedRefused, asked: Request, revision: int | None) -> None:
        """A credential in a file may have been rotated just now: it is read again, once.

        While it cannot be read nothing is concluded, and nothing dialled. Raises AuthError.
        """
        while trouble := self._feed.auth_trouble():
            reason = f"the credential was refused, and its file cannot be read: {trouble}"
            if self._status.become(State.BACKING_OFF, reason):
                await self._checkpointer.commit()
            await self._pause(CREDENTIAL_SECONDS)
        if not self._credential_read_again and request(self._feed, revision).secret != asked.secret:
            self._credential_read_again = True
            get().warning("the credential was refused, and its file holds another by now: trying that")
            return
        raise AuthError(
            f"{error}. Check feed.auth (BRIDGE_FEED__AUTH) and the credential that goes with it."
        ) from None


def gap_text(gap: Gap) -> str:
    """What a person has to know and to do about a gap at which the bridge has stopped."""
    return (
        f"a gap of {duration(gap.seconds)}: what the provider published from {utc(gap.start)} to "
        f"{utc(gap.end)} may be missing ({gap.cause.value}). {HOW_TO_GO_ON}"
    )

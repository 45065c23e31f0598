"""The revision that is safe to promise, sans-IO.

No message says where in the feed it stands (interface, "Settlement feed"), so a position is worked out
from two facts: nothing is published before it is settled, and what is published is sent in order. So
when a message settled at t has come, everything published before t has come too.

    catching up    every connection begins so: what comes may be days old. The revision follows the
                   lowest settlementTime of the last `WINDOW` plausible ones, less the overlap.
                   Plausible is what lies in (revision, now]: a late resettlement may carry an old
                   time, a broken clock a future one, and 0001-01-01 means none.
    live           the last `NEAR` settlementTimes were within `disorder` of now, so the feed cannot
                   be further behind than that. Then data, and what says nothing of its time and
                   comes after it, move the revision to their time of receipt less disorder and
                   overlap. Older data stops it until as many near ones have come again: it may be a
                   late resettlement, or a feed that has fallen behind.

Back to catching up when the socket was not read for more than half the overlap, because what is read
next was published long ago; when `WINDOW` data in a row were settled longer than `disorder` ago, because
then the feed is behind after all; and when such data, between others, have held it for `quiet` seconds.
Pings alone count as caught up after `quiet` seconds, but only if the last data before them were near now,
otherwise after an hour: a provider may pause, and ping, in the middle of a replay.

What is not understood moves nothing: it may have been sent at any time. Pings after it do not either, until
data near now, or pings alone for `quiet` seconds, have shown that the feed has not fallen behind.

settlementTime is in the provider's time, receipt in ours. By as much as the two clocks are known to
differ, a time may lie ahead of now, and the revision stays further behind. Where a handshake does not tell,
the data do; where it does, data from further ahead are a question (`doubts_clocks`), not an answer.

The revision never goes back and never passes now; one that turns out to lie in the future is taken back
(`reset`), and a gap declared. All times are Unix seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from statistics import median

WINDOW = 50
"""How many plausible settlementTimes are looked at while catching up."""
NEAR = 3
"""How many settlementTimes in a row must be near now: a single one may be wrong."""
BLIND_LIVE_AFTER_PINGS_SECONDS = 3600.0
"""How long pings alone must last where no data has shown the feed to be near now."""


@dataclass(frozen=True, slots=True)
class PositionSettings:
    """The margins, in seconds; see `bridge.config.FeedSettings`."""

    overlap: float
    disorder: float
    quiet: float


class Position:
    """Where the feed stands, and what of it may be promised."""

    def __init__(self, settings: PositionSettings, revision: int) -> None:
        self._settings = settings
        self._revision = float(revision)
        self._window = _Window()
        self._near = self._far = 0
        """How many data in a row were near now, and were not."""
        self._leads: list[float] = []
        """By how much the last data were settled in the future, as long as all of them were."""
        self._ahead = 0.0
        """How far in the future a settlementTime may lie: so far the provider's clock may be ahead."""
        self._learns = True
        """Whether the data tell how far it is, because no handshake did."""
        self._obscured = False
        """Whether something came that is not understood, and nothing since shows where the feed is."""
        self._was_live = False
        """Whether it was live on this connection, and no data that were not near have come since."""
        self._pings_since: float | None = None
        self._live_since: float | None = None
        self.skew = 0.0
        """How far the provider's clock is from ours at least, seconds, as far as is known."""
        self.doubts_clocks = False
        """Whether data in a row were settled later than the provider's clock can be by its own word."""
        self._promised_at = 0.0
        self._not_before = 0.0
        """Until it can be promised as much, nothing more is."""
        self.taken_back = False
        """Whether the revision has gone back, until somebody takes note of it."""
        self.newest: float | None = None
        """The newest plausible settlementTime of this connection."""
        self.last_data: float | None = None
        """When data last came on this connection."""

    @property
    def revision(self) -> int:
        """Everything that the provider published before this second has been handed on."""
        return int(self._revision)

    @property
    def live(self) -> bool:
        """Whether the feed is known to be within `disorder` of now."""
        return self._live_since is not None

    def replaying(self, at: float) -> bool:
        """Whether what comes now may have come before: catching up, or not long enough after."""
        margin = self._settings.disorder + self._settings.overlap + self.skew
        return self._live_since is None or at - self._live_since <= margin

    def quiet(self, now: float) -> bool:
        """Whether the feed is live but no data has come for long."""
        return self.live and (self.last_data is None or now - self.last_data > self._settings.quiet)

    def held(self, now: float) -> bool:
        """Whether it is live, but has had nothing to promise for long: the feed may have fallen behind."""
        return self.live and now - self._promised_at > self._settings.quiet

    def connected(self, skew: float = 0.0, ahead: float | None = None) -> None:
        """A new connection: what comes may be old. The arguments are those of `compared`."""
        self.stalled()
        self.compared(skew, ahead)
        self._was_live = self._obscured = False
        self.newest = self.last_data = None

    def compared(self, skew: float, ahead: float | None) -> None:
        """What the provider says of its clock: how far it is from ours at least, seconds.

        And how far it may be ahead at most; None where it does not say, and the data are to tell.
        """
        self.skew = abs(skew)
        self._ahead = max(0.0, skew if ahead is None else ahead)
        self._learns = ahead is None
        self._leads.clear()
        self.doubts_clocks = False

    def stalled(self) -> None:
        """The socket was not read for more than half the overlap before what comes next."""
        self._live_since = self._pings_since = None
        self._near = self._far = 0
        self._window.clear()

    def skip(self, revision: int) -> None:
        """Go on from a later revision: what lies before it is a gap, and declared as one."""
        self._revision = max(self._revision, float(revision))

    def reset(self, revision: int) -> None:
        """Go back to an earlier revision: the one so far lies in the future, and is declared as a gap."""
        self._revision = float(revision)
        self.taken_back = True

    def set_right(self, now: float) -> None:
        """Our clock was set forward to `now`: what came lately is stamped by one that was behind.

        In between no revision is promised: a replay from there would bring back what the stamps, by which the
        guard forgets and is restored, say to be older.
        """
        self._not_before = now + self._settings.overlap

    def data(self, at: float, settled_at: float) -> None:
        """A settled bet was received; `settled_at` is its settlementTime."""
        self.last_data = at
        self._pings_since = None
        self._locate(at, settled_at)
        self._advance(at)

    def not_understood(self, at: float) -> None:
        """Something was received that is no bet, and no ping that is nothing else."""
        self.last_data = at
        self._pings_since = None
        self._obscured = True

    def _locate(self, at: float, settled_at: float) -> None:
        """Learn from a settlementTime how far behind now the feed is."""
        self._compare_clocks(settled_at - at)
        if -self._ahead <= at - settled_at <= self._settings.disorder:
            self._far = 0
            self._obscured = False
            self._near += 1
            if self._near >= NEAR:
                self._go_live(at)
        else:
            self._was_live = False
            self._near = 0
            self._far += 1
            if self.live and (self._far >= WINDOW or self.held(at)):
                self.stalled()
        if self._revision < settled_at <= at + self._ahead:
            self._window.add(settled_at)
            self.newest = settled_at if self.newest is None else max(self.newest, settled_at)

    def _compare_clocks(self, ahead: float) -> None:
        """Where all data come from the future, the provider's clock is ahead; by what half of them are."""
        if ahead <= self._ahead:
            self._leads.clear()
            return
        self._leads.append(ahead)
        if len(self._leads) == WINDOW:
            if self._learns:
                self.skew = self._ahead = median(self._leads)
            else:
                self.doubts_clocks = True
            self._leads.clear()

    def ping(self, at: float) -> None:
        """A ping was received."""
        if self._pings_since is None:
            self._pings_since = at
        quiet = self._settings.quiet if self._was_live else BLIND_LIVE_AFTER_PINGS_SECONDS
        if at - self._pings_since >= quiet:
            self._near, self._far = NEAR, 0
            self._obscured = False
            self._go_live(at)
        self._advance(at)

    def _go_live(self, at: float) -> None:
        self._was_live = True
        if self._live_since is None:
            self._live_since = at

    def _advance(self, at: float) -> None:
        overlap = self._settings.overlap + self.skew
        if self.live:
            if self._near < NEAR or self._obscured:
                return
            self._promised_at = at
            promise = at - self._settings.disorder - overlap
        elif self._window.full:
            promise = self._window.lowest - overlap
        else:
            return
        if promise >= self._not_before:
            self._revision = max(self._revision, promise)


class _Window:
    """The lowest of the last `WINDOW` times, kept as they come: looking at all would take a microsecond."""

    def __init__(self) -> None:
        self._rising: deque[tuple[int, float]] = deque()
        """Of the last `WINDOW` times, each that no later one goes below, with its number."""
        self._count = 0

    @property
    def full(self) -> bool:
        """Whether there have been as many."""
        return self._count >= WINDOW

    @property
    def lowest(self) -> float:
        """The lowest of them; there must have been one."""
        return self._rising[0][1]

    def add(self, time: float) -> None:
        """Take one in, and leave the oldest."""
        while self._rising and self._rising[-1][1] >= time:
            self._rising.pop()
        self._rising.append((self._count, time))
        self._count += 1
        if self._rising[0][0] < self._count - WINDOW:
            self._rising.popleft()

    def clear(self) -> None:
        """Begin anew."""
        self._rising.clear()
        self._count = 0

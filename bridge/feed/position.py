"""The revision that is safe to promise, sans-IO.

No message says where in the feed it stands (interface, "Settlement feed"), so a position is worked out
from two facts: nothing is published before it is settled, and what is published is sent in order. So
when a message settled at t has come, everything published before t has come too.

    catching up    every connection begins so: what comes may be days old. The revision follows the
                   lowest settlementTime of the last `WINDOW` plausible ones, less the overlap.
                   Plausible is what lies in (revision, now]: a late resettlement may carry an old
                   time, a broken clock a future one, and 0001-01-01 means none.
    live           the newest plausible settlementTime was within `disorder` of now, so the feed cannot
                   be further behind than that. Then data settled within `disorder`, and what says
                   nothing of its time and comes after it, move the revision to their time of receipt
                   less disorder and overlap. Older data does not: it may be a late resettlement, or a
                   feed that has fallen behind.

Back to catching up when the socket was not read for more than half the overlap, because what is read
next was published long ago; and when `WINDOW` data in a row were settled longer than `disorder` ago,
because then the feed is behind after all. Pings alone count as caught up after `quiet` seconds, but
only if data had come within `disorder` of now on this connection, otherwise after an hour: a provider
may pause, and ping, in the middle of a replay.

The revision never goes back and never passes now. All times are Unix seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

WINDOW = 50
"""How many plausible settlementTimes are looked at while catching up."""
BLIND_QUIET_SECONDS = 3600.0
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
        self._window: deque[float] = deque(maxlen=WINDOW)
        self._was_near = False
        self._far = 0
        self._pings_since: float | None = None
        self._live_since: float | None = None
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
        margin = self._settings.disorder + self._settings.overlap
        return self._live_since is None or at - self._live_since <= margin

    def quiet(self, now: float) -> bool:
        """Whether the feed is live but no data has come for long."""
        return self.live and (self.last_data is None or now - self.last_data > self._settings.quiet)

    def connected(self) -> None:
        """A new connection: what comes may be old."""
        self.stalled()
        self._was_near = False
        self.newest = self.last_data = None

    def stalled(self) -> None:
        """The socket was not read for more than half the overlap before what comes next."""
        self._live_since = self._pings_since = None
        self._far = 0
        self._window.clear()

    def data(self, at: float, settled_at: float | None) -> None:
        """A settled bet was received; `settled_at` is its settlementTime, None where it has none."""
        self.last_data = at
        self._pings_since = None
        if settled_at is not None:
            self._locate(at, settled_at)
        self._advance(at)

    def _locate(self, at: float, settled_at: float) -> None:
        """Learn from a settlementTime how far behind now the feed is."""
        if 0 <= at - settled_at <= self._settings.disorder:
            self._far = 0
            self._was_near = True
            self._go_live(at)
        else:
            self._far += 1
            if self.live and self._far >= WINDOW:
                self.stalled()
        if self._revision < settled_at <= at:
            self._window.append(settled_at)
            self.newest = settled_at if self.newest is None else max(self.newest, settled_at)

    def ping(self, at: float) -> None:
        """A ping was received."""
        if self._pings_since is None:
            self._pings_since = at
        quiet = self._settings.quiet if self._was_near else BLIND_QUIET_SECONDS
        if at - self._pings_since >= quiet:
            self._far = 0
            self._go_live(at)
        self._advance(at)

    def _go_live(self, at: float) -> None:
        if self._live_since is None:
            self._live_since = at

    def _advance(self, at: float) -> None:
        if self.live:
            if self._far:
                return
            promise = at - self._settings.disorder - self._settings.overlap
        elif len(self._window) == WINDOW:
            promise = min(self._window) - self._settings.overlap
        else:
            return
        self._revision = max(self._revision, promise)

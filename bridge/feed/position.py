"""The revision from which a later connection must be replayed, sans-IO.

No message carries its position in the feed (interface, "Settlement feed"), so it is derived from two facts:
nothing is published before it is settled, and messages are sent in the order of publication. When a message
settled at t has arrived, everything published before t has arrived too.

    catching up    every connection begins here: messages may be days old. The revision follows the
                   lowest settlementTime of the last `WINDOW` plausible ones, minus the overlap.
                   Plausible are times in (revision, now]: a late resettlement may carry an old
                   time, a broken clock a future one, and 0001-01-01 means none.
    live           the last `NEAR` settlementTimes were within `disorder` of now, so the feed cannot
                   be further behind than that. Then data, and messages without a time that follow it,
                   move the revision to their time of receipt minus disorder and overlap. Older data
                   stops it until `NEAR` near ones have arrived again: it may be a late resettlement, or
                   a feed that has fallen behind.

It returns to catching up when the socket was not read for more than half the overlap, because the next data
was published long ago; when `WINDOW` data in a row were settled longer than `disorder` ago, because then the
feed is behind; and when such data, between others, have stopped the revision for `quiet` seconds. Pings alone
mean caught up after `quiet` seconds if the last data before them were near now, otherwise after an hour: a
provider may pause, and ping, in the middle of a replay.

Invalid messages do not move the revision: they may have been sent at any time. Nor do pings after them, until
data near now, or pings alone for `quiet` seconds, have shown that the feed has not fallen behind.

settlementTime is in the provider's time, receipt in ours. A time may lie ahead of now by the known skew, and
the revision stays behind by as much. If the handshake does not show the skew, the data do; if it does, data
from further ahead raise a doubt (`doubts_clocks`).

The revision never decreases and never passes now; one that turns out to lie in the future is taken back
(`reset`), and a gap declared. All times are Unix seconds.
"""

from __future__ import annotations

from collections import deque
from statistics import median

from bridge.config import FeedSettings

WINDOW = 50
"""Number of plausible settlementTimes considered while catching up."""
NEAR = 3
"""Number of settlementTimes in a row that must be near now: a single one may be wrong."""
BLIND_LIVE_AFTER_PINGS_SECONDS = 3600.0
"""How long pings alone must last if no data was near now."""


class Position:
    """The position in the feed. Its `revision` is safe to commit."""

    def __init__(self, settings: FeedSettings, revision: int) -> None:
        self._overlap: float = settings.safety_margin_seconds
        self._disorder: float = settings.max_out_of_orderness_seconds
        self._quiet: float = settings.live_after_pings_seconds
        self._revision = float(revision)
        self._window: deque[float] = deque(maxlen=WINDOW)
        """The last plausible settlementTimes."""
        self._near = self._far = 0
        """Number of data in a row that were near now, and that were not."""
        self._leads: list[float] = []
        """Seconds by which the last data were ahead of now, while all of them were."""
        self._ahead = 0.0
        """Seconds by which the provider's clock, and so a settlementTime, may be ahead."""
        self._learns = True
        """Whether that is learnt from the data, because the handshake did not show it."""
        self._obscured = False
        """Whether an invalid message arrived, and nothing since shows where the feed is."""
        self._was_live = False
        """Whether it was live on this connection, and all data since were near now."""
        self._pings_since: float | None = None
        self._live_since: float | None = None
        self.skew = 0.0
        """Lower bound of the distance between the clocks, seconds."""
        self.doubts_clocks = False
        """Whether data in a row were settled later than the provider's clock can be by its handshake."""
        self._promised_at = 0.0
        self._not_before = 0.0
        """The revision does not advance until it can advance beyond this."""
        self.taken_back = False
        """Whether the revision was taken back since the last checkpoint."""
        self.newest: float | None = None
        """The newest plausible settlementTime of this connection."""
        self.last_data: float | None = None
        """When data last arrived on this connection."""

    @property
    def revision(self) -> int:
        """Everything that the provider published before this second was handled."""
        return int(self._revision)

    @property
    def live(self) -> bool:
        """Whether the feed is known to be within `disorder` of now."""
        return self._live_since is not None

    def replaying(self, at: float) -> bool:
        """Return whether a message may be a repetition: catching up, or shortly after."""
        margin = self._disorder + self._overlap + self.skew
        return self._live_since is None or at - self._live_since <= margin

    def quiet(self, now: float) -> bool:
        """Return whether the feed is live but had no data for long."""
        return self.live and (self.last_data is None or now - self.last_data > self._quiet)

    def stagnant(self, now: float) -> bool:
        """Return whether it is live but has not advanced for long: the feed may have fallen behind."""
        return self.live and now - self._promised_at > self._quiet

    def connected(self, skew: float = 0.0, ahead: float | None = None) -> None:
        """Begin a connection: messages may be old. The arguments are those of `compared`."""
        self.after_read_pause()
        self.compared(skew, ahead)
        self._was_live = self._obscured = False
        self.newest = self.last_data = None

    def compared(self, skew: float, ahead: float | None) -> None:
        """Take note of the provider's clock: its least distance from ours, and how far it is ahead at most.

        Both in seconds; `ahead` is None if it is to be learnt from the data.
        """
        self.skew = abs(skew)
        self._ahead = max(0.0, skew if ahead is None else ahead)
        self._learns = ahead is None
        self._leads.clear()
        self.doubts_clocks = False

    def after_read_pause(self) -> None:
        """Note that the socket was not read for more than half the overlap before the next message."""
        self._live_since = self._pings_since = None
        self._near = self._far = 0
        self._window.clear()

    def skip(self, revision: int) -> None:
        """Continue from a later revision; the caller declares the gap."""
        self._revision = max(self._revision, float(revision))

    def reset(self, revision: int) -> None:
        """Go back to an earlier revision, from one in the future; the caller declares the gap."""
        self._revision = float(revision)
        self.taken_back = True

    def set_right(self, now: float) -> None:
        """Note that our clock was set forward to `now`: recent records were stamped by one that was behind.

        The revision does not advance in between: a replay from there would repeat bets that seem older by
        their stamps, by which the deduplicator evicts and is restored.
        """
        self._not_before = now + self._overlap

    def data(self, at: float, settled_at: float) -> None:
        """Note a settled bet; `settled_at` is its settlementTime."""
        self.last_data = at
        self._pings_since = None
        self._locate(at, settled_at)
        self._advance(at)

    def not_understood(self, at: float) -> None:
        """Note a message that is neither a valid bet nor a plain ping."""
        self.last_data = at
        self._pings_since = None
        self._obscured = True

    def _locate(self, at: float, settled_at: float) -> None:
        """Learn from a settlementTime how far the feed is behind now."""
        self._compare_clocks(settled_at - at)
        if -self._ahead <= at - settled_at <= self._disorder:
            self._far = 0
            self._obscured = False
            self._near += 1
            if self._near >= NEAR:
                self._go_live(at)
        else:
            self._was_live = False
            self._near = 0
            self._far += 1
            if self.live and (self._far >= WINDOW or self.stagnant(at)):
                self.after_read_pause()
        if self._revision < settled_at <= at + self._ahead:
            self._window.append(settled_at)
            self.newest = settled_at if self.newest is None else max(self.newest, settled_at)

    def _compare_clocks(self, ahead: float) -> None:
        """Learn the skew: if all data are from the future, the provider's clock is ahead by their median."""
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
        """Note a ping."""
        if self._pings_since is None:
            self._pings_since = at
        quiet = self._quiet if self._was_live else BLIND_LIVE_AFTER_PINGS_SECONDS
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
        overlap = self._overlap + self.skew
        if self.live:
            if self._near < NEAR or self._obscured:
                return
            self._promised_at = at
            promise = at - self._disorder - overlap
        elif len(self._window) == WINDOW:
            promise = min(self._window) - overlap
        else:
            return
        if promise >= self._not_before:
            self._revision = max(self._revision, promise)

"""The position in the feed: the revision up to which everything published was received, sans-IO.

No message carries its revision (interface, "Settlement feed"). The position follows from two facts: nothing
is published before it is settled, and messages are sent in the order of publication. So once a bet settled
at t has arrived, everything published before t has arrived.

    state         position                                                 moves with
    catching up   lowest of the last WINDOW plausible settlementTimes      bets
                  - margin
    live          time of receipt - max_out_of_orderness - margin          bets near now, and pings after them

The margin is the safety margin plus the clock skew. A settlementTime is near now if it is at most
`max_out_of_orderness` old, and plausible if it lies in (position, now]: a late resettlement may carry an old
time, a broken clock a future one, and 0001-01-01 means none. While live, a bet that is not near stops the
position until NEAR bets in a row are: it may be a late resettlement, or the feed has fallen behind. Pings
after an invalid message, which may have been sent at any time, do not move it before the next bet near now.

Every connection begins catching up, because its first messages may be days old. It becomes live

- when NEAR bets in a row were near now: the feed is at most `max_out_of_orderness` behind; or
- when pings came alone for `live_after_pings`, if it was live before and all bets since were near now, or for
  an hour: a provider may pause, and ping, in the middle of a replay.

It is catching up again

- when the socket was not read for more than half the safety margin: the next message may be old;
- when WINDOW bets in a row were not near now: the feed is behind; or
- when a bet is not near now and the position has stood still for `live_after_pings`.

A settlementTime is in the provider's time, receipt in ours, so a time may lie ahead of now by the skew. If
the handshake does not show the skew, the bets do; if it does, bets from further ahead raise a doubt.

The position never decreases and never passes now; one that turns out to lie in the future is taken back, and
a gap declared. All times are Unix seconds.
"""

from __future__ import annotations

from math import inf
from statistics import median
from typing import Final

from librt.vecs import vec
from mypy_extensions import i64  # a machine integer once compiled, a plain one until then

from bridge.clock_skew import Skew
from bridge.config import FeedSettings

WINDOW: Final = 50
"""Number of plausible settlementTimes considered while catching up."""
NEAR = 3
"""Number of bets in a row that must be near now: a single settlementTime may be wrong."""
PINGS_ALONE_SECONDS = 3600.0
"""How long pings alone must last unless the feed was live and its last bet near now."""


class _TimeWindow:
    """The last WINDOW times. Constant time on average, and at every message: so no search for the lowest."""

    def __init__(self) -> None:
        # Rings of the lowest time, then the lowest of those after it, and so on, each with its number.
        self._times = vec[float]([0.0] * WINDOW)
        self._numbers = vec[i64]([0] * WINDOW)
        self.clear()

    def clear(self) -> None:
        """Empty the window."""
        self._appended: i64 = 0
        self._begin: i64 = 0
        """Place of the lowest time; in its ring, modulo WINDOW."""
        self._end: i64 = 0
        """Place after the last one."""

    def append(self, time: float) -> None:
        """Add a time; the oldest leaves a full window."""
        self._appended += 1
        if self._begin < self._end and self._numbers[self._begin % WINDOW] <= self._appended - WINDOW:
            self._begin += 1
        while self._begin < self._end and self._times[(self._end - 1) % WINDOW] >= time:
            self._end -= 1
        self._times[self._end % WINDOW] = time
        self._numbers[self._end % WINDOW] = self._appended
        self._end += 1

    def lowest(self) -> float | None:
        """Return the lowest time; None unless the window is full."""
        return self._times[self._begin % WINDOW] if self._appended >= WINDOW else None


class Position:
    """The position in the feed. Its `revision` is safe to commit."""

    def __init__(self, settings: FeedSettings, revision: int) -> None:
        self._safety_margin: float = settings.safety_margin_seconds
        self._max_out_of_orderness: float = settings.max_out_of_orderness_seconds
        self._live_after_pings: float = settings.live_after_pings_seconds
        self._revision = float(revision)
        self.held = False
        """Whether the revision stays: a message that was received is not handled yet."""
        self.rewound = False
        """Whether the revision was taken back since the last checkpoint."""
        self._advanced_at = 0.0
        """When the revision last followed now."""
        self._window = _TimeWindow()
        """The last plausible settlementTimes."""
        self._leads: list[float] = []
        """Seconds by which the last bets were ahead of now, while all were by more than `_ahead`."""
        self.connected()

    @property
    def revision(self) -> int:
        """Everything that the provider published before this second was handled."""
        return int(self._revision)

    @property
    def live(self) -> bool:
        """Whether the feed is known to be at most `max_out_of_orderness` behind now."""
        return self._live_since is not None

    @property
    def _margin(self) -> float:
        return self._safety_margin + self.skew

    def replaying(self, at: float) -> bool:
        """Return whether a message may be a repetition: catching up, or shortly after."""
        return self._live_since is None or at - self._live_since <= self._max_out_of_orderness + self._margin

    def has_only_pings(self, at: float) -> bool:
        """Return whether pings came alone for so long that no replay is to come any more."""
        return self._pings_since is not None and at - self._pings_since >= PINGS_ALONE_SECONDS

    def is_silent(self, now: float) -> bool:
        """Return whether the feed is live but had no data for long."""
        return self.live and (self.last_data is None or now - self.last_data > self._live_after_pings)

    def is_stalled(self, now: float) -> bool:
        """Return whether it is live but has not advanced for long: the feed may have fallen behind."""
        return self.live and now - self._advanced_at > self._live_after_pings

    def connected(self, skew: Skew | None = None, clock_corrected_at: float = -inf) -> None:
        """Begin a connection; the arguments are those of `clocks_compared`, and when our clock was corrected.

        The revision does not advance between the times before and after a correction: a replay from there
        would repeat bets with an older time of receipt, by which the deduplicator evicts and is restored.
        """
        self.catch_up()
        self.clocks_compared(skew)
        self._not_before = clock_corrected_at + self._safety_margin
        """The revision does not advance until it can advance to this."""
        self._near_since_live = False
        """Whether the feed was live on this connection, and all bets since were near now."""
        self._after_invalid = False
        """Whether the last message other than a ping was invalid."""
        self.newest: float | None = None
        """The newest plausible settlementTime of this connection."""
        self.last_data: float | None = None
        """When a message other than a ping last arrived on this connection."""
        self._heard_at = inf
        """When any message last arrived on this connection; in the future before the first."""

    def catch_up(self) -> None:
        """Be catching up: the next message may be old."""
        self._live_since: float | None = None
        self._pings_since: float | None = None
        """Since when there were only pings."""
        self._streak = 0
        """Number of bets in a row that were near now; negative if they were not."""
        self._window.clear()

    def clocks_compared(self, skew: Skew | None) -> None:
        """Take note of the provider's clock minus ours; None if it is to be learnt from the bets."""
        self._measured = skew is not None
        self.skew = abs(skew.seconds) if skew else 0.0
        """Lower bound of the distance between the clocks, seconds."""
        self._ahead = max(0.0, skew.high) if skew else 0.0
        """Seconds by which the provider's clock, and so a settlementTime, may be ahead of ours."""
        self._leads.clear()
        self.doubts_clocks = False
        """Whether WINDOW bets in a row were further ahead than the measured skew allows."""

    def skip(self, revision: int) -> None:
        """Continue from a later revision; the caller declares the gap."""
        self._revision = max(self._revision, float(revision))

    def rewind_to(self, revision: int) -> None:
        """Go back to an earlier revision, from one in the future; the caller declares the gap."""
        self._revision = float(revision)
        self.rewound = True

    def data(self, at: float, settled_at: float) -> None:
        """Note a settled bet; `settled_at` is its settlementTime."""
        self._note_arrival(at)
        self.last_data = at
        self._pings_since = None
        self._after_invalid = False
        self._compare_clocks(settled_at - at)
        if -self._ahead <= at - settled_at <= self._max_out_of_orderness:
            self._streak = max(self._streak, 0) + 1
            if self._streak >= NEAR:
                self._go_live(at)
        else:
            self._streak = min(self._streak, 0) - 1
            self._near_since_live = False
            if self.live and (self._streak <= -WINDOW or self.is_stalled(at)):
                self.catch_up()
        if self._revision < settled_at <= at + self._ahead:
            self._window.append(settled_at)
            self.newest = settled_at if self.newest is None else max(self.newest, settled_at)
        self._advance(at)

    def invalid(self, at: float) -> None:
        """Note a message that is neither a valid bet nor a plain ping."""
        self._note_arrival(at)
        self.last_data = at
        self._pings_since = None
        self._after_invalid = True

    def ping(self, at: float) -> None:
        """Note a ping."""
        self._note_arrival(at)
        if self._pings_since is None:
            self._pings_since = at
        patience = self._live_after_pings if self._near_since_live else PINGS_ALONE_SECONDS
        if at - self._pings_since >= patience:
            self._streak = NEAR
            self._after_invalid = False
            self._go_live(at)
        self._advance(at)

    def _note_arrival(self, at: float) -> None:
        """Note that a message has arrived. After silence the network may have held back more after it.

        Up to the margins, a position that follows now stays before the silence.
        """
        if at - self._heard_at > self._max_out_of_orderness + self._margin:
            self.catch_up()
        self._heard_at = at

    def _compare_clocks(self, ahead: float) -> None:
        """Learn the skew: the median lead of WINDOW bets in a row from the future."""
        if ahead <= self._ahead:
            self._leads.clear()
            return
        self._leads.append(ahead)
        if len(self._leads) == WINDOW:
            if self._measured:
                self.doubts_clocks = True
            else:
                self.skew = self._ahead = median(self._leads)
            self._leads.clear()

    def _go_live(self, at: float) -> None:
        self._near_since_live = True
        if self._live_since is None:
            self._live_since = at

    def _advance(self, at: float) -> None:
        if not self.live:
            lowest = self._window.lowest()
            if lowest is None:
                return
            reached = lowest
        elif self._streak >= NEAR and not self._after_invalid:
            self._advanced_at = at
            reached = at - self._max_out_of_orderness
        else:
            return
        revision = reached - self._margin
        if revision >= self._not_before and not self.held:
            self._revision = max(self._revision, revision)

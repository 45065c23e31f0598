"""How far back a replay can reach, counted in rows of the guard.

A mark says of all rows before it: the provider had published them by this moment. There are two kinds.

    receipt        what has come was published by now. Always true, and of no use while catching up: the
                   revision is days behind every receipt.
    settlement     nine tenths of `BLOCK` records in a row were settled by t, later than any such t before.
                   Then what came before that block was published by t, and what the provider is late, and
                   `LATE_SECONDS`. An assumption, if a good one (docs/decisions/0017): it is only relied on
                   where there are so many rows that memory asks for it.

How late the provider is, a connection shows at its beginning: what was published from the revision on is
what comes first, known or not, so its settlementTimes say how long before their publication bets are
settled. Before that is known, and where no revision was asked for, receipt alone counts.

Only what is published for the first time says how far the feed is: it comes after everything that the guard
knows, whereas what a replay brings back comes before. Nor does a settlementTime in the future, or from before
what is to be kept. All times are Unix seconds.
"""

from __future__ import annotations

from array import array
from collections import deque
from math import inf

LATE_SECONDS = 3600.0
"""How much later than at the beginning of the connection the provider may publish without harm."""
BLOCK = 1000
RANK = 900
"""Of the settlementTimes of a block in order, the one that counts: a tenth may be wrong."""


class EvictionHorizon:
    """What is known of when the rows were published."""

    def __init__(self) -> None:
        self._receipts: deque[tuple[int, float]] = deque()
        """Row and moment. Both rise: a mark takes the place of those before it with a later moment."""
        self._settlements: deque[tuple[int, float]] = deque()
        """Row and settlementTime. Both rise."""
        self._times = array("d")
        """The settlementTimes of the block in hand."""
        self._begun = 0
        """The row at which it begins."""
        self._shown = -inf
        """The latest settlementTime that a block has shown."""
        self._received = -inf
        self._floor = -inf
        self._revision: float | None = None
        """From which this connection replays, as long as it has not shown how late the provider is."""
        self._first = array("d")
        """The settlementTimes of what has come on it so far."""
        self._late: float | None = None
        """How late the provider is at most, seconds, a tenth of its bets left aside."""

    def connected(self, revision: float | None) -> None:
        """A connection begins that replays from this revision; None: from wherever the provider likes."""
        self._revision, self._late = revision, None
        del self._first[:]

    def observe(self, settled_at: float) -> None:
        """A bet has come on this connection, known or not."""
        if self._revision is not None:
            self._first.append(settled_at)
            if len(self._first) == BLOCK:
                self._late = max(0.0, self._revision - sorted(self._first)[BLOCK - RANK])
                self._revision = None

    def received(self, at: float) -> None:
        """A row is added that was received at that moment."""
        if at > self._received:
            self._received = at

    def published(self, row: int, at: float, settled_at: float | None) -> None:
        """The row is that of a bet which the feed has just brought for the first time.

        Without `settled_at` it was read back, which says nothing of the feed: partitions come mixed.
        """
        self.received(at)
        if settled_at is not None and self._floor < settled_at <= at:
            self._times.append(settled_at)
            if len(self._times) == BLOCK:
                self._conclude(row + 1)

    def horizon(self, keep_from: float, end: int, *, crowded: bool) -> int | None:
        """The row before which all were published earlier than `keep_from`, as far as is known by now.

        `end` is the number of the next row. What settlementTimes say only counts where it is `crowded`.
        None where no mark has been passed since the last time.
        """
        self._floor = keep_from
        while self._receipts and self._receipts[-1][1] >= self._received:
            self._receipts.pop()
        self._receipts.append((end, self._received))
        row = _popped(self._receipts, keep_from)
        if crowded and self._late is not None:
            settled = _popped(self._settlements, keep_from - self._late - LATE_SECONDS)
            row = max(row or 0, settled or 0) or None
        while self._settlements and row is not None and self._settlements[0][0] <= row:
            self._settlements.popleft()
        return row

    def _conclude(self, next_row: int) -> None:
        shown = sorted(self._times)[RANK]
        if shown > self._shown:
            if self._shown > -inf:  # the first block has nothing to be compared with
                self._settlements.append((self._begun, shown))
            self._shown = shown
        self._begun = next_row
        del self._times[:]


def _popped(horizons: deque[tuple[int, float]], before: float) -> int | None:
    """The row of the last mark with an earlier moment; it and those before it are gone then."""
    row = None
    while horizons and horizons[0][1] < before:
        row, _ = horizons.popleft()
    return row

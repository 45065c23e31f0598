"""Determines which rows of the deduplicator no replay can reach any more.

A mark (row, time) means: the provider published all rows before this row by this time. There are two kinds.

    receipt        Received messages were published by now. Always true, but useless during catch-up, when the
                   revision is days behind every receipt.
    settlement     Nine tenths of `BLOCK` records in a row were settled by t, and t is later than in any block
                   before. Then all rows before the block were published by t + the provider's lateness +
                   `LATE_SECONDS`. A good assumption (docs/decisions/0017), but an assumption: it is used only
                   if the table is large.

The lateness of the provider is measured at the beginning of a connection: its first messages, known or not,
were published from the revision on, so their settlementTimes show how long before publication bets are
settled. Until it is measured, and if no revision was requested, only receipt marks count.

Only bets published for the first time show how far the feed is: they follow everything that the deduplicator
knows, repeated ones do not. A settlementTime in the future, or older than the rows to keep, does not count.
All times are Unix seconds.
"""

from __future__ import annotations

from collections import deque
from math import inf

from librt.vecs import append, vec

LATE_SECONDS = 3600.0
"""How much the lateness of the provider may grow during a connection."""
BLOCK = 1000
RANK = 900
"""Index of the settlementTime that counts in a sorted block: a tenth may be wrong."""


class EvictionHorizon:
    """Tracks until when rows were published, in marks of both kinds."""

    def __init__(self) -> None:
        self._receipts: deque[tuple[int, float]] = deque()
        """(row, time), both ascending: a mark replaces those before it with a later time."""
        self._settlements: deque[tuple[int, float]] = deque()
        """(row, settlementTime), both ascending."""
        self._times = vec[float]()
        """The settlementTimes of the current block."""
        self._begun = 0
        """First row of the current block."""
        self._shown = -inf
        """The latest settlementTime at `RANK` of any block."""
        self.received_until = -inf
        """The latest time of receipt."""
        self._floor = -inf
        self._revision: float | None = None
        """The revision of this connection, until the lateness is measured."""
        self._first = vec[float]()
        """The first settlementTimes on this connection."""
        self._late: float | None = None
        """Lateness of the provider in seconds, ignoring a tenth of its bets; None until it is measured."""

    def connected(self, revision: float | None) -> None:
        """Begin a connection that replays from this revision, None if the provider chooses it."""
        self._revision, self._late = revision, None
        self._first = vec[float]()

    def observe(self, settled_at: float) -> None:
        """Note the settlementTime of a bet received on this connection, known or not."""
        if self._revision is not None:
            self._first = append(self._first, settled_at)
            if len(self._first) == BLOCK:
                self._late = max(0.0, self._revision - sorted(self._first)[BLOCK - RANK])
                self._revision = None

    def received(self, at: float) -> None:
        """Note the time of receipt of an added row."""
        if at > self.received_until:
            self.received_until = at

    def published(self, row: int, at: float, settled_at: float | None) -> None:
        """Note the row of a bet that was received for the first time.

        Without `settled_at` it was restored from Kafka: partitions are read in any order, so it shows nothing
        about the feed.
        """
        self.received(at)
        if settled_at is not None and self._floor < settled_at <= at:
            self._times = append(self._times, settled_at)
            if len(self._times) == BLOCK:
                self._conclude(row + 1)

    def horizon(self, keep_from: float, end: int, *, crowded: bool) -> int | None:
        """Return the row before which all rows are known to be published before `keep_from`.

        `end` is the number of the next row. Settlement marks count only if the table is `crowded`. None if
        `keep_from` has passed no mark since the last call.
        """
        self._floor = keep_from
        while self._receipts and self._receipts[-1][1] >= self.received_until:
            self._receipts.pop()
        self._receipts.append((end, self.received_until))
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
            if self._shown > -inf:  # there is no block before the first to compare with
                self._settlements.append((self._begun, shown))
            self._shown = shown
        self._begun = next_row
        self._times = vec[float](capacity=BLOCK)


def _popped(marks: deque[tuple[int, float]], before: float) -> int | None:
    """Remove the marks with an earlier time; return the row of the last one."""
    row = None
    while marks and marks[0][1] < before:
        row, _ = marks.popleft()
    return row

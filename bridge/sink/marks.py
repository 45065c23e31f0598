"""How far back a replay can reach, counted in rows of the guard.

A mark says of all rows before it: the provider had published them by this moment. There are two kinds.

    receipt        what has come was published by now. Always true, and of no use while catching up: the
                   revision is days behind every receipt.
    settlement     nine tenths of `BLOCK` records in a row were settled by t, later than any such t before.
                   Then what came before that block was published by t + `LATE_SECONDS`. True unless the
                   provider itself is that late (docs/decisions/0017).

Only what is published counts as evidence: it comes after everything that the guard knows, whereas what a
replay brings back comes before. A settlementTime in the future does not count, and one from before the
revision only where nothing was read back: a first start may bring three days from before its revision.
All times are Unix seconds.
"""

from __future__ import annotations

from array import array
from collections import deque
from math import inf

LATE_SECONDS = 3600.0
"""How long after its settlement a bet may be published without fail."""
BLOCK = 1000
RANK = 900
"""Of the settlementTimes of a block in order, the one that counts: a tenth may be wrong."""


class Marks:
    """What is known of when the rows were published."""

    def __init__(self) -> None:
        self._marks: deque[tuple[int, float]] = deque()
        """Row and moment. Both rise: a mark takes the place of those before it with a later moment."""
        self._times = array("d")
        """The settlementTimes of the block in hand."""
        self._begun = 0
        """The row at which it begins."""
        self._shown = -inf
        """The latest settlementTime that a block has shown."""
        self._received = -inf
        self._floor = -inf
        self._read_back = False
        """Whether there are rows from before this process: its first blocks say nothing certain of them."""

    def received(self, at: float) -> None:
        """A row is added that was received at that moment."""
        if at > self._received:
            self._received = at

    def published(self, row: int, at: float, settled_at: float | None) -> None:
        """The row is that of a bet which the feed has just brought for the first time.

        Without `settled_at` it was read back, which says nothing of the feed: partitions come mixed.
        """
        self.received(at)
        if settled_at is None:
            self._read_back = True
        elif self._floor < settled_at <= at:
            self._times.append(settled_at)
            if len(self._times) == BLOCK:
                self._conclude(row + 1)

    def passed(self, keep_from: float, end: int) -> int | None:
        """The row before which all were published earlier than `keep_from`, as far as is known by now.

        `end` is the number of the next row. None where no mark has been passed since the last time.
        """
        if self._read_back:
            self._floor = keep_from
        self._mark(end, self._received)
        row = None
        while self._marks and self._marks[0][1] < keep_from:
            row, _ = self._marks.popleft()
        return row

    def _conclude(self, next_row: int) -> None:
        shown = sorted(self._times)[RANK]
        if shown > self._shown:
            if self._shown > -inf:  # the first block has nothing to be compared with
                self._mark(self._begun, shown + LATE_SECONDS)
            self._shown = shown
        self._begun = next_row
        del self._times[:]

    def _mark(self, row: int, by: float) -> None:
        while self._marks and self._marks[-1][1] >= by:
            self._marks.pop()
        self._marks.append((row, by))


class Reach:
    """Where in a topic that is read back begins what a replay can bring: per partition, by the same marks.

    The order of a partition is that of the feed, so the rows are its offsets. Keeps nothing of a record.
    """

    def __init__(self, keep_from: float) -> None:
        self._keep_from = keep_from
        self._marks: dict[int, Marks] = {}
        self.starts: dict[int, int] = {}
        """Partition → the offset to begin at, of those where something need not be known."""

    def read(self, partition: int, offset: int, at: float, settled_at: float) -> None:
        """The next record of a partition, the time of its receipt and its settlementTime."""
        marks = self._marks.get(partition)
        if marks is None:
            marks = self._marks[partition] = Marks()
        marks.published(offset, at, settled_at)
        if offset % BLOCK == 0:
            passed = marks.passed(self._keep_from, offset + 1)
            if passed is not None:
                self.starts[partition] = passed

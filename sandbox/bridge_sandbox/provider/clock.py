"""The provider's clock as its clients see it: it may be ahead of the time things happen at, and may step.

Everything in the simulator happens at moments that never go back. What the clock shows at a moment goes
into `settlementTime` and the `Date` header, and a revision is a reading of it.
"""

from __future__ import annotations

from bisect import bisect_left
from math import inf, nextafter


class Clock:
    """Moments ↔ readings, both in Unix seconds; equal until the first step."""

    def __init__(self) -> None:
        self._steps = [(-inf, 0.0)]

    def step(self, now: float, seconds: float) -> None:
        """Set the clock forward, or back; what happened until `now`, included, keeps its reading."""
        self._steps.append((now, self.ahead(inf) + seconds))

    @property
    def steps(self) -> list[tuple[float, float]]:
        """From after which moment on the clock is ahead by how many seconds; the first is -infinity."""
        return list(self._steps)

    def ahead(self, moment: float) -> float:
        """By how many seconds the clock is ahead at a moment; negative when behind."""
        return self._steps[bisect_left(self._steps, moment, lo=1, key=lambda step: step[0]) - 1][1]

    def reading(self, moment: float) -> float:
        """What the clock shows at a moment."""
        return moment + self.ahead(moment)

    def first(self, reading: float) -> float:
        """The first moment at which the clock shows `reading` or later.

        From there on a replay has everything that carries such a time, whichever way the clock stepped.
        """
        ends = [begin for begin, _ in self._steps[1:]] + [inf]
        moments = (
            (max(nextafter(begin, inf), reading - ahead), end)
            for (begin, ahead), end in zip(self._steps, ends, strict=True)
        )
        return next(moment for moment, end in moments if moment <= end)

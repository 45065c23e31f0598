"""Progress of a replay, sans-IO: messages a second, and the time until it has caught up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

SAMPLE_SECONDS = 1.0
SPAN_SECONDS = 30.0
"""Rates are averaged over this time."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Progress of a replay."""

    position: float | None
    """The newest settlementTime read on this connection, Unix seconds; None before the first."""
    rate: float
    """Messages a second over the last `SPAN_SECONDS`."""
    remaining: float | None
    """Estimated seconds until it has caught up, None if unknown."""


class _Sample(NamedTuple):
    at: float
    received: int
    position: float | None


class CatchUpTracker:
    """Samples the counts of one connection. Times are monotonic seconds unless stated."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    def observe(self, now: float, received: int, position: float | None) -> None:
        """Sample the number of messages received in all, and the newest settlementTime."""
        if not self._samples or now - self._samples[-1].at >= SAMPLE_SECONDS:
            self._samples.append(_Sample(now, received, position))
        while now - self._samples[0].at > SPAN_SECONDS:
            self._samples.popleft()

    def catch_up(self, wall: float) -> CatchUp:
        """Return the progress at a wall-clock time, Unix seconds."""
        rate = 0.0
        if len(self._samples) > 1:
            first, last = self._samples[0], self._samples[-1]
            rate = (last.received - first.received) / (last.at - first.at)
        placed = [(sample.at, sample.position) for sample in self._samples if sample.position is not None]
        if not placed:
            return CatchUp(None, rate, None)
        (began, start), (ended, position) = placed[0], placed[-1]
        # The present advances as well.
        gained = (position - start) / (ended - began) - 1 if ended > began else 0.0
        remaining = max(0.0, wall - position) / gained if gained > 0 else None
        return CatchUp(position, rate, remaining)

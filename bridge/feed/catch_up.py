"""How fast a replay goes, sans-IO: messages a second, and when it will have caught up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

SAMPLE_SECONDS = 1.0
SPAN_SECONDS = 30.0
"""What "lately" means."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """How far a replay has come."""

    position: float | None
    """The newest settlementTime read on this connection, Unix seconds; None before the first."""
    rate: float
    """Messages a second, lately."""
    remaining: float | None
    """Seconds until it has caught up, at the speed of late; None where that cannot be told."""


class _Sample(NamedTuple):
    at: float
    received: int
    position: float | None


class CatchUpTracker:
    """Looks at the counts now and then. Its own times are monotonic seconds."""

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque()

    def connected(self) -> None:
        """A new connection: what was measured on the last one says nothing of it."""
        self._samples.clear()

    def observe(self, now: float, received: int, position: float | None) -> None:
        """Take note of how many messages have come in all, and of the newest settlementTime."""
        if not self._samples or now - self._samples[-1].at >= SAMPLE_SECONDS:
            self._samples.append(_Sample(now, received, position))
        while now - self._samples[0].at > SPAN_SECONDS:
            self._samples.popleft()

    @property
    def rate(self) -> float:
        """Messages a second, lately."""
        if len(self._samples) < 2:
            return 0.0
        first, last = self._samples[0], self._samples[-1]
        return (last.received - first.received) / (last.at - first.at)

    def catch_up(self, wall: float) -> CatchUp:
        """How far it has come at a moment of the wall clock, Unix seconds."""
        placed = [(sample.at, sample.position) for sample in self._samples if sample.position is not None]
        if not placed:
            return CatchUp(None, self.rate, None)
        (began, start), (ended, position) = placed[0], placed[-1]
        # While it catches up, now moves on.
        gained = (position - start) / (ended - began) - 1 if ended > began else 0.0
        remaining = max(0.0, wall - position) / gained if gained > 0 else None
        return CatchUp(position, self.rate, remaining)

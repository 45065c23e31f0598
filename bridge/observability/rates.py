"""Messages a second over the last seconds, sans-IO."""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

SAMPLE_SECONDS = 1.0
SPAN_SECONDS = 10.0
"""Rates are averaged over this time."""


class Rates(NamedTuple):
    """Messages a second: received from the feed, and committed to Kafka."""

    received: float = 0.0
    written: float = 0.0


class _RateSample(NamedTuple):
    at: float
    received: int
    written: int


class RateMeter:
    """Samples two counts that only grow. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._samples: deque[_RateSample] = deque()

    def observe(self, now: float, received: int, written: int) -> Rates:
        """Take a sample if one is due, and return the rates."""
        samples = self._samples
        if not samples or now - samples[-1].at >= SAMPLE_SECONDS:
            samples.append(_RateSample(now, received, written))
        while now - samples[0].at > SPAN_SECONDS:
            samples.popleft()
        seconds = now - samples[0].at
        if seconds < SAMPLE_SECONDS:
            return Rates()
        return Rates((received - samples[0].received) / seconds, (written - samples[0].written) / seconds)

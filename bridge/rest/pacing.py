"""Paces requests, sans-IO: a token bucket of one token whose rate adapts to refusals.

Every endpoint may answer 429, and the interface gives no figure (interface, "Limits"): the configured rate is
a guess that the provider corrects. Additive increase, multiplicative decrease, as in TCP congestion control.
Times are monotonic seconds unless Unix seconds are named.
"""

from __future__ import annotations

from math import inf
from typing import Final

SLOWEST_SHARE: Final = 1 / 64
"""Lower bound of the rate, as a share of the configured one."""
GROWTH_SHARE: Final = 1 / 100
"""Increase per answer, as a share of the configured rate: from half the rate back to all of it takes 50."""
LONGEST_PAUSE_SECONDS: Final = 3600.0
"""The longest pause that a run waits for, if `Retry-After` asks for one."""
TIMER_SECONDS: Final = 1e-9
"""How early an event loop's timer may fire."""


class Pace:
    """Computes how long to wait before the next request. Never exceeds the configured rate."""

    def __init__(self, rate: float) -> None:
        self._configured = rate
        self.rate = rate
        """The current rate, in requests a second."""
        self._next_at = -inf
        self._slowed_at = -inf

    def left(self, now: float) -> float:
        """Return the seconds until a request may be sent; 0 if it may be sent now."""
        left = self._next_at - now
        return left if left > TIMER_SECONDS else 0.0

    def sent(self, now: float) -> None:
        """Note that a request is sent now."""
        self._next_at = now + 1 / self.rate

    def answered(self) -> None:
        """Note an answer of a provider that is well."""
        self.rate = min(self._configured, self.rate + self._configured * GROWTH_SHARE)

    def refused(self, now: float, sent_at: float) -> None:
        """Note that the request sent at `sent_at` was answered 429."""
        # A request sent before the last slow-down was sent at the old rate and says nothing about the new
        # one.
        if sent_at > self._slowed_at:
            self.rate = max(self._configured * SLOWEST_SHARE, self.rate / 2)
            self._slowed_at = now
        self.pause(now, 1 / self.rate)

    def pause(self, now: float, seconds: float) -> None:
        """Send nothing for `seconds`."""
        self._next_at = max(self._next_at, now + seconds)

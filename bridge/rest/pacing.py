"""When the next request may go out, sans-IO: a token bucket of one token that a refusal makes slower.

The interface has a 429 everywhere and no figure for it (interface, "Limits"): the configured rate is a guess,
and the provider corrects it. Additive increase, multiplicative decrease, as TCP does with a full network.
Times are monotonic seconds unless they are said to be Unix seconds.
"""

from __future__ import annotations

import re
from math import inf
from typing import Final

from bridge.formatting import http_moment

SLOWEST_SHARE: Final = 1 / 64
"""Of the configured rate; refusals make it no slower."""
GROWTH_SHARE: Final = 1 / 100
"""Of the configured rate, for every answer: from half of it back to all of it takes 50."""
LONGEST_PAUSE_SECONDS: Final = 3600.0
"""A provider that asks for more is asked again after that."""
TIMER_SECONDS: Final = 1e-9
"""An event loop's timer may fire so early."""


class Pace:
    """Says how long to wait. Requests are never closer to each other than the configured rate allows."""

    def __init__(self, rate: float) -> None:
        self._configured = rate
        self.rate = rate
        """Requests a second at present."""
        self._next_at = -inf
        self._slowed_at = -inf

    def left(self, now: float) -> float:
        """Seconds until a request may be sent; 0 when it may be sent now."""
        left = self._next_at - now
        return left if left > TIMER_SECONDS else 0.0

    def sent(self, now: float) -> None:
        """A request is sent now."""
        self._next_at = now + 1 / self.rate

    def answered(self) -> None:
        """The provider answered and did not refuse."""
        self.rate = min(self._configured, self.rate + self._configured * GROWTH_SHARE)

    def refused(self, now: float, sent_at: float) -> None:
        """A request that was sent then was refused for the rate (429)."""
        # What was under way at the last refusal was sent at the old rate and says nothing of the new one.
        if sent_at > self._slowed_at:
            self.rate = max(self._configured * SLOWEST_SHARE, self.rate / 2)
            self._slowed_at = now
        self.pause(now, 1 / self.rate)

    def pause(self, now: float, seconds: float) -> None:
        """Send nothing for so long, at most for `LONGEST_PAUSE_SECONDS`."""
        self._next_at = max(self._next_at, now + min(seconds, LONGEST_PAUSE_SECONDS))


def retry_after(header: str | None, date: str | None, wall: float) -> float | None:
    """What a `Retry-After` asks for, in seconds from the answer on; None for none that can be read.

    One that names a moment is judged by the answer's `Date`, because both are of the provider's clock, and
    by ours (`wall`, Unix seconds) only where there is none.
    """
    if header is None:
        return None
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", header.strip(), re.ASCII):
        return float(header)
    until = http_moment(header)
    if until is None:
        return None
    written = http_moment(date) if date else None
    return max(0.0, until - (wall if written is None else written))

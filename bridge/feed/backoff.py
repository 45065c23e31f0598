"""How long to leave the provider alone after a failure, sans-IO: doubling, with jitter.

This comes on top of the provider's limits, which `bridge.feed.rate_limits` keeps.
"""

from __future__ import annotations

from collections.abc import Callable

FIRST_SECONDS = 1.0
FIRST_REFUSED_SECONDS = 15.0
"""A refusal says that the provider counts otherwise than we do: that calls for more caution."""
LONGEST_SECONDS = 300.0
STEADY_SECONDS = 60.0
"""A connection that lasted so long was a good one: what failed before it does not count any more."""


class Backoff:
    """The pause before the next dial. Times are monotonic seconds.

    `scale` shortens all of it, as it does the provider's limits. `uniform` draws between two numbers.
    """

    def __init__(self, scale: float, uniform: Callable[[float, float], float]) -> None:
        self._scale = scale
        self._uniform = uniform
        self._over_at = 0.0
        self.failures = 0

    def failed(self, now: float, *, lasted: float, refused: bool) -> None:
        """A connection has ended that lasted so many seconds, or was never one."""
        self.failures = 1 if lasted >= STEADY_SECONDS / self._scale else self.failures + 1
        first = FIRST_REFUSED_SECONDS if refused else FIRST_SECONDS
        pause = min(LONGEST_SECONDS, first * 2 ** min(self.failures - 1, 16))
        self._over_at = now + pause / self._scale * self._uniform(0.5, 1.0)

    def left(self, now: float) -> float:
        """Seconds until it is over."""
        return max(0.0, self._over_at - now)

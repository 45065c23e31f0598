"""Exponential backoff with jitter after a failed connection, sans-IO.

It comes on top of the provider's limits (`bridge.feed.rate_limits`).
"""

from __future__ import annotations

from collections.abc import Callable

FIRST_SECONDS = 1.0
FIRST_REFUSED_SECONDS = 15.0
"""After a refusal the pause is longer: the provider counts differently than we do."""
LONGEST_SECONDS = 300.0
UNREACHED_SECONDS = 2.0
"""After an attempt that reached nobody: short, so that a provider that is back is noticed, and no shorter."""
STEADY_SECONDS = 60.0
"""A connection that lasted this long resets the number of failures."""


class Backoff:
    """The pause before the next attempt. Times are monotonic seconds.

    `scale` shortens it, like the provider's limits. `uniform` returns a random number between two.
    """

    def __init__(self, scale: float, uniform: Callable[[float, float], float]) -> None:
        self._scale = scale
        self._uniform = uniform
        self._over_at = 0.0
        self.failures = 0

    def unreached(self, now: float) -> None:
        """Note an attempt that did not reach the provider. It is no sign of what the provider can take."""
        self._pause(now, UNREACHED_SECONDS)

    def failed(self, now: float, *, lasted: float, refused: bool) -> None:
        """Note the end of a connection that lasted these seconds, 0 if it failed to open."""
        self.failures = 1 if lasted >= STEADY_SECONDS / self._scale else self.failures + 1
        first = FIRST_REFUSED_SECONDS if refused else FIRST_SECONDS
        self._pause(now, min(LONGEST_SECONDS, first * 2 ** min(self.failures - 1, 16)))

    def left(self, now: float) -> float:
        """Return the remaining seconds of the pause."""
        return max(0.0, self._over_at - now)

    def _pause(self, now: float, seconds: float) -> None:
        self._over_at = now + seconds / self._scale * self._uniform(0.5, 1.0)

"""Limiters with a past of so many seconds, and how long they make one wait."""

from __future__ import annotations

from bridge.clock import Instant
from bridge.config import LimitsSettings
from bridge.feed.rate_limits import Attempt, Limiter

NOW = 1_790_000_000.0
TIMEOUT = 10.0
"""With 10 s until the attempt begins and 2 s of margin, an attempt may reach the provider for 22 s."""
NEVER_ANSWERED = None


def at(seconds: float = 0.0) -> Instant:
    """So many seconds after NOW, by both clocks."""
    return Instant(NOW + seconds, NOW + seconds)


def attempt(
    ago: float, recovery: int | None = None, took: float | None = 0.0, *, own: bool = True
) -> Attempt:
    """One of `ago` seconds before NOW; without a revision, or for so many seconds of recovery."""
    answered = None if took is NEVER_ANSWERED else NOW - ago + took
    return Attempt(NOW - ago, recovery or 0, recovery is None, answered, own=own)


def limiter(*ledger: Attempt, skew: float = 0.0, timeout: float = TIMEOUT, **settings: float) -> Limiter:
    return Limiter(LimitsSettings(**settings), timeout, skew, ledger)


def wait(made: Limiter, recovery: int | None) -> float:
    """How long an attempt of NOW has to wait, checked to be exact: just before, it is not let in."""
    revision = None if recovery is None else int(NOW - recovery)
    seconds = made.decide(at(), revision).until - NOW
    for moment in [0.0] if seconds == 0 else [0.0, seconds / 2, max(0.0, seconds - 0.002)]:
        assert (made.decide(at(moment), revision).until > NOW + moment) == (seconds > 0)
    assert made.decide(at(seconds), revision).until == NOW + seconds
    return seconds


def used(made: Limiter) -> dict[str, float]:
    return {limit.name: limit.used for limit in made.usage(at())}

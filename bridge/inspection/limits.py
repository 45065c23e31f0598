"""Forecasts what the provider's limits allow, from the committed ledger. Sends nothing to the provider."""

from __future__ import annotations

from typing import Any

from bridge.clock import Instant
from bridge.config import Settings, age_seconds
from bridge.errors import SettingsError
from bridge.feed.rate_limits import Attempt, Limiter
from bridge.formatting import format_duration, format_utc, parse_instant
from bridge.records.checkpoint import Checkpoint, State


class LimitForecast:
    """The limits as of `at`, and when they allow a reconnect with `revision`. Times are Unix seconds."""

    def __init__(self, settings: Settings, checkpoint: Checkpoint, at: float, revision: int) -> None:
        until, limiter = checkpoint.until, Limiter.of(settings, checkpoint.ledger)
        now = Instant(at, 0.0)  # the limiter sees no second instant, so the monotonic clock does not matter
        self.at = at
        self.revision = revision
        self.recovery_seconds = max(0.0, at - revision)
        asks_for_zero = checkpoint.starting and revision == checkpoint.revision
        self.reconnect = limiter.decide(now, None if asks_for_zero else revision)
        self.paused_until = until if checkpoint.state is State.BACKING_OFF and (until or 0.0) > at else None
        """When the bridge's own pause after a failure ends; None without one."""
        self.oldest_replayable = limiter.oldest_replayable(at)
        self.usage = limiter.usage(now)
        self.ledger = limiter.ledger


def parse_moment(text: str, now: float) -> float:
    """Return the Unix time of `+30m` (from now) or an ISO 8601 time with its zone. Raises SettingsError."""
    if text.startswith("+"):
        return now + age_seconds(text[1:])
    if (found := parse_instant(text)) is None:
        raise SettingsError(
            f"{text!r} is not a time: give one with its zone such as 2036-01-31T12:00:00Z, or +30m from now"
        )
    return found


def forecast_as_json(forecast: LimitForecast) -> dict[str, Any]:
    """Return a forecast for scripts."""
    reconnect = forecast.reconnect
    return {
        "at": format_utc(forecast.at),
        "revision": forecast.revision,
        "revisionTime": format_utc(forecast.revision),
        "recoverySeconds": round(forecast.recovery_seconds, 3),
        "allowedNow": reconnect.until <= forecast.at,
        "connectAt": format_utc(reconnect.until),
        "reason": reconnect.reason,
        "pausedUntil": _utc(forecast.paused_until),
        "limits": [
            {
                "name": limit.name,
                "used": round(limit.used, 3),
                "allowed": limit.allowed,
                "freeAt": _utc(limit.free_at),
            }
            for limit in forecast.usage
        ],
        "attempts": [
            {
                "at": _utc(attempt.at),
                "recoverySeconds": attempt.recovery_seconds,
                "initial": attempt.initial,
                "answeredAt": _utc(attempt.answered_at),
                "refused": attempt.refused,
            }
            for attempt in forecast.ledger
        ],
    }


def forecast_as_lines(forecast: LimitForecast) -> str:
    """Return a forecast for people."""
    at, reconnect, paused_until = forecast.at, forecast.reconnect, forecast.paused_until
    recovery = format_duration(forecast.recovery_seconds)
    lines = [
        f"at          {format_utc(at)}",
        f"recovery    {recovery}, from {format_utc(forecast.revision)}",
    ]
    if forecast.revision < forecast.oldest_replayable:
        oldest = format_utc(forecast.oldest_replayable)
        lines.append(f"gap         the provider can replay only from {oldest}")
    if reconnect.until <= at:
        lines.append("reconnect   allowed at once")
    else:
        lines.append(f"reconnect   not before {_until(reconnect.until, at)}: {reconnect.reason}")
    if paused_until is not None:
        lines.append(f"pause       backing off after a failure until {_until(paused_until, at)}")
    lines.append("limits")
    for limit in forecast.usage:
        full = "" if limit.free_at is None else f", full until {format_utc(limit.free_at)}"
        lines.append(f"  {limit.name:8}  {limit.words:10}  {limit.counted}{full}")
    lines.append("attempts")
    return "\n".join([*lines, *map(attempt_as_line, forecast.ledger)])


def attempt_as_line(attempt: Attempt) -> str:
    """Return a connection attempt for people."""
    answer = "no answer" if attempt.answered_at is None else "refused" if attempt.refused else "accepted"
    recovery = f"{format_duration(attempt.recovery_seconds)} of recovery"
    asked = "initial connection (revision=0)" if attempt.initial else recovery
    return f"  {_utc(attempt.at)}  {asked}, {answer}"


def _until(time: float, now: float) -> str:
    return f"{format_utc(time)}, in {format_duration(time - now)}"


def _utc(time: float | None) -> str | None:
    """Format a time. Rounds it first: attempts are stored by age, so two calls differ by microseconds."""
    return None if time is None else format_utc(round(time, 3))

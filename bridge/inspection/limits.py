"""Forecast what the provider's limits allow, from the committed ledger. Sends nothing to the provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.clock import Instant
from bridge.config import Settings, age_seconds
from bridge.errors import SettingsError
from bridge.feed.rate_limits import Attempt, Limiter, LimitUsage
from bridge.formatting import format_duration, format_utc, parse_instant
from bridge.state.checkpoint import Checkpoint, State


@dataclass(frozen=True, slots=True)
class LimitForecast:
    """The limits at a time, and when they allow a reconnect. Times are in Unix seconds."""

    at: float
    revision: int
    """The revision that the reconnect requests, Unix seconds."""
    connect_at: float
    """When the limits allow the reconnect; `at` if immediately."""
    reason: str
    """Why it has to wait; empty when it does not."""
    paused_until: float | None
    """When the bridge's own pause after a failure ends; None without one."""
    oldest: int
    """The oldest revision that the provider can still replay, Unix seconds."""
    usage: tuple[LimitUsage, ...]
    ledger: tuple[Attempt, ...]
    """The attempts that may still count, oldest first."""


def forecast(settings: Settings, checkpoint: Checkpoint, at: float, revision: int) -> LimitForecast:
    """Return whether and when the limits allow, as of `at`, a reconnect with `revision`."""
    limiter = Limiter(
        settings.limits,
        settings.feed.connect_timeout_seconds,
        settings.feed.max_clock_skew_seconds,
        checkpoint.ledger,
    )
    instant = Instant(at, 0.0)  # the limiter sees no second instant, so the monotonic clock does not matter
    decision = limiter.decide(instant, revision)
    pauses = checkpoint.state is State.BACKING_OFF and (checkpoint.until or 0.0) > at
    return LimitForecast(
        at,
        revision,
        decision.until,
        decision.reason,
        checkpoint.until if pauses else None,
        limiter.oldest_replayable(at),
        limiter.usage(instant),
        limiter.ledger,
    )


def parse_moment(text: str, now: float) -> float:
    """Return the Unix time of `+30m` (from now) or an ISO 8601 time with its zone. Raises SettingsError."""
    if text.startswith("+"):
        return now + age_seconds(text[1:])
    if (found := parse_instant(text)) is None:
        raise SettingsError(
            f"{text!r} is not a time: give one with its zone such as 2036-01-31T12:00:00Z, or +30m from now"
        )
    return found


def outlook_as_json(outlook: LimitForecast) -> dict[str, Any]:
    """Return a forecast for scripts."""
    return {
        "at": format_utc(outlook.at),
        "revision": outlook.revision,
        "revisionTime": format_utc(outlook.revision),
        "recoverySeconds": round(max(0.0, outlook.at - outlook.revision), 3),
        "allowedNow": outlook.connect_at <= outlook.at,
        "connectAt": format_utc(outlook.connect_at),
        "reason": outlook.reason,
        "pausedUntil": None if outlook.paused_until is None else format_utc(outlook.paused_until),
        "limits": [
            {
                "name": room.name,
                "used": round(room.used, 3),
                "allowed": room.allowed,
                "freeAt": None if room.free_at is None else format_utc(room.free_at),
            }
            for room in outlook.usage
        ],
        "attempts": [
            {
                "at": _utc(attempt.at),
                "recoverySeconds": attempt.recovery_seconds,
                "initial": attempt.initial,
                "answeredAt": None if attempt.answered_at is None else _utc(attempt.answered_at),
                "refused": attempt.refused,
            }
            for attempt in outlook.ledger
        ],
    }


def outlook_as_lines(outlook: LimitForecast) -> str:
    """Return a forecast for people."""
    recovery = format_duration(max(0.0, outlook.at - outlook.revision))
    lines = [
        f"at          {format_utc(outlook.at)}",
        f"recovery    {recovery}, from {format_utc(outlook.revision)}",
    ]
    if outlook.revision < outlook.oldest:
        lines.append(f"gap         the provider can replay only from {format_utc(outlook.oldest)}")
    if outlook.connect_at <= outlook.at:
        lines.append("reconnect   allowed now")
    else:
        wait = format_duration(outlook.connect_at - outlook.at)
        lines.append(f"reconnect   not before {format_utc(outlook.connect_at)}, in {wait}: {outlook.reason}")
    if outlook.paused_until is not None:
        wait = f"{format_utc(outlook.paused_until)}, in {format_duration(outlook.paused_until - outlook.at)}"
        lines.append(f"pause       backing off after a failure until {wait}")
    lines.append("limits")
    for room in outlook.usage:
        free = "" if room.free_at is None else f", full until {format_utc(room.free_at)}"
        lines.append(f"  {room.name:8}  {usage_in_words(room)}{free}")
    lines.append("attempts")
    return "\n".join([*lines, *map(attempt_as_line, outlook.ledger)])


def usage_in_words(limit: LimitUsage) -> str:
    """Return the usage of a limit: attempts, or the length of recoveries in the bucket."""
    if limit.name == "bucket":
        return f"{format_duration(round(limit.used))} of {format_duration(limit.allowed)}"
    return f"{limit.used:.0f} of {limit.allowed:g}"


def attempt_as_line(attempt: Attempt) -> str:
    """Return a connection attempt for people."""
    answer = "no answer" if attempt.answered_at is None else "refused" if attempt.refused else "accepted"
    asked = (
        "from the beginning"
        if attempt.initial
        else f"{format_duration(attempt.recovery_seconds)} of recovery"
    )
    return f"  {_utc(attempt.at)}  {asked}, {answer}"


def _utc(attempted: float) -> str:
    """Format the time of an attempt. Its age is what is stored: two calls differ by microseconds."""
    return format_utc(round(attempted, 3))

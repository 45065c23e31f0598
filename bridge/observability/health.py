"""Whether a bridge is healthy and ready. Health is about progress, not about the process being alive.

`healthy` answers the supervisor that restarts a stuck bridge, `ready` the one that waits until the bridge
does its part. A restart costs one of the provider's few connections (interface, "Limits") and repairs
nothing outside the process, so a bridge that waits for something outside, and reports what, is healthy.

    state                          healthy                                              ready
    none yet                       for START_SECONDS after the start                    no
    Standby                        yes                                                  if it can become owner
    Connecting, CatchingUp, Live,  while the last commit, or the start of the state,    yes
      Quiet, IdleTimeout              is within the patience
    WaitingForLimit, BackingOff    until the patience after the end of the wait         yes
    WaitingForKafka                yes: a restart does not bring it back                no
    StoppedOnGap                   yes: a restart does not bring the messages back      no
    Stopped                        yes: the process is about to end                     no

An owner that can convert nothing of what the provider sends is not ready, whatever its state. In any state,
the bridge is neither healthy nor ready once the event loop has been silent for LOOP_SECONDS. Unhealthy
implies not ready.

The patience is `feed.idle_timeout_seconds` + COMMIT_SECONDS: the bridge disconnects from a feed that sends
nothing within the first, and commits whatever is sent, pings too; the second is for commits that are retried.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from bridge.formatting import format_duration, format_utc
from bridge.observability.status import StatusSnapshot
from bridge.records.checkpoint import State

LOOP_SECONDS = 10.0
START_SECONDS = 60.0
COMMIT_SECONDS = 60.0

_MOVING = {State.CONNECTING, State.CATCHING_UP, State.LIVE, State.QUIET, State.IDLE_TIMEOUT}
_WAITING = {State.WAITING_FOR_LIMIT, State.BACKING_OFF}
_SERVING = {*_MOVING, *_WAITING, State.STANDBY}


class HealthStatus(NamedTuple):
    """Yes or no. The reason is what is wrong if no, else the reason of the state, if any."""

    ok: bool
    reason: str


class Health(NamedTuple):
    """Answers of a program to the probes."""

    healthy: HealthStatus
    ready: HealthStatus
    report: Mapping[str, Any]
    """More about the program, as JSON."""


def judge(status: StatusSnapshot, now: float) -> Health:
    """Return the health of `bridge run` at `now`, Unix seconds."""
    report = {
        "state": status.state and status.state.value,
        "since": format_utc(status.since),
        "until": None if status.until is None else format_utc(status.until),
        "feed": status.process.feed,
        "owner": status.owner,
        "revision": status.known.revision,
        "revisionAgeSeconds": _rounded(status.revision_age(now)),
        "lastCommitAgeSeconds": _rounded(
            None if status.known.committed_at is None else now - status.known.committed_at
        ),
        "loopAgeSeconds": _rounded(now - status.at),
        "nextConnect": None if status.intake.next_connect is None else format_utc(status.intake.next_connect),
        "gaps": status.known.gaps,
        "openTransactions": None
        if status.open_transactions is None
        else [str(found) for found in status.open_transactions],
    }
    return Health(healthy(status, now), ready(status, now), report)


def healthy(status: StatusSnapshot, now: float) -> HealthStatus:
    """Return whether the bridge makes progress, or waits for something that a restart would not bring."""
    if now - status.at > LOOP_SECONDS:
        return HealthStatus(False, f"the event loop has been silent for {format_duration(now - status.at)}")
    patience = status.process.idle_timeout_seconds + COMMIT_SECONDS
    if status.state is None and now - status.process.started_at > START_SECONDS:
        return HealthStatus(False, f"still starting after {format_duration(now - status.process.started_at)}")
    if status.state in _MOVING:
        still = now - max(status.since, status.known.committed_at or status.since)
        if still > patience:
            return HealthStatus(False, f"no commit for {format_duration(still)}")
    if status.state in _WAITING and status.until is not None and now - status.until > patience:
        late = format_duration(now - status.until)
        return HealthStatus(False, f"the wait should have ended {late} ago")
    return HealthStatus(True, status.reason)


def ready(status: StatusSnapshot, now: float) -> HealthStatus:
    """Return whether the bridge owns the feed or stands by to own it."""
    health = healthy(status, now)
    if not health.ok:
        return health
    if status.state is None:
        return HealthStatus(False, "still starting")
    if status.intake.unconverted:
        return HealthStatus(False, status.intake.unconverted)
    return HealthStatus(status.state in _SERVING and not status.is_unownable, status.reason)


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)

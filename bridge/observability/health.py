"""Is the bridge well, and does it serve? About progress, not about the process.

`healthy` is for who restarts a bridge that is stuck, `ready` for who waits until it does its part. A
restart costs one of the provider's few connections (interface, "Limits") and mends nothing outside the
process, so a bridge that waits for something outside, and says for what, is healthy.

    state                          healthy                                              ready
    none yet                       for START_SECONDS after the start                    no
    Standby                        yes                                                  yes
    Connecting, CatchingUp, Live,  while something was committed, or the state          yes
      Quiet, IdleTimeout              began, within the patience
    WaitingForLimit                until the patience after the end of the wait         yes
    WaitingForKafka                yes: a restart does not bring it back                no
    StoppedOnGap                   yes: a restart does not bring back what is lost      no
    Stopped                        yes: the process is about to end                     no

In every state: neither, once the event loop was not heard of for LOOP_SECONDS. Not healthy is not
ready either.

The patience: the feed says something within `feed.idle_timeout_seconds` or is hung up on, and whatever it
says is committed, pings too; COMMIT_SECONDS more are for a commit that has to be tried anew.
"""

from __future__ import annotations

from typing import NamedTuple

from bridge.observability.view import StatusSnapshot
from bridge.state.checkpoint import State

LOOP_SECONDS = 10.0
START_SECONDS = 60.0
COMMIT_SECONDS = 60.0

_MOVING = {State.CONNECTING, State.CATCHING_UP, State.LIVE, State.QUIET, State.IDLE_TIMEOUT}
_SERVING = {*_MOVING, State.STANDBY, State.WAITING_FOR_LIMIT}


class HealthStatus(NamedTuple):
    """The answer, and why: when it is no, what is wrong, otherwise the reason of the state, if any."""

    ok: bool
    reason: str


def healthy(view: StatusSnapshot, now: float, idle_timeout_seconds: float) -> HealthStatus:
    """Whether the bridge makes progress, or waits for something that a restart would not bring."""
    if now - view.at > LOOP_SECONDS:
        return HealthStatus(False, f"the event loop was not heard of for {now - view.at:.0f} s")
    patience = idle_timeout_seconds + COMMIT_SECONDS
    if view.state is None and now - view.started_at > START_SECONDS:
        return HealthStatus(False, f"still starting after {now - view.started_at:.0f} s")
    if view.state in _MOVING:
        still = now - max(view.since, view.committed_at or view.since)
        if still > patience:
            return HealthStatus(False, f"nothing was committed for {still:.0f} s")
    if view.state is State.WAITING_FOR_LIMIT and view.until is not None and now - view.until > patience:
        return HealthStatus(False, f"the wait should have been over {now - view.until:.0f} s ago")
    return HealthStatus(True, view.reason)


def ready(view: StatusSnapshot, now: float, idle_timeout_seconds: float) -> HealthStatus:
    """Whether the bridge is set up, and owns the feed or stands by to own it."""
    health = healthy(view, now, idle_timeout_seconds)
    if not health.ok:
        return health
    if view.state is None:
        return HealthStatus(False, "still starting")
    return HealthStatus(view.state in _SERVING, view.reason)

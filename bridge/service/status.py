"""The state of the bridge. Every change is logged once, with its reason."""

from __future__ import annotations

from typing import Any

from bridge.clock import Clock
from bridge.formatting import format_utc
from bridge.log import get
from bridge.records.checkpoint import State

_INFO = {State.CATCHING_UP, State.LIVE, State.QUIET, State.STANDBY, State.CONNECTING, State.STOPPED}
_FINAL = {State.STOPPED_ON_GAP, State.STOPPED}
"""Why a process ends. Nothing else is committed after it: the next process acts on it."""


class Status:
    """The current state, its reason, and the end of a wait. Times are Unix seconds."""

    def __init__(self, feed: str, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock
        self.state: State | None = None
        self.reason = ""
        self.since = clock().wall
        self.until: float | None = None

    def become(self, state: State, reason: str = "", *, until: float | None = None, **details: Any) -> bool:
        """Enter a state. Logs one line and returns True if the state or its reason is new.

        A final state stays, unless the process stands by again.
        """
        if self.state in _FINAL and state is not State.STANDBY:
            return False
        self.until = until
        if (state, reason) == (self.state, self.reason):
            return False
        if state is not self.state:
            self.since = self._clock().wall
        self.state, self.reason = state, reason
        if reason:
            details["reason"] = reason
        if until is not None:
            details["until"] = format_utc(until)
        log = get().info if state in _INFO and not (state is State.STOPPED and reason) else get().warning
        log(_EVENTS[state], state=state.value, feed=self._feed, **details)
        return True


_EVENTS = {
    State.CONNECTING: "connecting to the provider",
    State.CATCHING_UP: "catching up",
    State.LIVE: "live",
    State.QUIET: "quiet, only pings arrive",
    State.IDLE_TIMEOUT: "idle timeout, disconnecting",
    State.WAITING_FOR_LIMIT: "waiting for a provider limit",
    State.BACKING_OFF: "backing off after a failure",
    State.WAITING_FOR_KAFKA: "waiting for Kafka or the registry",
    State.STANDBY: "standing by",
    State.STOPPED_ON_GAP: "stopped on a gap",
    State.STOPPED: "stopped",
}

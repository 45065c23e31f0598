"""What the bridge is doing, told once each time it changes. Silence always has a reason."""

from __future__ import annotations

from typing import Any

from bridge.clock import Clock
from bridge.formatting import utc
from bridge.log import get
from bridge.state.checkpoint import State

_ORDINARY = {
    State.CATCHING_UP,
    State.LIVE,
    State.QUIET,
    State.STANDBY,
    State.CONNECTING,
    State.STOPPED,
}


class Status:
    """The present state, its reason, and the end of a wait. Times are Unix seconds."""

    def __init__(self, feed: str, clock: Clock) -> None:
        self._feed = feed
        self._clock = clock
        self.state: State | None = None
        self.reason = ""
        self.since = clock().wall
        self.until: float | None = None

    def become(self, state: State, reason: str = "", *, until: float | None = None, **details: Any) -> bool:
        """Enter a state; logs one line, and returns True, when it is another or has another reason."""
        self.until = until
        if (state, reason) == (self.state, self.reason):
            return False
        if state is not self.state:
            self.since = self._clock().wall
        self.state, self.reason = state, reason
        if reason:
            details["reason"] = reason
        if until is not None:
            details["until"] = utc(until)
        log = get().info if state in _ORDINARY and not (state is State.STOPPED and reason) else get().warning
        log(_SENTENCES[state], state=state.value, feed=self._feed, **details)
        return True


_SENTENCES = {
    State.CONNECTING: "connecting to the provider",
    State.CATCHING_UP: "catching up with what the provider has published",
    State.LIVE: "live: publishing what comes as it comes",
    State.QUIET: "quiet: the feed pings, but no bet is settled",
    State.IDLE_TIMEOUT: "the feed has fallen silent, not even a ping comes: hanging up",
    State.WAITING_FOR_LIMIT: "waiting until the provider's limits let us dial",
    State.WAITING_FOR_KAFKA: "waiting for Kafka: nothing is lost, the feed is held back",
    State.STANDBY: "standing by, to own the feed when nobody else does",
    State.STOPPED_ON_GAP: "stopped: the feed can no longer give back what is missing",
    State.STOPPED: "stopped",
}

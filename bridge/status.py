"""What the bridge is doing, told once each time it changes. Silence always has a reason."""

from __future__ import annotations

from typing import Any

from bridge.log import get
from bridge.sink.checkpoint import State

_QUIET_STATES = {State.CATCHING_UP, State.LIVE, State.QUIET}


class Status:
    """The present state and its reason."""

    def __init__(self, feed: str) -> None:
        self._feed = feed
        self.state: State | None = None
        self.reason = ""

    def become(self, state: State, reason: str = "", **details: Any) -> None:
        """Enter a state; logs one line when it is another than before, or has another reason."""
        if (state, reason) == (self.state, self.reason):
            return
        self.state, self.reason = state, reason
        if reason:
            details["reason"] = reason
        log = get().info if state in _QUIET_STATES or state is State.STANDBY else get().warning
        if state in (State.CONNECTING, State.STOPPED):
            log = get().info
        log(_SENTENCES[state], state=state.value, feed=self._feed, **details)


_SENTENCES = {
    State.CONNECTING: "connecting to the provider",
    State.CATCHING_UP: "catching up with what the provider has published",
    State.LIVE: "live: publishing what comes as it comes",
    State.QUIET: "quiet: the feed pings, but no bet is settled",
    State.HALF_OPEN: "the feed has fallen silent, not even a ping comes: hanging up",
    State.WAITING_FOR_LIMIT: "waiting until the provider's limits let us dial",
    State.WAITING_FOR_KAFKA: "waiting for Kafka: nothing is lost, the feed is held back",
    State.STANDBY: "standing by, to own the feed when nobody else does",
    State.STOPPED_ON_GAP: "stopped: the feed can no longer give back what is missing",
    State.STOPPED: "stopped",
}

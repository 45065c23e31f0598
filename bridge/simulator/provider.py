"""The provider without its sockets: who is let in, and what is sent to whom at what moment.

Time comes in as an argument, in Unix seconds of the provider's clock. A driver asks `connect` about each
handshake, then calls `frames` of the connection again and again, sleeping until `due` in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from typing import Literal

from bridge.simulator.limits import Breach, Kind, Limits
from bridge.simulator.log import Log, Reader
from bridge.simulator.stream import Published, Stream
from bridge.simulator.world import mix

ACCEPTED = 101


@dataclass(frozen=True)
class Attempt:
    """A line in the log of connections."""

    at: float
    revision: int | None
    kind: Kind
    status: int
    """The HTTP status of the answer; 101 when it was let in."""
    reason: str
    """Why it was refused; empty when it was let in."""
    since: float | None
    """Everything published at or after this moment is sent to it; None when it was refused."""


@dataclass(frozen=True)
class Refusal:
    """The handshake is answered with this status."""

    status: int
    reason: str


@dataclass(frozen=True)
class Policy:
    """What the interface leaves open, and how this provider does it."""

    second: Literal["refuse", "replace"] = "refuse"
    """What a second connection does: it is refused, or it closes the first."""
    zero: Literal["nothing", "everything"] = "nothing"
    """What is replayed without a revision or with 0: nothing, or all that is remembered."""
    too_old: Literal["edge", "refuse"] = "edge"
    """A revision older than the memory: replay from the edge of memory, or refuse."""
    refusal_status: int = 429
    second_status: int = 409
    ping_seconds: float = 5.0
    replay_rate: float = inf
    """Messages a second while a connection has not caught up."""


class Connection:
    """One accepted connection: a place in the log, a ping clock and, while catching up, a pace."""

    def __init__(self, provider: Provider, number: int, now: float, since: float) -> None:
        self._provider = provider
        self._number = number
        self._reader = Reader(provider.log, since)
        self._opened = now
        self._pinged = now
        self._pings = 0
        self._replayed = 0
        self._replaying = True

    @property
    def is_active(self) -> bool:
        """False once the connection was dropped, replaced or closed."""
        return self._provider.active is self

    @property
    def due(self) -> float:
        """When to look again: at once when no longer active, never while the provider is stalled."""
        if not self.is_active:
            return -inf
        return inf if self._provider.stalled else min(self._message_due, self._ping_due)

    def frames(self, now: float, limit: int) -> list[bytes]:
        """Up to `limit` messages to send now, and a ping when one is due. Each call moves on."""
        frames: list[bytes] = []
        if self._provider.stalled:
            return frames
        while len(frames) < limit and self._message_due <= now:
            frames.append(self._reader.take().body)
            self._replayed += self._replaying
        if self._reader.due > now:
            self._replaying = False
        if self._ping_due <= now:
            # One ping stands for all that were due while the client did not read or the provider stalled.
            self._pinged = now
            self._pings += 1
            frames.append(self._ping())
        return frames

    @property
    def _message_due(self) -> float:
        if not self._replaying:
            return self._reader.due
        return max(self._reader.due, self._opened + self._replayed / self._provider.policy.replay_rate)

    @property
    def _ping_due(self) -> float:
        return self._pinged + self._provider.policy.ping_seconds

    def _ping(self) -> bytes:
        """A ping (interface, "SettlementFeedMessageDto")."""
        seed = self._provider.log.stream.world.seed
        return b'{"pingId":"%016x"}' % mix(seed, self._number, self._pings)


class Provider:
    """The feed of one provider (interface, "Settlement feed"), with at most one active connection."""

    def __init__(
        self,
        stream: Stream,
        limits: Limits,
        policy: Policy | None = None,
        on_attempt: Callable[[Attempt], None] = lambda _: None,
    ) -> None:
        self.log = Log(stream)
        self.limits = limits
        self.policy = policy or Policy()
        self.active: Connection | None = None
        self.attempts: list[Attempt] = []
        self.stalled = False
        """While True nothing is sent, pings neither: to a client the socket is half-open."""
        self._on_attempt = on_attempt

    @property
    def breaches(self) -> list[Breach]:
        """Every breach of a limit so far."""
        return self.limits.breaches

    def connect(self, now: float, revision: int | None) -> Connection | Refusal:
        """Answer an attempt to connect and write it in the log of connections.

        With `second = replace` the connection that was active before is no longer afterwards.
        """
        second = self.active is not None and self.policy.second == "refuse"
        verdict = self.limits.attempt(now, revision, connected=second)
        refusal = self._refusal(now, revision, verdict.breach)
        if refusal:
            self._record(Attempt(now, revision, verdict.kind, refusal.status, refusal.reason, None))
            return refusal
        since = self._replay_from(now, revision)
        self._record(Attempt(now, revision, verdict.kind, ACCEPTED, "", since))
        self.active = Connection(self, len(self.attempts), now, since)
        return self.active

    def disconnect(self, connection: Connection) -> None:
        """The connection has ended; nothing happens when another took its place."""
        if self.active is connection:
            self.active = None

    def published(self, until: float) -> Iterator[Published]:
        """The truth: everything published from the beginning of memory to `until`, in order."""
        return self.log.read(self.log.stream.origin, until)

    def _record(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        self._on_attempt(attempt)

    def _refusal(self, now: float, revision: int | None, breach: Breach | None) -> Refusal | None:
        if breach:
            status = self.policy.second_status if breach.rule == "active" else self.policy.refusal_status
            return Refusal(status, breach.reason)
        if revision and now - revision > self.limits.max_age and self.policy.too_old == "refuse":
            return Refusal(self.policy.refusal_status, f"revision is older than {self.limits.max_age:g} s")
        return None

    def _replay_from(self, now: float, revision: int | None) -> float:
        edge = now - self.limits.max_age
        if not revision:
            return edge if self.policy.zero == "everything" else now
        return min(max(revision, edge), now)

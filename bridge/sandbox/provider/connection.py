"""One accepted connection of the provider: what is sent on it, and when."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from bridge.sandbox.provider.faults import Ongoing, Pace, Pause, Slow, Stall
from bridge.sandbox.provider.history import Log, Reader
from bridge.sandbox.provider.world.entities import mix


@dataclass(frozen=True)
class Farewell:
    """How the provider ended a connection."""

    code: int
    reason: str
    abort: bool = False
    """Without a closing handshake."""


class Connection:
    """A place in the log, a ping clock and, while catching up, a pace.

    It is sent everything published from `since` on. `number` is its place in the log of connections, from 0.
    """

    def __init__(
        self,
        log: Log,
        ongoing: Ongoing,
        now: float,
        *,
        since: float,
        number: int,
        replay_rate: float,
        ping_seconds: float,
    ) -> None:
        self.number = number
        self.is_active = True
        """False once the connection was dropped, replaced or closed."""
        self.farewell: Farewell | None = None
        """How the provider ended it, if it did."""
        self.half_open_until = -inf
        self.sent = 0
        """Number of messages sent, without pings."""
        self.is_replaying = True
        """False once everything that was published has been sent."""
        self._ongoing = ongoing
        self._seed = log.stream.world.seed
        self._reader = Reader(log, since)
        self._replay = Pace(replay_rate, now)
        self._ping_seconds = ping_seconds
        self._pinged = now
        self._pings = 0

    @property
    def due(self) -> float:
        """When to call `frames` again: -infinity after its end, infinity while a fault lasts without end."""
        return min(self._message_due, self._ping_due) if self.is_active else -inf

    def frames(self, now: float, limit: int, limit_bytes: float = inf) -> list[bytes]:
        """Take up to `limit` messages to send now, and a ping if one is due.

        Stops at the first message that reaches `limit_bytes`.
        """
        frames: list[bytes] = []
        size = 0
        while len(frames) < limit and size < limit_bytes and self._message_due <= now:
            frames.append(self._reader.take().body)
            size += len(frames[-1])
            self._replay.took(now)
            self._ongoing.pace.took(now)
        self.sent += len(frames)
        if self._reader.due > now:
            self.is_replaying = False
        if self._ping_due <= now:
            # One ping stands for all that were due while the client did not read or the provider stalled.
            self._pinged = now
            self._pings += 1
            frames.append(self._ping())
        return frames

    @property
    def _message_due(self) -> float:
        slow = min(self._ongoing.pace.due, self._ongoing.until(Slow))
        replay = self._replay.due if self.is_replaying else -inf
        return max(self._reader.due, replay, slow, self._ongoing.until(Pause), self._silent_until)

    @property
    def _ping_due(self) -> float:
        return max(self._pinged + self._ping_seconds, self._silent_until)

    @property
    def _silent_until(self) -> float:
        return max(self._ongoing.until(Stall), self.half_open_until)

    def _ping(self) -> bytes:
        """Return a ping (interface, "SettlementFeedMessageDto")."""
        return b'{"pingId":"%016x"}' % mix(self._seed, self.number, self._pings)


def fragments(message: bytes, size: int) -> bytes | list[bytes]:
    """Return the message in one frame or, if it is longer than `size` bytes (0: any), in several."""
    if not size or len(message) <= size:
        return message
    return [message[start : start + size] for start in range(0, len(message), size)]


def is_text(message: bytes) -> bool:
    """Whether the message is UTF-8, as a text frame has to be."""
    try:
        message.decode()
    except UnicodeDecodeError:
        return False
    return True

"""Everything that the provider published: the stream until its end, and the injected messages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from math import inf, nextafter

from bridge.sandbox.provider.stream import Published, Stream


class Log:
    """The provider's memory. It stores injected messages only; the others are generated when read."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self.injected: list[Published] = []
        self.end = inf
        """When the stream ended, Unix seconds. Messages injected later are still sent."""

    def inject(self, body: bytes, now: float) -> Published:
        """Publish raw bytes now."""
        message = Published(now, -1 - len(self.injected), None, body)
        self.injected.append(message)
        return message

    def read(self, since: float, until: float) -> Iterator[Published]:
        """Generate everything published from `since` to `until`, both included, in order."""
        reader = Reader(self, since)
        while reader.due <= until:
            yield reader.take()

    def count(self, until: float) -> int:
        """Return the number of messages published until a moment, inclusive."""
        slots = self.stream.first_slot(nextafter(min(until, self.end), inf))
        return slots + bisect_right(self.injected, until, key=lambda message: message.at)


class Reader:
    """A position in the log that advances with each message read, in a replay as in the live stream."""

    def __init__(self, log: Log, since: float) -> None:
        self._log = log
        self._slot = log.stream.first_slot(since)
        self._injected = bisect_left(log.injected, since, key=lambda message: message.at)

    @property
    def due(self) -> float:
        """When the next message is published, Unix seconds; infinity if there will be none."""
        return min(self._slot_at, self._injected_at)

    def take(self) -> Published:
        """Return the next message. `due` must not be infinite."""
        if self._slot_at <= self._injected_at:
            self._slot += 1
            return self._log.stream.message(self._slot - 1)
        self._injected += 1
        return self._log.injected[self._injected - 1]

    @property
    def _slot_at(self) -> float:
        at = self._log.stream.at(self._slot)
        return at if at <= self._log.end else inf

    @property
    def _injected_at(self) -> float:
        injected = self._log.injected
        return injected[self._injected].at if self._injected < len(injected) else inf

"""Merges the partitions of a topic by time of receipt, in bounded memory. Compiled with mypyc."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterator, Sequence
from math import inf
from operator import itemgetter
from typing import Any, Final

from bridge.kafka.cursor import Cursor

READ_AHEAD_BYTES: Final = 2 * 1024 * 1024
"""Bytes a partition that are held, of all together, while records wait for their turn."""
BATCH: Final = 2_000
"""Most messages that are yielded together."""
_ALL: Final = (inf, 0)


class Merging:
    """Yields the messages of a scan that were received from `begin` to before `end`, in that order.

    The messages of a partition keep theirs: one that was received before the one in front of it comes with
    that. Those without a value are left out, and those whose key is not one of `keys`, if any are given.
    A partition ends with a message received at `late` or after. All times are Unix milliseconds.
    `scan` is a `TopicScan` that has set out, of which all partitions are read with one client: those that are
    far ahead of the others are held, which costs what the client has fetched of them.
    """

    def __init__(
        self,
        scan: Any,
        begin: int,
        end: float,
        late: float,
        keys: Container[bytes | str | None] | None = None,
        read_ahead: int = READ_AHEAD_BYTES,
    ) -> None:
        self._scan: Final = scan
        self._cursor: Final[Cursor] = scan.cursor
        self._begin: Final = begin
        self._end: Final = end
        self._late: Final = late
        self._keys: Final = keys
        self._is_all_out = True
        """Whether everything that was released has been yielded."""
        self._lanes: Final = {place.partition: _Lane(place) for place in self._cursor.left}
        self._share: Final = read_ahead
        self._most: Final = read_ahead * len(self._lanes)

    def batches(self, polls: Iterator[Iterator[Any]]) -> Iterator[list[Any]]:
        """Yield the messages, at most `BATCH` at a time; none at all if none are due for a while.

        A message waits until no partition can bring one from before it.
        """
        for messages in polls:
            self._take(messages)
            open_ = [(lane.reached, p) for p, lane in self._lanes.items() if self._is_open(p)]
            released = self._released(min(open_, default=_ALL))
            for start in range(0, len(released) or 1, BATCH):
                self._is_all_out = start + BATCH >= len(released)
                yield released[start : start + BATCH]
            self._hold_back()

    def passed(self) -> dict[int, int]:
        """Return the offsets that the partitions have come to which hold nothing back.

        To be called when what was yielded last has been taken.
        """
        if not self._is_all_out:
            return {}
        return {p: place.offset for p, place in enumerate(self._cursor.places) if self._is_free(p)}

    def _is_free(self, partition: int) -> bool:
        lane = self._lanes.get(partition)
        return lane is None or not lane.ahead

    def _is_open(self, partition: int) -> bool:
        return bool(self._cursor.places[partition].offset < self._cursor.ends[partition])

    def _take(self, messages: Iterator[Any]) -> None:
        begin, end, late, keys = self._begin, self._end, self._late, self._keys
        lanes, cursor = self._lanes, self._cursor
        for message in messages:
            received: int = message.timestamp()[1]
            partition: int = message.partition()
            if received >= late:
                cursor.ends[partition] = cursor.places[partition].offset
            elif (
                begin <= received < end
                and (keys is None or message.key() in keys)
                and message.value() is not None
            ):
                lanes[partition].add(received, message)

    def _hold_back(self) -> None:
        """Stop reading what is far ahead, where too much waits, and go on where it is not any more."""
        is_full = sum([lane.size for lane in self._lanes.values()]) > self._most
        for partition, lane in self._lanes.items():
            if not lane.is_held and is_full and lane.size > self._share:
                self._scan.hold(lane.place)
                lane.is_held = True
            elif lane.is_held and lane.size <= self._share // 4 and self._is_open(partition):
                self._scan.go_on(lane.place)
                lane.is_held = False

    def _released(self, horizon: tuple[float, int]) -> list[Any]:
        """Return what no message before the horizon, a time of receipt and a partition, can precede."""
        released: list[tuple[float, Any]] = []
        for partition, lane in self._lanes.items():
            released += lane.take(horizon, partition)
        released.sort(key=itemgetter(0))
        return [message for _, message in released]


class _Lane:
    """What was read of a partition and waits for its turn."""

    def __init__(self, place: Any) -> None:
        self.place: Final = place
        """What is read next."""
        self.ahead: list[tuple[float, Any]] = []
        """Wanted messages, each with the latest time of receipt up to it: their order stays."""
        self.size = 0
        """Bytes of them."""
        self.reached = -inf
        """The latest time of receipt of a wanted message so far, Unix milliseconds."""
        self.is_held = False

    def add(self, received: float, message: Any) -> None:
        """Add a wanted message."""
        if received > self.reached:
            self.reached = received
        self.ahead.append((self.reached, message))
        self.size += len(message)

    def take(self, horizon: tuple[float, int], partition: int) -> Sequence[tuple[float, Any]]:
        """Remove and return what lies before a horizon."""
        count = bisect_right(self.ahead, horizon, key=lambda one: (one[0], partition))
        taken = self.ahead[:count]
        del self.ahead[:count]
        for _, message in taken:
            self.size -= len(message)
        return taken

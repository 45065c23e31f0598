"""Merges the partitions of a topic by time of receipt, in bounded memory."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator
from math import inf
from typing import Final

from confluent_kafka import Message, TopicPartition

from bridge.reader.source import Source

READ_AHEAD_BYTES: Final = 1 * 1024 * 1024
"""Bytes of a partition that are held while its records wait for their turn."""
MESSAGE_BYTES: Final = 200
"""Of a message without its value, about: a tombstone has none."""
POLL_SECONDS: Final = 0.05
BATCH: Final = 2_000
"""Most messages that are yielded together."""


class Merging:
    """Yields the messages of a source that were received from `begin` to before `end`, in that order.

    The messages of a partition keep theirs: one that was received before the one in front of it comes with
    that. Those without a value are left out, and those whose key is not one of `keys`, if any are given.
    A partition ends with a message received at `late` or after. All times are Unix milliseconds.
    """

    def __init__(
        self,
        source: Source,
        begin: int,
        end: float,
        late: float,
        keys: Container[bytes | str | None] | None = None,
    ) -> None:
        self._source = source
        self._begin, self._end, self._late, self._keys = begin, end, late, keys
        self._is_all_out = True
        """Whether everything that was released has been yielded."""
        self._lanes = {place.partition: _Lane(place) for place in source.cursor.left}

    def batches(self) -> Iterator[list[Message]]:
        """Yield the messages, at most `BATCH` at a time; none at all if none are due for a while.

        A message waits until no partition can bring one from before it. A partition that is far ahead is read
        no further until the others have come as far.
        """
        while not self._source.ended:
            self._hold_back()
            self._take()
            open_ = [(lane.reached, p) for p, lane in self._lanes.items() if self._is_open(p)]
            released = self._released(min(open_, default=(inf, 0)))
            for start in range(0, len(released) or 1, BATCH):
                self._is_all_out = start + BATCH >= len(released)
                yield released[start : start + BATCH]

    def passed(self) -> dict[int, int]:
        """Return the offsets that the partitions have come to which hold nothing back.

        To be called when what was yielded last has been taken.
        """
        if not self._is_all_out:
            return {}
        waiting = {partition for partition, lane in self._lanes.items() if lane.messages}
        return {p: place.offset for p, place in enumerate(self._source.cursor.places) if p not in waiting}

    def _is_open(self, partition: int) -> bool:
        cursor = self._source.cursor
        return bool(cursor.places[partition].offset < cursor.ends[partition])

    def _take(self) -> None:
        begin, end, late, keys = self._begin, self._end, self._late, self._keys
        lanes, cursor = self._lanes, self._source.cursor
        for message in self._source.messages(POLL_SECONDS):
            received, partition = message.timestamp()[1], message.partition() or 0
            if received >= late:
                cursor.ends[partition] = cursor.places[partition].offset
            elif begin <= received < end and (keys is None or message.key() in keys):
                lanes[partition].add(message, received)

    def _hold_back(self) -> None:
        """Stop reading what is far ahead or at its end, and go on where it is not any more."""
        for partition, lane in self._lanes.items():
            is_over = not self._is_open(partition)
            if not lane.is_held and (is_over or lane.size > READ_AHEAD_BYTES):
                self._source.hold(lane.place)
                lane.is_held = True
            elif lane.is_held and not is_over and lane.size <= READ_AHEAD_BYTES // 2:
                self._source.go_on(lane.place)
                lane.is_held = False

    def _released(self, horizon: tuple[float, int]) -> list[Message]:
        """Return what no message before the horizon, a time of receipt and a partition, can precede."""
        times, messages = list[float](), list[Message]()
        for partition, lane in self._lanes.items():
            count = (bisect_right if partition <= horizon[1] else bisect_left)(lane.times, horizon[0])
            times += lane.times[:count]
            messages += lane.messages[:count]
            lane.drop(count)
        return [messages[number] for number in sorted(range(len(times)), key=times.__getitem__)]


class _Lane:
    """What was read of a partition and waits for its turn."""

    def __init__(self, place: TopicPartition) -> None:
        self.place = place
        """What is read next."""
        self.messages: list[Message] = []
        """Those that are wanted."""
        self.times: list[float] = []
        """Of each, the latest time of receipt up to it: their order stays."""
        self._sizes: list[int] = []
        self.size = 0
        """Bytes of them."""
        self.reached = -inf
        """The latest time of receipt of a wanted message so far, Unix milliseconds."""
        self.is_held = False

    def add(self, message: Message, received: float) -> None:
        """Take a message that is wanted."""
        if received > self.reached:
            self.reached = received
        self.times.append(self.reached)
        self.messages.append(message)
        size = len(message) + MESSAGE_BYTES
        self._sizes.append(size)
        self.size += size

    def drop(self, count: int) -> None:
        """Forget the first messages."""
        self.size -= sum(self._sizes[:count])
        for kept in (self.times, self.messages, self._sizes):
            del kept[:count]

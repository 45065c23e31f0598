"""How far each partition of a topic is read. Plain Python that mypyc compiles: every record passes here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any, Final


class Cursor:
    """The next offset of each partition of a topic and the offset to stop at, `inf` for never.

    `places` are confluent_kafka's `TopicPartition` by number, `at_end` is its error code for the end of a
    partition; `refuse` is called with any other error, and raises where reading on is in vain.
    """

    def __init__(
        self, places: list[Any], ends: Sequence[float], at_end: int, refuse: Callable[[Any], None]
    ) -> None:
        self.places: Final = places
        self.ends: Final[list[float]] = [float(end) for end in ends]
        self._at_end: Final = at_end
        self._refuse: Final = refuse

    @property
    def left(self) -> list[Any]:
        """The partitions whose end is not reached, with the offset to read next."""
        return [place for place in self.places if place.offset < self.ends[place.partition]]

    @property
    def reached(self) -> int:
        """The sum of the next offsets."""
        return sum([place.offset for place in self.places])

    def records(self, messages: Sequence[Any]) -> Iterator[Any]:
        """Yield the records that are due, and move past each once the caller has taken it.

        Before an end, skips records taken before (a client restarts after a truncation) and records beyond it
        (a busy partition never reports one). Raises what `refuse` raises.
        """
        places, ends = self.places, self.ends
        for message in messages:
            number: int = message.partition() or 0
            offset: int = message.offset() or 0
            place = places[number]
            error = message.error()
            if error is None:
                end = ends[number]
                if end == inf:
                    yield message
                    place.offset = offset + 1
                    continue
                if place.offset <= offset < end:
                    yield message
                    if offset < ends[number]:  # which the caller may have lowered
                        place.offset = offset + 1
                        continue
                self._pass(place, offset + 1)
            elif error.code() == self._at_end:
                self._pass(place, offset)
            else:
                self._refuse(error)

    def _pass(self, place: Any, offset: int) -> None:
        end = self.ends[place.partition]
        place.offset = offset if end == inf else max(place.offset, int(min(offset, end)))

"""Notices what becomes of a topic while it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from bridge.clock import Clock
from bridge.errors import TopologyError
from bridge.kafka import admin
from bridge.kafka.errors import KafkaUnavailable
from bridge.log import get

POLL_SECONDS: Final = 0.02
"""How long a client waits for a full batch: it does so even where only a few records are left."""
LOOK_SECONDS: Final = 1.0
"""Interval between checks whether a topic was recreated; its first records may be read twice."""
FOLLOW_SECONDS: Final = 0.2
"""How long a client that follows a topic waits for a full batch."""


class TopicWatch:
    """Notices that a topic is recreated, or gets more partitions, while it is read.

    Who `follows` it reads it for ever: added partitions, too, and a recreated topic from its beginning.
    """

    def __init__(self, *, follows: bool, poll_seconds: float = FOLLOW_SECONDS) -> None:
        self.follows = follows
        self.poll_seconds = poll_seconds if follows else POLL_SECONDS
        """How long a client waits for a full batch."""
        self.recreated = 0
        """How often the topic was recreated: what comes is of another topic than what came."""
        self._id: str | None = None
        self._is_missing = False
        """Whether no broker knew the topic when it was asked last."""
        self._looked_at = 0.0
        """Monotonic time at which the topic was asked for last."""
        self._passed = 0
        """Sum of offsets at that time."""

    def begin(self, client: AdminClient, topic: str, clock: Clock) -> None:
        """Remember which topic it is."""
        self._id, self._looked_at = admin.topic_id(client, topic), clock().monotonic

    def changed(
        self, client: AdminClient, topic: str, places: Sequence[TopicPartition], clock: Clock
    ) -> list[int] | None:
        """Return from which offsets to read a topic that has changed, None if it has not.

        Raises TopologyError if one that is read to its end is gone or recreated, KafkaUnavailable.
        """
        if clock().monotonic - self._looked_at < LOOK_SECONDS:
            return None
        passed, self._passed = self._passed, sum([place.offset for place in places])
        try:
            found = admin.topic_id(client, topic)
            count = 0 if found is None else admin.partition_count(client, topic)
        except KafkaUnavailable:
            if passed != self._passed:  # reading goes on
                return None
            raise
        finally:
            self._looked_at = clock().monotonic
        was_missing, self._is_missing = self._is_missing, found is None
        # One answer says little: a broker that has just started may not know of it yet.
        if not self.follows and (was_missing if found is None else found != self._id):
            raise TopologyError(f"{topic} was deleted or recreated while it was read")
        if found is None:
            if not was_missing:
                get().warning("topic deleted, waiting until it is recreated", topic=topic)
            return None
        if found != self._id:
            get().warning("topic recreated, reading it from the beginning", topic=topic)
            self._id = found
            self.recreated += 1
            return [0] * count
        if self.follows and count > len(places):
            return [*(place.offset for place in places), *[0] * (count - len(places))]
        return None

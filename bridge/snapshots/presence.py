"""Whether the topics of a run are still there. Where one is gone, no other try will mend it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from bridge import clock
from bridge.config import Settings
from bridge.errors import TopologyError
from bridge.kafka import admin, clients
from bridge.kafka.errors import KafkaUnavailable

LOOK_SECONDS: Final = 3.0
"""From one look to the next: a broker that starts or elects leaders knows them all again by then."""


class Presence:
    """Looks after topics, for whoever waits and does not know what for."""

    def __init__(self, settings: Settings, topics: Iterable[str]) -> None:
        self.topics = frozenset(topics)
        self._settings = settings
        self._missing: frozenset[str] = frozenset()
        """At the last look."""
        self._looked_at = -math.inf

    def must_be_there(self) -> None:
        """Raise KafkaUnavailable where a topic is not there now, for the moment or for good."""
        if missing := self._missing_now():
            raise KafkaUnavailable(f"the topic {min(missing)} is not there")

    def check(self) -> None:
        """Raise TopologyError when two looks in a row have not found a topic, KafkaUnavailable when no
        broker answers. To be called often: it looks every `LOOK_SECONDS`, and blocks for 3 s at most.
        """
        if clock.now().monotonic - self._looked_at < LOOK_SECONDS:
            return
        try:
            missing = self._missing_now()
        finally:
            self._looked_at = clock.now().monotonic
        gone, self._missing = missing & self._missing, missing
        if gone:
            raise TopologyError(
                f"the topic {min(gone)} is gone: it was deleted while this run was at work, or the right to "
                "describe it was taken away. The next run makes it anew."
            )

    def _missing_now(self) -> frozenset[str]:
        return self.topics.difference(admin.metadata(clients.admin(self._settings.kafka)).topics)

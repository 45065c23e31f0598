"""Servers that speak as much of Kafka's protocol as makes a client overlook a group (decision 0009).

A client that has learnt the brokers while one was away does not ask that one for its groups.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import ClassVar

from tests.unit.kafka.lost_brokers import LostBrokers, array, broker, text

DESCRIBE_GROUPS, LIST_GROUPS = 15, 16
GROUP = "g"


class Broker(LostBrokers):
    """A broker, which answers that the cluster has those `listed`."""

    supported: ClassVar = {**LostBrokers.supported, DESCRIBE_GROUPS: (0, 0), LIST_GROUPS: (0, 0)}

    def __init__(self, number: int, *, coordinates: bool) -> None:
        self._number = number
        self._coordinates = coordinates
        self.listed: Sequence[Broker] = ()
        super().__init__()

    def metadata(self, body: bytes) -> bytes:
        """An answer of version 1, without topics."""
        brokers = [broker(server._number, server.port) for server in self.listed]
        return array(brokers) + struct.pack(">i", self._number) + array([])

    def answer(self, key: int, version: int, body: bytes) -> bytes:
        if key == LIST_GROUPS:
            groups = [text(GROUP) + text("consumer")] if self._coordinates else []
            return struct.pack(">h", 0) + array(groups)
        if key == DESCRIBE_GROUPS:
            holds = b"\0\0\0\0\0\1\0\3one\0\0\0\1\0\0\0\0"  # partition 0 of the topic `one`
            member = (
                text("m") + text("owner") + text("/127.0.0.1") + struct.pack(">ii", 0, len(holds)) + holds
            )
            state = text("Stable") + text("consumer") + text("range")
            return array([struct.pack(">h", 0) + text(GROUP) + state + array([member])])
        return super().answer(key, version, body)

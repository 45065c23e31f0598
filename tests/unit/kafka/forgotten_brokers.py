"""Servers that speak as much of Kafka's protocol as makes a client overlook a group (decision 0009).

A client that has learnt the brokers while one was away does not ask that one for its groups. `python -m
tests.unit.kafka.forgotten_brokers` shows which groups such a client lists once the broker is back, and which
one that has asked for the brokers again.
"""

from __future__ import annotations

import struct
import warnings
from collections.abc import Sequence
from typing import ClassVar

from confluent_kafka.admin import AdminClient

from tests.unit.kafka.lost_brokers import LostBrokers, array, broker, text

DESCRIBE_GROUPS, LIST_GROUPS = 15, 16
GROUP = "g"
ASK_SECONDS = 5.0


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
        """The answer to a request."""
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


def main() -> None:
    """List the groups with a client that has not heard of the broker that coordinates one."""
    warnings.simplefilter("ignore", DeprecationWarning)
    with Broker(1, coordinates=False) as first, Broker(2, coordinates=True) as second:
        first.listed = [first]
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{first.port}"})
        client.list_topics(timeout=ASK_SECONDS)
        first.listed = second.listed = [first, second]
        print("not asked again:", [group.id for group in client.list_groups(timeout=ASK_SECONDS)])
        client.list_topics(timeout=ASK_SECONDS)
        print("asked again:", [group.id for group in client.list_groups(timeout=ASK_SECONDS)])


if __name__ == "__main__":
    main()

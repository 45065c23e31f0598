"""A server that speaks as much of Kafka's protocol as makes a client lose its first question (decision 0009).

It takes a moment for each answer about brokers and topics, as a busy broker may.
"""

from __future__ import annotations

import struct
import time
from threading import Event
from typing import ClassVar

from tests.unit.kafka.lost_brokers import METADATA, TOPIC, LostBrokers, text

LIST_OFFSETS = 2
END = 7
LATE_SECONDS = 0.1


class LostLeaders(LostBrokers):
    """The server, on a port of its own. Its topic ends at END."""

    supported: ClassVar = {**LostBrokers.supported, LIST_OFFSETS: (2, 2)}
    is_sound = True

    def __init__(self) -> None:
        self.asked = Event()
        """Set once a client is connected: it asks for the brokers at once."""
        super().__init__()

    def answer(self, key: int, version: int, body: bytes) -> bytes:
        if key == LIST_OFFSETS:
            partition = struct.pack(">iihqq", 1, 0, 0, -1, END)
            return struct.pack(">ii", 0, 1) + text(TOPIC) + partition
        if key == METADATA:
            self.asked.set()
            time.sleep(LATE_SECONDS)
        return super().answer(key, version, body)

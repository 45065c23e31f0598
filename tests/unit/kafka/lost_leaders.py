"""A server that speaks as much of Kafka's protocol as makes a client lose its first question (decision 0009).

It takes a moment for each answer about brokers and topics, as a busy broker may. `python -m
tests.unit.kafka.lost_leaders` shows how long a new client waits for the end of a topic, and how long one that
has asked for the topic itself before.
"""

from __future__ import annotations

import struct
import time
from contextlib import suppress
from threading import Event
from typing import ClassVar

from confluent_kafka import KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from tests.unit.kafka.lost_brokers import METADATA, TOPIC, LostBrokers, text

LIST_OFFSETS = 2
END = 7
LATE_SECONDS = 0.1
ASK_SECONDS = 2.0


class LostLeaders(LostBrokers):
    """The server, on a port of its own. Its topic ends at END."""

    supported: ClassVar = {**LostBrokers.supported, LIST_OFFSETS: (2, 2)}
    is_sound = True

    def __init__(self) -> None:
        self.asked = Event()
        """Set once a client is connected: it asks for the brokers at once."""
        super().__init__()

    def answer(self, key: int, version: int, body: bytes) -> bytes:
        """The answer to a request."""
        if key == LIST_OFFSETS:
            partition = struct.pack(">iihqq", 1, 0, 0, -1, END)
            return struct.pack(">ii", 0, 1) + text(TOPIC) + partition
        if key == METADATA:
            self.asked.set()
            time.sleep(LATE_SECONDS)
        return super().answer(key, version, body)


def main() -> None:
    """Ask for the end of the topic with two new clients."""
    for first in ("", "the topic"):
        broker = LostLeaders()
        client = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
        broker.asked.wait()
        began = time.monotonic()
        if first:
            [found] = client.describe_topics(TopicCollection([TOPIC]), request_timeout=ASK_SECONDS).values()
            with suppress(KafkaException):
                found.result()
        [end] = client.list_offsets(
            {TopicPartition(TOPIC, 0): OffsetSpec.latest()},  # type: ignore[no-untyped-call]
            request_timeout=ASK_SECONDS,
        ).values()
        try:
            answer = str(end.result().offset)
        except KafkaException as error:
            answer = error.args[0].str()
        print(f"{first or 'nothing'} asked first: {answer}, after {time.monotonic() - began:.1f} s")


if __name__ == "__main__":
    main()

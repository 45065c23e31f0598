"""A consumer that notes how long each record took from the moment in its key until it was visible.

    python -m benchmarks.reader --isolation read_committed --records 5000 --output delays.bin

The output holds pairs of 64-bit integers, nanoseconds: the moment in the key, and the delay. One record
at a time is polled, so that none waits for others.
"""

from __future__ import annotations

import argparse
import os
import time
from array import array
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks import sink
from benchmarks.messages import number_in
from benchmarks.server import tell


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--isolation", required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    consumer = Consumer(
        {
            "bootstrap.servers": os.environ["BRIDGE_KAFKA__BOOTSTRAP_SERVERS"],
            "group.id": sink.topic("bench"),
            "log_level": 0,
            "isolation.level": options.isolation,
            "enable.auto.commit": False,
        }
    )
    topic = sink.topic("bets")
    partitions = consumer.list_topics(topic, timeout=sink.CALL_SECONDS).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    consumer.poll(0.1)
    tell(ready=1)
    seen = array("q")
    while len(seen) < 2 * options.records:
        message = consumer.poll(1.0)
        now = time.monotonic_ns()
        if message is not None and message.error() is None:
            key = message.key()
            assert isinstance(key, bytes)
            due = number_in(key)
            seen.extend((due, now - due))
    options.output.write_bytes(seen.tobytes())
    consumer.close()
    tell(done=1)
    time.sleep(sink.CALL_SECONDS)


if __name__ == "__main__":
    main()

"""A bare transactional producer that sends records at a rate: what latency is held against.

    python -m benchmarks.paced --messages 5000 --rate 500 --interval-ms 20

Record k is due at `start + k / rate`, whatever came before it, and its key says when that was. While a
commit is under way nothing can be produced, and what was due meanwhile follows at once.

It rests between two transactions as long as the bridge does. With `--checkpoint` each transaction also
holds what the bridge's does: a checkpoint, in a topic of its own, and the offset of the group whose member
owns the feed.
"""

from __future__ import annotations

import argparse
import time

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks import sink
from benchmarks.ceiling import records
from benchmarks.messages import BLOCK
from benchmarks.server import tell
from bridge.service.committer import REST_SECONDS

_KEY = b"%036d"
_CHECKPOINT = b"c" * 150
"""As long as those of the bridge."""
_JOIN_SECONDS = 30.0


class Sealing:
    """Adds to a transaction what makes it say how far it reaches, and by whose leave."""

    def __init__(self, producer: Producer) -> None:
        self._producer, self._topic = producer, sink.topic("checkpoints")
        self._owner = Consumer(sink.member("bench-owner"))
        self._owner.subscribe([self._topic])
        deadline = time.monotonic() + _JOIN_SECONDS
        while not self._owner.assignment():
            self._owner.poll(0.1)
            if time.monotonic() > deadline:
                raise TimeoutError(f"the group has not let us in within {_JOIN_SECONDS:g} s")
        self._owner.pause(self._owner.assignment())  # it is there to be a member, not to read

    def take_batch(self) -> None:
        """The last that goes into a transaction."""
        self._owner.poll(0)
        sink.produce(self._producer, self._topic, b"bare", _CHECKPOINT)
        self._producer.send_offsets_to_transaction(
            [TopicPartition(self._topic, 0, 0)], self._owner.consumer_group_metadata(), sink.CALL_SECONDS
        )

    def close(self) -> None:
        """Leave the group."""
        self._owner.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--interval-ms", type=float, required=True, help="from one commit to the next")
    parser.add_argument("--checkpoint", action="store_true", help="commit what the bridge has to commit")
    options = parser.parse_args()
    values, producer, topic = records(), sink.transactional(**sink.LIVE), sink.topic("bets")
    sealing = Sealing(producer) if options.checkpoint else None
    rest, interval = int(REST_SECONDS * 1e9), int(options.interval_ms * 1e6)
    start = time.monotonic_ns()
    tell(first=start / 1e9)
    sent, opened_at, late, rested_at = 0, 0, 0, 0
    while sent < options.messages or opened_at:
        due = start + int(sent * 1e9 / options.rate) if sent < options.messages else start + (1 << 62)
        wake = min(due, opened_at + interval) if opened_at else max(due, rested_at)
        if (ahead := wake - time.monotonic_ns()) > 0:
            time.sleep(ahead / 1e9)
        if opened_at and time.monotonic_ns() >= opened_at + interval:
            if sealing:
                sealing.take_batch()
            producer.commit_transaction(sink.CALL_SECONDS)
            opened_at, rested_at = 0, time.monotonic_ns() + rest
        elif sent < options.messages:
            if not opened_at:
                producer.begin_transaction()
                opened_at = time.monotonic_ns()
            late = max(late, time.monotonic_ns() - due)
            sink.produce(producer, topic, _KEY % due, values[sent % BLOCK])
            producer.poll(0)
            sent += 1
    tell(last=time.monotonic(), latest_ms=round(late / 1e6, 3))
    if sealing:
        sealing.close()


if __name__ == "__main__":
    main()

"""A bare transactional producer that sends records at a rate, to compare latency with.

    python -m benchmarks.paced --messages 5000 --rate 500 --interval-ms 20

Record k is due at `start + k / rate`, and its key holds that time. Nothing can be produced during a commit;
records that become due meanwhile follow at once.

It rests between two transactions as long as the bridge does, and each transaction also has a checkpoint in a
separate topic.
"""

from __future__ import annotations

import argparse
import time

from benchmarks import sink
from benchmarks.ceiling import records
from benchmarks.messages import BLOCK
from benchmarks.server import tell
from bridge.service.committer import REST_SECONDS

_KEY = b"%036d"
_CHECKPOINT = b"c" * 150
"""As long as a checkpoint of the bridge."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--interval-ms", type=float, required=True, help="from one commit to the next")
    options = parser.parse_args()
    values, producer, topic = records(), sink.transactional(**sink.LIVE), sink.topic("bets")
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
            sink.produce(producer, sink.topic("checkpoints"), b"bare", _CHECKPOINT)
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


if __name__ == "__main__":
    main()

"""A bare transactional producer that sends records at a rate, to compare latency with.

    python -m benchmarks.paced --messages 5000 --rate 500 --interval-ms 20

Record k is due at `start + k / rate`, and its key holds that time. Nothing can be produced during a commit;
records that become due meanwhile follow at once.
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
_REST = int(REST_SECONDS * 1e9)
_NEVER = 1 << 62


class Transactions:
    """Records, written as the bridge does: each transaction has a checkpoint, and rests after its commit.

    Times are nanoseconds of the monotonic clock.
    """

    def __init__(self, interval_ms: float) -> None:
        self._producer = sink.transactional(**sink.LIVE)
        self._bets, self._checkpoints = sink.topic("bets"), sink.topic("checkpoints")
        self._values = records()
        self._interval = int(interval_ms * 1e6)
        self._written = 0
        self.due_at = _NEVER
        """When the open transaction is due."""
        self.rested_at = 0
        """When the next one may begin."""

    def produce(self, key: bytes) -> None:
        """Produce the next record, which opens a transaction if none is open."""
        if self.due_at == _NEVER:
            self._producer.begin_transaction()
            self.due_at = time.monotonic_ns() + self._interval
        sink.produce(self._producer, self._bets, key, self._values[self._written % BLOCK])
        self._producer.poll(0)
        self._written += 1

    def commit_if_due(self) -> bool:
        """Commit the open transaction if it is due; return whether it was."""
        if time.monotonic_ns() < self.due_at:
            return False
        sink.produce(self._producer, self._checkpoints, b"bare", _CHECKPOINT)
        self._producer.commit_transaction(sink.CALL_SECONDS)
        self.due_at, self.rested_at = _NEVER, time.monotonic_ns() + _REST
        return True


def sleep_until(moment: int) -> None:
    if (ahead := moment - time.monotonic_ns()) > 0:
        time.sleep(ahead / 1e9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--interval-ms", type=float, required=True, help="from one commit to the next")
    options = parser.parse_args()
    transactions = Transactions(options.interval_ms)
    start = time.monotonic_ns()
    tell(first=start / 1e9)
    sent, late = 0, 0
    while sent < options.messages or transactions.due_at < _NEVER:
        due = start + int(sent * 1e9 / options.rate) if sent < options.messages else _NEVER
        sleep_until(min(transactions.due_at, max(due, transactions.rested_at)))
        if not transactions.commit_if_due() and sent < options.messages:
            late = max(late, time.monotonic_ns() - due)
            transactions.produce(_KEY % due)
            sent += 1
    tell(last=time.monotonic(), latest_ms=round(late / 1e6, 3))


if __name__ == "__main__":
    main()

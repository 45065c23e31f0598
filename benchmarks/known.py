"""What a bet costs a deduplicator that knows many already, in a separate process to measure its memory.

    python -m benchmarks.known --bets 1000000

Prints a JSON object: `us` to judge and publish one more, `rss_mb` of the deduplicator alone, `bytes_a_bet`.
"""

from __future__ import annotations

import argparse
import os
import time

from benchmarks.process import usage
from benchmarks.server import tell
from bridge.avro.codec import READ_ONLY
from bridge.dedup.deduplicator import Deduplicator

_MORE = 20_000
_PASSES = 5
_CONTENT = READ_ONLY.to_bytes(4, "big")


def publish(deduplicator: Deduplicator, first: int, last: int, at: float) -> None:
    """Judge and publish bets that are new, as the path does."""
    for number in range(first, last):
        key, content = b"%036d" % number, _CONTENT + number.to_bytes(16, "little")
        deduplicator.judge(key, 1, content, lambda _: None, replaying=True)
        deduplicator.publish(key, 1, content, at)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bets", type=int, required=True)
    bets = parser.parse_args().bets
    deduplicator, pid, at = Deduplicator(), os.getpid(), time.time()
    empty = usage(pid)
    publish(deduplicator, 0, bets, at)
    full = usage(pid)
    costs = []
    for number in range(_PASSES):
        first, began = bets + number * _MORE, time.process_time()
        publish(deduplicator, first, first + _MORE, at)
        costs.append((time.process_time() - began) * 1e6 / _MORE)
    megabytes = full.rss - empty.rss
    tell(us=sorted(costs)[_PASSES // 2], rss_mb=megabytes, bytes_a_bet=megabytes * 2**20 / bets)


if __name__ == "__main__":
    main()

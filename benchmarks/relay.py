"""The bare producer behind a feed: for each message it produces a record that was encoded beforehand.

It reads with websockets and takes only the betId from a message. Its latency is what the socket, the server
and one process more on the same cores cost.
"""

from __future__ import annotations

import os
import time

from websockets.sync.client import connect

from benchmarks import sink
from benchmarks.paced import Transactions, sleep_until

_KEY_LENGTH = 36
_BEFORE_KEY = b'"betId":"'


def main() -> None:
    transactions = Transactions(float(os.environ["BRIDGE_BATCH__MAX_AGE_MS"]))
    with connect(sink.feed_url(), **sink.CONNECTING) as connection:
        while True:
            try:
                ahead = (transactions.due_at - time.monotonic_ns()) / 1e9
                message = connection.recv(min(max(0.0, ahead), 1.0), decode=False)
            except TimeoutError:
                message = b""
            _, _, key = message.partition(_BEFORE_KEY)
            if key:
                sleep_until(transactions.rested_at)
                transactions.produce(key[:_KEY_LENGTH])
            transactions.commit_if_due()


if __name__ == "__main__":
    main()

"""The ceiling: `Producer.produce` of records that are encoded already, in transactions of 5,000.

    python -m benchmarks.ceiling --messages 200000

Tells `first`, the moment of the first record, as the server of the feed does.
"""

from __future__ import annotations

import argparse
import time

from benchmarks import sink
from benchmarks.messages import BLOCK, Block
from benchmarks.server import tell
from bridge.avro.codec import Codec
from bridge.messages.parser import MessageParser


def records() -> list[bytes]:
    """The values of the records that a block of messages becomes."""
    number = int.from_bytes(sink.header()[1:], "big")
    codec, parser = Codec(sink.schema(), number), MessageParser()
    bets = (parser.parse(body).bet for body in Block().bodies())
    return [codec.encode(bet) for bet in bets if bet is not None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, required=True)
    messages = parser.parse_args().messages
    values, producer, topic = records(), sink.transactional(), sink.topic("bets")
    tell(first=time.monotonic())
    for begin in range(0, messages, sink.BATCH):
        producer.begin_transaction()
        for number in range(begin, min(begin + sink.BATCH, messages)):
            sink.produce(producer, topic, b"%036d" % number, values[number % BLOCK])
        producer.poll(0)
        producer.commit_transaction(sink.CALL_SECONDS)
    tell(last=time.monotonic())
    time.sleep(sink.CALL_SECONDS)  # until what it has used has been read


if __name__ == "__main__":
    main()

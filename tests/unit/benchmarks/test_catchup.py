"""What a contender publishes is compared with the messages."""

from __future__ import annotations

import pytest

from benchmarks.catchup import check_records
from benchmarks.messages import ID_DIGITS, Block
from benchmarks.process import BenchmarkFailed
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.messages.parser import MessageParser

BODIES = Block().bodies()
CODEC = Codec(load("settled-bet"), READ_ONLY + 1)


def record(number: int, **changed: object) -> tuple[bytes, bytes]:
    """Key and value for message `number` of a feed, with other values for some fields."""
    bet = MessageParser().parse(BODIES[number % len(BODIES)]).bet
    assert bet is not None
    key = f"{number:0{ID_DIGITS}}"
    return key.encode(), CODEC.encode({**bet, "betId": key, "settlementTime": 1, **changed})


def test_records_of_any_time_and_round_pass() -> None:
    check_records([record(7), record(1007, settlementTime=2), record(2999)], BODIES)


def test_a_record_with_another_value_is_an_error() -> None:
    with pytest.raises(BenchmarkFailed):
        check_records([record(7), record(8, payout=0.125)], BODIES)

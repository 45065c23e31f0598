"""The messages of the benchmarks, and what contenders publish of them."""

from __future__ import annotations

import io
from statistics import mean

import pytest
from fastavro import parse_schema, schemaless_writer
from websockets.protocol import CLIENT, Protocol, State

from benchmarks import sink
from benchmarks.catchup import check_records
from benchmarks.messages import BLOCK, ID_DIGITS, Block, Feed, number_in
from benchmarks.models import Message as Model
from benchmarks.process import BenchmarkFailed
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.messages.parser import Message, MessageParser

PARSER = MessageParser()
CODEC = Codec(load("settled-bet"), READ_ONLY + 1)


def received(data: bytes) -> list[Message]:
    """What a client's protocol finds in these bytes, converted by the bridge."""
    protocol = Protocol(CLIENT, state=State.OPEN, max_size=None)
    protocol.receive_data(data)
    frames = protocol.events_received()
    assert protocol.parser_exc is None
    return [PARSER.parse(bytes(frame.data)) for frame in frames]  # type: ignore[union-attr]


def test_the_bridge_takes_messages_as_large_as_the_providers() -> None:
    frames = bytes(Block().frames)
    messages = received(frames)
    assert len(messages) == BLOCK
    assert all(message.bet is not None and not message.extras for message in messages)
    assert 1900 < len(frames) / BLOCK < 2200
    assert 2.2 < mean(len(message.bet["selections"] or []) for message in messages if message.bet) < 2.6


def test_each_message_can_have_fields_that_are_not_in_the_interface() -> None:
    usual, unusual = ([PARSER.parse(body) for body in Block(unknown_field=f).bodies()] for f in (False, True))
    assert [message.bet for message in unusual] == [message.bet for message in usual]
    unknown = {"data.benchmarkField", "data.selections[].benchmarkField"}
    assert all(set(message.extras) == unknown for message in unusual)


def test_every_bet_has_its_own_number() -> None:
    feed = Feed(Block(), first=2 * BLOCK, count=1500, total=10_000, span=7200.0, newest=1_795_000_000.0)
    bets = [message.bet for piece in feed for message in received(bytes(piece))]
    assert [number_in(bet["betId"].encode()) for bet in bets if bet] == list(range(2000, 3500))


def test_the_floor_publishes_what_the_bridge_publishes() -> None:
    schema, codec = parse_schema(sink.schema()), Codec(load("settled-bet"), READ_ONLY + 1)
    for body in Block().bodies()[::5]:
        bet, model = PARSER.parse(body).bet, Model.model_validate_json(body).data
        assert bet is not None
        assert model is not None
        out = io.BytesIO()
        out.write(codec.header)
        schemaless_writer(out, schema, model.model_dump())
        assert codec.decode(out.getvalue()) == codec.decode(codec.encode(bet))


def test_what_a_contender_publishes_is_compared_with_the_messages() -> None:
    bodies = Block().bodies()

    def record(number: int, **changed: object) -> tuple[bytes, bytes]:
        bet = PARSER.parse(bodies[number % len(bodies)]).bet
        assert bet is not None
        key = f"{number:0{ID_DIGITS}}"
        return key.encode(), CODEC.encode({**bet, "betId": key, "settlementTime": 1, **changed})

    check_records([record(7), record(1007, settlementTime=2), record(2999)], bodies)
    with pytest.raises(BenchmarkFailed):
        check_records([record(7), record(8, payout=0.125)], bodies)

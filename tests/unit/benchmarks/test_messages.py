"""The messages of the benchmarks: what the bridge publishes, each with a betId of its own."""

from __future__ import annotations

from statistics import mean

import pytest
from websockets.frames import Opcode
from websockets.protocol import CLIENT, Protocol, State

from benchmarks.messages import BLOCK, Block, Feed, number_in
from bridge.messages.parser import Message, MessageParser

PARSER = MessageParser()
NEWEST, SPAN = 1_795_000_000.0, 7200.0


@pytest.fixture(scope="module")
def block() -> Block:
    """One for all tests; each writes its own numbers into it."""
    return Block()


def received(data: bytes) -> list[Message]:
    """What a client's protocol finds in these bytes, converted by the bridge."""
    protocol = Protocol(CLIENT, state=State.OPEN, max_size=None)
    protocol.receive_data(data)
    frames = protocol.events_received()
    assert protocol.parser_exc is None
    assert all(frame.opcode is Opcode.TEXT and frame.fin for frame in frames)  # type: ignore[union-attr]
    return [PARSER.parse(bytes(frame.data)) for frame in frames]  # type: ignore[union-attr]


def test_the_bridge_takes_every_message(block: Block) -> None:
    messages = received(bytes(block.frames))
    assert len(messages) == BLOCK
    assert all(message.bet is not None and not message.extras for message in messages)


def test_each_message_can_have_fields_that_are_not_in_the_interface() -> None:
    usual, unusual = ([PARSER.parse(body) for body in Block(unknown_field=f).bodies()] for f in (False, True))
    assert [message.bet for message in unusual] == [message.bet for message in usual]
    unknown = {"data.benchmarkField", "data.selections[].benchmarkField"}
    assert all(set(message.extras) == unknown for message in unusual)


def test_messages_are_as_large_as_the_providers(block: Block) -> None:
    bets = [message.bet for message in received(bytes(block.frames)) if message.bet]
    items = [bet["selections"] or [] for bet in bets]
    assert 1900 < len(block.frames) / BLOCK < 2200
    assert 2.2 < mean(map(len, items)) < 2.6
    assert 0.07 < mean(any(i["betBuilderItems"] for i in found) for found in items) < 0.13


def test_every_bet_has_its_own_number(block: Block) -> None:
    feed = Feed(block, first=2 * BLOCK, count=1500, total=10_000, span=SPAN, newest=NEWEST)
    bets = [message.bet for piece in feed for message in received(bytes(piece))]
    assert [number_in(bet["betId"].encode()) for bet in bets if bet] == list(range(2000, 3500))
    assert len({bet["betId"] for bet in bets if bet}) == 1500

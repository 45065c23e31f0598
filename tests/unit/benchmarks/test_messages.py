"""The messages of the benchmarks: what the bridge publishes, each with a betId of its own."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

import pytest
from websockets.frames import Opcode
from websockets.protocol import CLIENT, Protocol, State

from benchmarks.messages import BLOCK, Block, Feed, frame, number_in, ping, stamp
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
    """A dead letter would be cheaper than a bet, and would make the figures too good."""
    messages = received(bytes(block.frames))
    assert len(messages) == BLOCK
    assert all(message.bet is not None and not message.extras for message in messages)


def test_messages_are_as_large_as_the_providers(block: Block) -> None:
    """About 2 KB, with 2.4 selections on average and a bet builder in a tenth."""
    bets = [message.bet for message in received(bytes(block.frames)) if message.bet]
    items = [bet["selections"] or [] for bet in bets]
    assert 1900 < len(block.frames) / BLOCK < 2200
    assert 2.2 < mean(map(len, items)) < 2.6
    assert 0.07 < mean(any(i["betBuilderItems"] for i in found) for found in items) < 0.13


@pytest.mark.parametrize("selections", [1, 10, 50])
def test_all_bets_can_have_as_many_selections(selections: int) -> None:
    """Frames of every length among them."""
    block = Block(selections)
    bets = [message.bet for message in received(bytes(block.frames[: block.ends[99]]))]
    assert len(bets) == 100
    assert all(bet and len(bet["selections"] or []) == selections for bet in bets)


def test_every_bet_has_its_own_number(block: Block) -> None:
    """Over the ends of blocks, and the last block is cut off where the messages end."""
    feed = Feed(block, first=2 * BLOCK, count=1500, total=10_000, span=SPAN, newest=NEWEST)
    bets = [message.bet for piece in feed for message in received(bytes(piece))]
    assert [number_in(bet["betId"].encode()) for bet in bets if bet] == list(range(2000, 3500))
    assert len({bet["betId"] for bet in bets if bet}) == 1500


def test_settlement_times_rise_evenly_to_the_newest(block: Block) -> None:
    """And are the same wherever a feed begins, so that it can send again what it has sent."""
    whole = Feed(block, first=0, count=4 * BLOCK, total=4 * BLOCK, span=SPAN, newest=NEWEST)
    times = [m.bet["settlementTime"] / 1e6 for piece in whole for m in received(bytes(piece)) if m.bet]
    assert times[0] == NEWEST - SPAN
    assert all(0 <= b - a <= SPAN / 80 + 1e-6 for a, b in pairwise(times))
    assert NEWEST - SPAN / 80 <= times[-1] <= NEWEST
    part = Feed(block, first=2 * BLOCK, count=BLOCK, total=4 * BLOCK, span=SPAN, newest=NEWEST)
    again = [m.bet["settlementTime"] / 1e6 for piece in part for m in received(bytes(piece)) if m.bet]
    assert again == times[2 * BLOCK : 3 * BLOCK]


def test_a_feed_begins_with_a_block(block: Block) -> None:
    """What lies within one cannot be numbered."""
    with pytest.raises(ValueError, match="multiple of 1000"):
        Feed(block, first=1, count=1, total=1, span=1, newest=NEWEST)


def test_a_single_message_carries_a_moment(block: Block) -> None:
    """Nineteen digits of nanoseconds, and the settlementTime that it is given."""
    [message] = received(bytes(block.one(7, 1_234_567_890_123_456_789, stamp(NEWEST))))
    assert message.bet is not None
    assert number_in(message.bet["betId"].encode()) == 1_234_567_890_123_456_789
    assert message.bet["settlementTime"] == NEWEST * 1_000_000


@pytest.mark.parametrize(
    ("size", "header"),
    [
        (125, b"\x81\x7d"),
        (126, b"\x81\x7e\x00\x7e"),
        (65_535, b"\x81\x7e\xff\xff"),
        (65_536, b"\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00"),
    ],
)
def test_a_frame_tells_its_length_in_as_few_bytes_as_can_be(size: int, header: bytes) -> None:
    """As RFC 6455 demands."""
    assert frame(bytes(size)) == header + bytes(size)


def test_a_ping_is_no_bet() -> None:
    """But a ping message."""
    [message] = received(ping(3))
    assert (message.ping_id, message.bet) == ("3", None)

"""Frames are made small enough for any limit, and messages are put together up to one."""

from __future__ import annotations

import hashlib

import pytest
from websockets.frames import Opcode

from bridge.feed.framing import HEAD_BYTES, SLICE_BYTES, STEP_MESSAGES, WHOLE_BYTES, Assembler, Reader
from bridge.feed.received import Oversized
from tests.frames import Client, frame, message, read_all

LIMIT = 100_000


def found(data: bytes) -> list[bytes | bytearray]:
    """What a reader makes of the bytes that follow an accepted handshake."""
    reader, accepted = Reader(), Client().accepted
    assert read_all(reader, accepted) == [bytearray(accepted)]
    return read_all(reader, data)


def sliced(data: bytes) -> bytes:
    """All of which is for the library."""
    [piece] = found(data)
    assert isinstance(piece, bytearray)
    return bytes(piece)


def read(data: bytes) -> Client:
    """A client that has read these bytes."""
    client = Client()
    client.feed(client.accepted + data)
    return client


def body(size: int) -> bytes:
    """A payload in which no two places look alike."""
    return b"".join(n.to_bytes(4, "big") for n in range(size // 4 + 1))[:size]


def oversized(payload: bytes) -> Oversized:
    return Oversized(len(payload), hashlib.sha256(payload).hexdigest(), payload[:HEAD_BYTES])


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, WHOLE_BYTES])
@pytest.mark.parametrize("opcode", [Opcode.TEXT, Opcode.BINARY])
def test_a_small_whole_message_is_taken_out(size: int, opcode: Opcode) -> None:
    assert found(frame(opcode, body(size)) + message(b"next")) == [body(size), b"next"]


def test_what_is_not_a_plain_message_is_for_the_library() -> None:
    ping, fragments = frame(Opcode.PING, b"?"), message(b"in two parts", [3], frame(Opcode.PING, b"!"))
    compressed = bytes([0xC1, 3]) + b"abc"
    sent = [ping, message(b"first"), fragments, message(b"second"), compressed, message(b"third")]
    assert found(b"".join(sent)) == [ping, b"first", fragments, b"second", compressed, b"third"]


def test_a_message_amid_the_fragments_of_another_is_left_to_the_library() -> None:
    begun, client = frame(Opcode.TEXT, b"begun", fin=False), Client()
    client.take(read_all(Reader(), client.accepted + begun + message(b"amid")))
    assert client.whole == []
    assert client.error is not None
    assert client.error.code == 1002


def test_the_reserved_bit_of_compression_stays_on_the_first_fragment() -> None:
    sent = bytearray(message(body(2 * SLICE_BYTES + 5)))
    sent[0] |= 0x40
    out = sliced(bytes(sent))
    step = SLICE_BYTES + 4
    assert [out[0], out[step], out[2 * step]] == [0x41, 0x00, 0x80]


@pytest.mark.parametrize(
    "sent",
    [
        message(body(40 * SLICE_BYTES)),
        message(body(1000), list(range(1000))) * 100,
        frame(Opcode.CONT, b"", fin=False) * 100_000,
        frame(Opcode.PING, b"?") * 100_000,
        (frame(Opcode.PING, b"?") + message(b"!")) * 50_000,
        message(b"") * 100_000,
        frame(Opcode.TEXT, b"wrong", masked=True) + bytes(300_000),
    ],
    ids=["one frame", "fragments", "empty fragments", "pings", "in turns", "messages", "what is wrong"],
)
def test_no_step_finds_much(sent: bytes) -> None:
    reader, taken = Reader(), bytearray()
    reader.feed(Client().accepted + sent)
    while reader.more:
        step = reader.read()
        taken += b"".join(step)
        assert sum(len(piece) for piece in step if isinstance(piece, bytearray)) <= SLICE_BYTES + 200
        assert len(step) <= STEP_MESSAGES
    assert len(taken) >= min(len(sent) // 3, 100)


def test_an_answer_without_an_end_is_not_kept() -> None:
    reader = Reader()
    for _ in range(1000):
        assert read_all(reader, b"X: y\r\n" * 100) == [b"X: y\r\n" * 100]
    assert len(reader._tail) < 4


def test_a_reader_knows_that_it_is_midway() -> None:
    reader = Reader()
    read_all(reader, Client().accepted)
    for sent in (message(body(300)), frame(Opcode.TEXT, body(300), fin=False)):
        seen = []
        for n in range(len(sent)):
            read_all(reader, sent[n : n + 1])
            seen.append(reader.midway)
        assert seen[200]
        assert not seen[0]
        assert not seen[-1]


def test_a_refused_handshake_passes_untouched() -> None:
    refusal = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 9\r\n\r\n"
    page = message(body(SLICE_BYTES + 1))
    reader = Reader()
    assert read_all(reader, refusal[:20]) == [refusal[:20]]
    assert read_all(reader, refusal[20:] + page) == [refusal[20:] + page]
    assert read_all(reader, page) == [page]


@pytest.mark.parametrize(
    "wrong",
    [
        frame(Opcode.TEXT, b"masked", masked=True),
        frame(Opcode.BINARY, body(SLICE_BYTES + 1), masked=True),
        bytes([0x80 | Opcode.PING, 126, 0, 200]) + bytes(200),
    ],
    ids=["masked", "masked and large", "long ping"],
)
def test_a_frame_that_no_server_may_send_is_left_to_the_library(wrong: bytes) -> None:
    before, after = message(b"before"), message(body(SLICE_BYTES + 1))
    out = found(before + wrong + after)
    assert out == [b"before", wrong + after]
    client = read(bytes(out[1]))
    assert client.error is not None
    assert client.error.code == 1002


@pytest.mark.parametrize("limit", [1, 10, HEAD_BYTES - 1])
def test_the_head_is_full_even_where_the_limit_is_smaller(limit: int) -> None:
    for size in (limit + 1, HEAD_BYTES + 7):
        client = read(message(body(size), [1, size // 2, size - 1]))
        assert client.messages(limit) == [oversized(body(size))]


@pytest.mark.parametrize("size", [0, 1, 2, LIMIT, 3 * LIMIT])
def test_an_oversized_message_takes_no_more_memory_than_the_limit(size: int) -> None:
    assembler = Assembler(LIMIT)
    fragments = 10 if size else 100_000
    for _ in range(fragments):
        assert assembler.add(bytes(size), False) is None
        assert len(assembler._data) <= LIMIT
    last = assembler.add(bytes(LIMIT), True)
    if size:
        assert isinstance(last, Oversized)
        assert last.size == fragments * size + LIMIT
        assert len(last.head) == HEAD_BYTES
    else:
        assert last == bytes(LIMIT)

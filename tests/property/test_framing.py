"""Whatever a server sends, in chunks of any size, the reader changes no message."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Opcode

from bridge.feed.framing import SLICE_BYTES, WHOLE_BYTES, Inbox, Reader
from bridge.feed.received import Oversized
from tests.frames import DATA, Client, chunks, frame, message, read_all

_SIZES = st.integers(0, 300) | st.integers(0, 300_000) | st.sampled_from([125, 126, 65_535, 65_536, 65_537])


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Return up to 300,000 bytes, each recognisable by its place."""
    size, seed = draw(_SIZES), draw(st.integers(0, 255))
    return bytes((seed + n) % 251 for n in range(min(size, 251))) * (size // 251 + 1) if size else b""


@st.composite
def sent(draw: st.DrawFn) -> tuple[bytes, list[bytes], list[bytes]]:
    """Return the bytes of a connection, its messages and the payloads of its control frames."""
    data, bodies, controls = b"", [], []
    for _ in range(draw(st.integers(0, 4))):
        body = draw(payloads())
        cuts = draw(st.lists(st.integers(0, len(body)), max_size=4))
        pings = draw(st.lists(st.binary(max_size=125), max_size=2))
        between = b"".join(frame(Opcode.PING, ping) for ping in pings)
        data += message(body, cuts, between)
        bodies.append(body)
        controls += pings * len(cuts)
    return data, bodies, controls


@settings(deadline=None, max_examples=100)
@given(sent=sent(), sizes=st.lists(st.integers(1, 70_000), min_size=1, max_size=5))
def test_reading_changes_no_message(sent: tuple[bytes, list[bytes], list[bytes]], sizes: list[int]) -> None:
    data, bodies, controls = sent
    reader, client = Reader(), Client()
    for chunk in chunks(client.accepted + data, sizes, most=2000):
        client.take(read_all(reader, chunk))
    assert client.messages() == bodies
    assert client.controls() == controls
    assert all(len(body) <= WHOLE_BYTES for body in client.whole)
    fragments = [f.data for f in client.frames if f.opcode in DATA and f.data not in client.whole]
    assert all(len(data) <= SLICE_BYTES for data in fragments)


@settings(deadline=None, max_examples=25)
@given(body=payloads(), cut=st.integers(0, 300_000))
def test_byte_by_byte_is_no_different(body: bytes, cut: int) -> None:
    body = body[: SLICE_BYTES + 2000]
    data = message(body, [cut % (len(body) + 1)], frame(Opcode.PING, b"?")) + message(b"next")
    reader, client = Reader(), Client()
    for byte in chunks(client.accepted + data, [1]):
        client.take(read_all(reader, byte))
    assert client.messages() == [body, b"next"]


_FRAGMENT = st.tuples(st.integers(0, 5), st.booleans())
_TAKE = st.tuples(st.integers(0, 4), st.integers(0, 10))


@settings(deadline=None, max_examples=300)
@given(steps=st.lists(_FRAGMENT | st.lists(_TAKE, min_size=1, max_size=1) | st.none(), max_size=60))
def test_an_inbox_is_a_queue(steps: list[tuple[int, bool] | list[tuple[int, int]] | None]) -> None:
    """Fragments become messages of at most 7 bytes, or oversized ones; None stands for a read pause.

    Only the first message after a pause is marked. Only the last one taken may exceed the bytes.
    """
    inbox, fragments = Inbox(7), list[bytes]()
    queue: list[tuple[bytes, float, bool]] = []
    paused = False
    for number, step in enumerate(steps):
        if step is None:
            inbox.after_read_pause = paused = True
        elif isinstance(step, tuple):
            size, fin = step
            fragments.append(bytes([number] * size))
            inbox.add(fragments[-1], fin, float(number))
            if fin:
                queue.append((b"".join(fragments), float(number), paused))
                fragments, paused = [], False
        else:
            [(most, most_bytes)] = step
            expected: list[tuple[bytes, float, bool]] = []
            while queue and len(expected) < most and sum(len(body) for body, _, _ in expected) < most_bytes:
                expected.append(queue.pop(0))
            taken = inbox.take(most, most_bytes)
            assert [(m.body, m.at, m.after_read_pause) for m in taken] == [
                (body if len(body) <= 7 else _oversized(body), at, marked) for body, at, marked in expected
            ]
        assert len(inbox) == len(queue)
        assert inbox.bytes == sum(len(body) for body, _, _ in queue)
    inbox.clear()
    assert (len(inbox), inbox.bytes, inbox.take(1, 1)) == (0, 0, [])


def _oversized(body: bytes) -> Oversized:
    return Oversized(len(body), sha256(body).hexdigest(), body)

"""WebSocket frames as a server sends them, and as a client reads them (RFC 6455)."""

from __future__ import annotations

from itertools import cycle, islice

from websockets.client import ClientProtocol
from websockets.frames import Close, Frame, Opcode
from websockets.uri import parse_uri
from websockets.utils import accept_key

from bridge.feed.framing import Assembler, Reader
from bridge.feed.received import Oversized

DATA = (Opcode.TEXT, Opcode.BINARY, Opcode.CONT)


def frame(opcode: Opcode, payload: bytes, *, fin: bool = True, masked: bool = False) -> bytes:
    """The bytes of one frame."""
    return Frame(opcode, payload, fin).serialize(mask=masked)


def message(payload: bytes, cuts: list[int] | None = None, between: bytes = b"") -> bytes:
    """A text message, fragmented at `cuts`, with the bytes of control frames between its fragments."""
    edges = [0, *sorted(cut for cut in cuts or [] if cut <= len(payload)), len(payload)]
    last = len(edges) - 2
    return between.join(
        frame(Opcode.TEXT if i == 0 else Opcode.CONT, payload[edges[i] : edges[i + 1]], fin=i == last)
        for i in range(len(edges) - 1)
    )


def chunks(data: bytes, sizes: list[int], most: int | None = None) -> list[bytes]:
    """Return the bytes in chunks of these sizes, over and over; the last of at most `most` has the rest."""
    found, at = [], 0
    for size in islice(cycle(sizes), most and most - 1):
        found.append(data[at : at + size])
        at += size
        if at >= len(data):
            return found
    return [*found, data[at:]]


def read_all(reader: Reader, data: bytes) -> list[bytes | bytearray]:
    """Everything that a reader finds in the bytes at once."""
    found: list[bytes | bytearray] = []
    reader.feed(data)
    while reader.more:
        for piece in reader.read():
            if isinstance(piece, bytearray) and found and isinstance(found[-1], bytearray):
                found[-1] += piece
            else:
                found.append(piece)
    return found


class Client:
    """websockets' reading of a connection, from the handshake's response on."""

    def __init__(self) -> None:
        self._protocol = ClientProtocol(parse_uri("ws://provider.example/"), max_size=None)
        request = self._protocol.connect()
        self._protocol.send_request(request)
        self.accepted = (
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Accept: {accept_key(request.headers['Sec-WebSocket-Key'])}\r\n\r\n"
        ).encode()
        """The answer that accepts the handshake."""
        self.frames: list[Frame] = []
        self.whole: list[bytes] = []
        """The messages that the library has never seen."""

    def feed(self, data: bytes) -> None:
        """Add bytes from the socket."""
        self._protocol.receive_data(data)
        self.frames += [event for event in self._protocol.events_received() if isinstance(event, Frame)]

    def take(self, pieces: list[bytes | bytearray]) -> None:
        """Take the findings of a `Reader`: messages unchanged, bytes for the library through the library."""
        for piece in pieces:
            if isinstance(piece, bytes):
                self.frames.append(Frame(Opcode.TEXT, piece))
                self.whole.append(piece)
            else:
                self.feed(bytes(piece))

    @property
    def error(self) -> Close | None:
        """The library's close reason after a protocol error."""
        return self._protocol.close_sent

    def messages(self, limit: int = 2**40) -> list[bytes | Oversized]:
        """The messages that the fragments form."""
        assembler = Assembler(limit)
        found = [assembler.add(bytes(f.data), f.fin) for f in self.frames if f.opcode in DATA]
        return [body for body in found if body is not None]

    def controls(self) -> list[bytes]:
        """The payloads of the control frames."""
        return [bytes(f.data) for f in self.frames if f.opcode not in DATA]

"""WebSocket frames of any size in bounded memory: RFC 6455, section 5.

A provider that once sent a message too large to take would send it again in each replay, and a bridge
that closes the connection for it would never get past it. So nothing is refused for its size: `Slicer`
turns a large frame into small fragments before the protocol sees it, and `Assembler` puts messages
together again, keeping no more than size, hash and head of one that is above the limit.
"""

from __future__ import annotations

import hashlib

from bridge.feed.events import Oversized

SLICE_BYTES = 64 * 1024
"""The largest fragment handed on. It bounds what a compressed one can inflate to: 1,032 times that."""
HEAD_BYTES = 64 * 1024
"""How much of an oversized message is kept."""

_FIN = 0x80
_OPCODE = 0x0F
_CONTROL = 0x08
_MASKED = 0x80
_LENGTH_BYTES = {126: 2, 127: 8}
_HEADERS_END = b"\r\n\r\n"


class Slicer:
    """A filter on the bytes of a connection: frames above `SLICE_BYTES` become fragmented messages.

    RFC 6455, section 5.4, lets an intermediary re-fragment as long as it keeps the order, which holds
    with permessage-deflate as well: compression works on messages, not on frames.
    """

    def __init__(self) -> None:
        self._header = bytearray()
        """The beginning of a frame whose header is not complete; of the response, before it is."""
        self._in_response = True
        self._remaining = 0
        """Bytes of payload of the present frame that are still to come."""
        self._large: int | None = None
        """The first byte of the present frame, when it is being sliced."""
        self._sliced = False
        self._raw = False

    def feed(self, data: bytes) -> bytes:
        """The bytes to hand on for the bytes that came."""
        if self._raw:
            return data
        if self._in_response:
            return self._response(data)
        if self._remaining >= len(data) and self._large is None:
            self._remaining -= len(data)
            return data
        return self._frames(data)

    def _response(self, data: bytes) -> bytes:
        """Pass the answer to the handshake; frames begin after it, if it is an acceptance."""
        self._header += data
        end = self._header.find(_HEADERS_END)
        if end < 0:
            return data
        rest = bytes(self._header[end + 4 :])
        self._raw = self._header.split(b" ", 2)[1:2] != [b"101"]
        self._header.clear()
        self._in_response = False
        if self._raw or not rest:
            return data
        return data[: len(data) - len(rest)] + self._frames(rest)

    def _frames(self, data: bytes) -> bytes:
        out = bytearray()
        view, at = memoryview(data), 0
        while at < len(data):
            if self._remaining:
                take = min(self._remaining, len(data) - at)
                self._remaining -= take
                self._payload(out, view[at : at + take])
                at += take
                continue
            self._header.append(data[at])
            at += 1
            if self._begin(out):
                # Not a frame that a server may send: the protocol sees it as it is and says so.
                self._raw = True
                return bytes(out) + data[at:]
        return bytes(out)

    def _begin(self, out: bytearray) -> bool:
        """Act on the header as far as it is known; returns whether it breaks the protocol."""
        header = self._header
        if len(header) < 2:
            return False
        short = header[1] & 0x7F
        if header[1] & _MASKED or (header[0] & _CONTROL and short > 125):
            out += header
            return True
        if len(header) < 2 + _LENGTH_BYTES.get(short, 0):
            return False
        size = short if short < 126 else int.from_bytes(header[2:], "big")
        self._remaining = size
        if size > SLICE_BYTES:
            self._large, self._sliced = header[0], False
        else:
            out += header
            self._large = None
        header.clear()
        return False

    def _payload(self, out: bytearray, data: memoryview) -> None:
        if self._large is None:
            out += data
            return
        for start in range(0, len(data), SLICE_BYTES):
            piece = data[start : start + SLICE_BYTES]
            last = self._remaining == 0 and start + len(piece) == len(data)
            # Reserved bits and opcode belong to the first fragment, the end of the message to the last.
            first_byte = 0 if self._sliced else self._large & ~_FIN
            out.append(first_byte | (self._large & _FIN if last else 0))
            if len(piece) < 126:
                out.append(len(piece))
            else:
                out.append(127)
                out += len(piece).to_bytes(8, "big")
            out += piece
            self._sliced = True
        if self._remaining == 0:
            self._large = None


class Assembler:
    """Puts the fragments of a message together, up to a limit of bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0
        self._hash: hashlib._Hash | None = None

    def add(self, data: bytes, fin: bool) -> bytes | Oversized | None:
        """The message that this fragment completes, if it does."""
        if fin and not self._parts and len(data) <= self._limit:
            return data
        self._size += len(data)
        self._parts.append(data)
        if self._size > self._limit:
            self._overflow()
        return self._finish() if fin else None

    def _overflow(self) -> None:
        data = b"".join(self._parts)
        if self._hash is None:
            self._hash = hashlib.sha256(data)
        else:
            self._hash.update(data[len(self._parts[0]) :])
        self._parts = [data[:HEAD_BYTES]]

    def _finish(self) -> bytes | Oversized:
        whole, size, digest = b"".join(self._parts), self._size, self._hash
        self._parts, self._size, self._hash = [], 0, None
        return whole if digest is None else Oversized(size, digest.hexdigest(), whole[:HEAD_BYTES])

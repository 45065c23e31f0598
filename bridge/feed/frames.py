"""WebSocket frames of any size in bounded memory, each read once: RFC 6455, section 5.

Nearly all that a feed sends is one kind of frame: a whole message, small, neither compressed nor
fragmented. `Reader` takes these messages out of the bytes of a connection; everything else (handshake,
control frames, fragments, compression, what breaks the protocol) is for the WebSocket library.

A provider that once sent a message too large to take would send it again in each replay, and a bridge
that closes the connection for it would never get past it. So nothing is refused for its size: `Reader`
turns a large frame into small fragments before the library sees it, and `Assembler` puts messages
together again, keeping no more than size, hash and head of one that is above the limit.

Called for every message, so this module is compiled where it can be.
"""

from __future__ import annotations

import hashlib
from typing import Final

from bridge.feed.events import Oversized

SLICE_BYTES: Final = 64 * 1024
"""The largest fragment handed on. It bounds what a compressed one can inflate to: 1,032 times that."""
HEAD_BYTES: Final = 64 * 1024
"""How much of an oversized message is kept."""

_FIN: Final = 0x80
_OPCODE: Final = 0x0F
_CONTROL: Final = 0x08
_MASKED: Final = 0x80
_WHOLE_TEXT: Final = 0x81
_WHOLE_BINARY: Final = 0x82
_HEADERS_END: Final = b"\r\n\r\n"


class Reader:
    """Reads the bytes of a connection, from the answer to the handshake on.

    RFC 6455, section 5.4, lets an intermediary re-fragment as long as it keeps the order, which holds
    with permessage-deflate as well: compression works on messages, not on frames.
    """

    def __init__(self) -> None:
        self._pending = b""
        """The beginning of a frame that is not complete; of the response, before it is."""
        self._in_response = True
        self._remaining = 0
        """Bytes of payload that are still to come of a frame that the library sees."""
        self._large = -1
        """The first byte of that frame, when it is being sliced."""
        self._sliced = False
        """Whether a slice of it has been handed on."""
        self._in_fragments = False
        """Whether a fragmented message has begun and not ended."""
        self._raw = False
        """Whether all that comes is for the library, as it is."""

    def feed(self, data: bytes) -> list[bytes | bytearray]:
        """What the bytes hold, in order: messages as `bytes`, what is for the library as `bytearray`."""
        found: list[bytes | bytearray] = []
        if self._in_response:
            data = self._response(found, data)
        elif self._pending:
            data, self._pending = self._pending + data, b""
        at = 0
        while at < len(data):
            if self._raw:
                _hand_on(found, data[at:])
                break
            if self._remaining > 0:
                piece = data[at : at + self._remaining]
                self._remaining -= len(piece)
                self._payload(found, piece)
                at += len(piece)
                continue
            end = self._frame(found, data, at)
            if end < 0:
                self._pending = data[at:]
                break
            at = end
        return found

    def _response(self, found: list[bytes | bytearray], data: bytes) -> bytes:
        """Hand on the answer to the handshake; returns what comes after it."""
        seen = self._pending + data
        end = seen.find(_HEADERS_END)
        if end < 0:
            _hand_on(found, data)
            self._pending = seen
            return b""
        self._pending = b""
        self._in_response = False
        self._raw = seen.split(b" ", 2)[1:2] != [b"101"]  # what follows a refusal is no frames
        rest = seen[end + len(_HEADERS_END) :]
        _hand_on(found, data[: len(data) - len(rest)])
        return rest

    def _frame(self, found: list[bytes | bytearray], data: bytes, at: int) -> int:
        """Read a message, or the header of another frame; returns where it ends, -1 if it is cut."""
        if len(data) < at + 2:
            return -1
        first, size, body = data[at], data[at + 1], at + 2
        if size & _MASKED or (first & _CONTROL and size > 125):
            self._raw = True  # not a frame that a server may send: the library sees it and says so
            return at
        if size > 125:
            body += 2 if size == 126 else 8
            if len(data) < body:
                return -1
            size = int.from_bytes(data[at + 2 : body], "big")
        if first in (_WHOLE_TEXT, _WHOLE_BINARY) and size <= SLICE_BYTES and not self._in_fragments:
            if len(data) < body + size:
                return -1
            found.append(data[body : body + size])
            return body + size
        if not first & _CONTROL:
            self._in_fragments = not first & _FIN
        self._remaining = size
        if size > SLICE_BYTES:
            self._large, self._sliced = first, False
        else:
            self._large = -1
            _hand_on(found, data[at:body])
        return body

    def _payload(self, found: list[bytes | bytearray], data: bytes) -> None:
        """Hand on payload of the present frame, in slices if it is a large one."""
        if self._large < 0:
            _hand_on(found, data)
            return
        for start in range(0, len(data), SLICE_BYTES):
            piece = data[start : start + SLICE_BYTES]
            last = self._remaining == 0 and start + len(piece) == len(data)
            # Reserved bits and opcode belong to the first fragment, the end of the message to the last.
            first = 0 if self._sliced else self._large & ~_FIN
            _hand_on(found, bytes([first | (self._large & _FIN if last else 0)]))
            _hand_on(
                found, bytes([len(piece)]) if len(piece) < 126 else b"\x7f" + len(piece).to_bytes(8, "big")
            )
            _hand_on(found, piece)
            self._sliced = True


def _hand_on(found: list[bytes | bytearray], data: bytes) -> None:
    """Add to what the library is to see."""
    if found:
        last = found[-1]
        if isinstance(last, bytearray):
            last += data
            return
    found.append(bytearray(data))


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

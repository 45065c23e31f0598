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

from bridge.feed.received import Oversized

WHOLE_BYTES: Final = 64 * 1024
"""The largest message that is taken out here."""
SLICE_BYTES: Final = 16 * 1024
"""The largest fragment handed on, and about as much as is handed on at once. It bounds what comes of it: a
compressed one inflates to 1,032 times that at most, and the smallest frames are 8,192."""
STEP_MESSAGES: Final = 1_000
"""Messages that are found at once, at most."""
HEAD_BYTES: Final = 64 * 1024
"""How much of an oversized message is kept."""

_FIN: Final = 0x80
_OPCODE: Final = 0x0F
_CONTROL: Final = 0x08
_MASKED: Final = 0x80
_WHOLE_TEXT: Final = 0x81
_WHOLE_BINARY: Final = 0x82
_HEADERS_END: Final = b"\r\n\r\n"
_STATUS: Final = len(b"HTTP/1.1 101 ")
_LONGEST_HEADER: Final = 10


class Reader:
    """Reads the bytes of a connection, from the answer to the handshake on.

    RFC 6455, section 5.4, lets an intermediary re-fragment as long as it keeps the order, which holds
    with permessage-deflate as well: compression works on messages, not on frames.
    """

    def __init__(self) -> None:
        self._data = b""
        """What has come and is not read, from `_at` on."""
        self._at = 0
        self._status = b""
        """The beginning of the response, until it is over."""
        self._tail = b""
        """The end of what has come of the response: its last line may be cut."""
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
        self._handed_on = 0
        """Bytes for the library that this `read` has found."""
        self.more = False
        """Whether `read` would find more without another `feed`."""

    @property
    def midway(self) -> bool:
        """Whether all is read, and it ends within a frame, behind its header."""
        return not self.more and (self._remaining > 0 or len(self._data) > _LONGEST_HEADER)

    def feed(self, data: bytes) -> None:
        """Take what has come from the socket."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0
        self.more = True

    def read(self) -> list[bytes | bytearray]:
        """The next of what has come, in order: messages as `bytes`, what is for the library as `bytearray`.

        Of the latter it is little more than `SLICE_BYTES`. While `more` is set, there is more to read.
        """
        found: list[bytes | bytearray] = []
        data, at = self._data, self._at
        self._handed_on = 0
        if self._in_response:
            at = self._response(found, data)
        while at < len(data) and self._handed_on < SLICE_BYTES and len(found) < STEP_MESSAGES:
            if self._remaining > 0 or self._raw:
                at = self._payload(found, data, at)
                continue
            end = self._frame(found, data, at)
            if end < 0:
                self._data, self._at, self.more = data[at:], 0, False
                return found
            at = end
        self._at, self.more = at, at < len(data)
        if not self.more:
            self._data, self._at = b"", 0
        return found

    def _response(self, found: list[bytes | bytearray], data: bytes) -> int:
        """Hand on the answer to the handshake; returns where it ends."""
        self._status = (self._status + data[:_STATUS])[:_STATUS]
        seen = self._tail + data
        end = seen.find(_HEADERS_END)
        if end < 0:
            self._tail = seen[1 - len(_HEADERS_END) :]
            self._hand_on(found, data)
            return len(data)
        self._in_response = False
        self._raw = self._status.split(b" ", 2)[1:2] != [b"101"]  # what follows a refusal is no frames
        end += len(_HEADERS_END) - len(self._tail)
        self._hand_on(found, data[:end])
        return end

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
        if first in (_WHOLE_TEXT, _WHOLE_BINARY) and size <= WHOLE_BYTES and not self._in_fragments:
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
            self._hand_on(found, data[at:body])
        return body

    def _payload(self, found: list[bytes | bytearray], data: bytes, at: int) -> int:
        """Hand on payload of the present frame, as a slice if it is a large one; returns where it ends."""
        if self._raw:
            piece = data[at : at + SLICE_BYTES]
            self._hand_on(found, piece)
            return at + len(piece)
        piece = data[at : at + min(self._remaining, SLICE_BYTES)]
        self._remaining -= len(piece)
        if self._large >= 0:
            # Reserved bits and opcode belong to the first fragment, the end of the message to the last.
            first = 0 if self._sliced else self._large & ~_FIN
            last = self._large & _FIN if self._remaining == 0 else 0
            size, self._sliced = len(piece), True
            self._hand_on(found, bytes([first | last, size if size < 126 else 126]))
            if size > 125:
                self._hand_on(found, size.to_bytes(2, "big"))
        self._hand_on(found, piece)
        return at + len(piece)

    def _hand_on(self, found: list[bytes | bytearray], data: bytes) -> None:
        """Add to what the library is to see."""
        self._handed_on += len(data)
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
        self._data = bytearray()
        """What has come; no more than the head, once it is above the limit."""
        self._size = 0
        self._hash: hashlib._Hash | None = None
        """Of all that has come, once it is above the limit."""

    def add(self, data: bytes, fin: bool) -> bytes | Oversized | None:
        """The message that this fragment completes, if it does."""
        if fin and self._size == 0 and len(data) <= self._limit:
            return data
        self._size += len(data)
        if self._hash is None and self._size > self._limit:
            self._hash = hashlib.sha256(self._data)
            del self._data[HEAD_BYTES:]
        if self._hash is not None:
            self._hash.update(data)
            data = data[: max(0, HEAD_BYTES - len(self._data))]
        self._data += data
        return self._finish() if fin else None

    def _finish(self) -> bytes | Oversized:
        whole, size, digest = bytes(self._data), self._size, self._hash
        self._data, self._size, self._hash = bytearray(), 0, None
        return whole if digest is None else Oversized(size, digest.hexdigest(), whole)

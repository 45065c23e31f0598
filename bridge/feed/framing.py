"""WebSocket frames of any size in bounded memory, each read once: RFC 6455, section 5.

Nearly all frames of a feed are alike: a whole small message, neither compressed nor fragmented. `Reader`
takes these out of the bytes of a connection; everything else (handshake, control frames, fragments,
compression, protocol errors) goes to the WebSocket library.

A message that is too large would come again in each replay, and a bridge that closes the connection for it
would never get past it. So no message is refused for its size: `Reader` splits large frames into small
fragments before the library sees them, and `Assembler` joins messages again, keeping only size, hash and head
of one above the limit.

Called for every message, so this module is compiled if possible.
"""

from __future__ import annotations

import hashlib
from collections import deque
from typing import Final

from bridge.feed.received import Oversized, Received

WHOLE_BYTES: Final = 64 * 1024
"""The largest message that `Reader` takes out."""
SLICE_BYTES: Final = 16 * 1024
"""The largest fragment passed to the library, and about the most passed at once. It bounds the result: a
compressed fragment inflates to at most 1,032 times its size, and at most 8,192 frames fit."""
STEP_MESSAGES: Final = 1_000
"""The most messages found at once."""
HEAD_BYTES: Final = 64 * 1024
"""Bytes kept of an oversized message."""

_FIN: Final = 0x80
_CONTROL: Final = 0x08
_MASKED: Final = 0x80
_WHOLE_TEXT: Final = 0x81
_WHOLE_BINARY: Final = 0x82
_HEADERS_END: Final = b"\r\n\r\n"
_STATUS: Final = len(b"HTTP/1.1 101 ")
_LONGEST_HEADER: Final = 10


class Reader:
    """Reads the bytes of a connection, beginning with the answer to the handshake.

    RFC 6455, section 5.4, lets an intermediary re-fragment messages if it keeps the order, even with
    permessage-deflate: compression works on messages, not on frames.
    """

    def __init__(self) -> None:
        self._data = b""
        """Unread data, from `_at` on."""
        self._at = 0
        self._status = b""
        """The beginning of the response."""
        self._tail = b""
        """The end of the response so far: its last line may be cut."""
        self._in_response = True
        self._remaining = 0
        """Bytes of payload still to come of a frame for the library."""
        self._large = -1
        """The first byte of that frame if it is being split, else -1."""
        self._sliced = False
        """Whether a part of it was passed on."""
        self._in_fragments = False
        """Whether a fragmented message has begun and not ended."""
        self._raw = False
        """Whether all further bytes go to the library unchanged."""
        self._handed_on = 0
        """Bytes for the library found by this `read`."""
        self.more = False
        """Whether `read` would find more without another `feed`."""

    @property
    def midway(self) -> bool:
        """Whether the data so far ends within a frame, after its header."""
        return not self.more and (self._remaining > 0 or len(self._data) > _LONGEST_HEADER)

    def feed(self, data: bytes) -> None:
        """Add data from the socket."""
        self._data = self._data[self._at :] + data if self._at < len(self._data) else data
        self._at = 0
        self.more = True

    def read(self) -> list[bytes | bytearray]:
        """Return the next parts, in order: messages as `bytes`, data for the library as `bytearray`.

        The latter is little more than `SLICE_BYTES`. While `more` is set, there is more to read.
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
        """Pass on the answer to the handshake. Returns where it ends."""
        self._status = (self._status + data[:_STATUS])[:_STATUS]
        seen = self._tail + data
        end = seen.find(_HEADERS_END)
        if end < 0:
            self._tail = seen[1 - len(_HEADERS_END) :]
            self._hand_on(found, data)
            return len(data)
        self._in_response = False
        self._raw = self._status.split(b" ", 2)[1:2] != [b"101"]  # no frames follow a refusal
        end += len(_HEADERS_END) - len(self._tail)
        self._hand_on(found, data[:end])
        return end

    def _frame(self, found: list[bytes | bytearray], data: bytes, at: int) -> int:
        """Read a message, or the header of another frame. Returns where it ends, -1 if it is cut."""
        if len(data) < at + 2:
            return -1
        first, size, body = data[at], data[at + 1], at + 2
        if size & _MASKED or (first & _CONTROL and size > 125):
            self._raw = True  # a protocol error, which the library reports
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
        """Pass on payload of the current frame, split if it is large. Returns where it ends."""
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
        """Add data for the library."""
        self._handed_on += len(data)
        if found:
            last = found[-1]
            if isinstance(last, bytearray):
                last += data
                return
        found.append(bytearray(data))


class Assembler:
    """Joins the fragments of a message, up to a limit in bytes."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        """The message so far; only its head once it is above the limit."""
        self._size = 0
        self._hash: hashlib._Hash | None = None
        """Hash of the message so far, once it is above the limit."""

    def add(self, data: bytes, fin: bool) -> bytes | Oversized | None:
        """Return the message that this fragment completes, if it does."""
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


class Inbox:
    """Messages that were read and not received yet, in order. `limit` is that of `Assembler`."""

    def __init__(self, limit: int) -> None:
        self._assembler: Final = Assembler(limit)
        self._queue: Final[deque[Received]] = deque()
        self.bytes = 0
        """Size of all messages."""
        self.after_read_pause = False
        """Whether the next message may have been sent long before it was read."""

    def __len__(self) -> int:
        return len(self._queue)

    def add(self, data: bytes, fin: bool, at: float) -> None:
        """Add the message that this fragment, read at a time in Unix seconds, completes, if it does."""
        body = self._assembler.add(data, fin)
        if body is not None:
            self._queue.append(Received(body, at, self.after_read_pause))
            self.after_read_pause = False
            self.bytes += len(body)

    def add_messages(self, parts: list[bytes | bytearray], begin: int, at: float) -> int:
        """Add the messages in what `Reader.read` returned, up to the first part for the library.

        Returns the index of that part.
        """
        place = begin
        while place < len(parts):
            part = parts[place]
            if isinstance(part, bytearray):
                break
            self.add(part, True, at)
            place += 1
        return place

    def take(self, most: int, most_bytes: int) -> list[Received]:
        """Remove and return at most `most` messages; only the last one may exceed the bytes."""
        taken: list[Received] = []
        size = 0
        while self._queue and len(taken) < most and size < most_bytes:
            message = self._queue.popleft()
            size += len(message.body)
            taken.append(message)
        self.bytes -= size
        return taken

    def clear(self) -> None:
        """Remove all messages."""
        self._queue.clear()
        self.bytes = 0

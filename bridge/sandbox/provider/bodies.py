"""Lets a question of the REST side have a body: the library under the simulator refuses a GET with one."""

from __future__ import annotations

import re
from typing import Final

from websockets.asyncio.server import ServerConnection

from bridge.sandbox.provider.rest.routes import ROOT

_BEGINNING: Final = b"GET " + ROOT.encode()
_LENGTH: Final = re.compile(rb"\r\nContent-Length: *([0-9]{1,6})(?=\r\n)", re.IGNORECASE)
_MOST_HEAD_BYTES: Final = 64 << 10


class BodiedConnection(ServerConnection):
    """Takes the body off a request before the library sees it."""

    body = b""
    """That of the request."""
    _begun: bytes | None = b""
    """What has come of it; None once all of it has, or where it can have none."""

    def data_received(self, data: bytes) -> None:
        """Called by the transport."""
        if self._begun is not None:
            self._begun += data
            if (whole := self._whole(self._begun)) is None:
                return
            self._begun, data = None, whole
        super().data_received(data)

    def _whole(self, begun: bytes) -> bytes | None:
        """The request without its body; None while there is more to come."""
        if not begun.startswith(_BEGINNING) or len(begun) > _MOST_HEAD_BYTES:
            return begun
        head, end, rest = begun.partition(b"\r\n\r\n")
        length = _LENGTH.search(head + b"\r\n")
        if not end or (length and len(rest) < int(length[1])):
            return None
        if length:
            self.body, rest = rest[: int(length[1])], rest[int(length[1]) :]
            head = head[: length.start()] + head[length.end() :]
        return head + end + rest

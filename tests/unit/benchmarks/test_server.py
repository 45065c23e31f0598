"""The handshake that the server of messages answers by hand."""

from __future__ import annotations

from benchmarks.server import answer

KEY = b"dGhlIHNhbXBsZSBub25jZQ=="


def test_a_handshake_is_accepted() -> None:
    """With the digest that RFC 6455 gives for the key of its example, and the time."""
    request = b"GET / HTTP/1.1\r\nHost: x\r\nsec-websocket-KEY: " + KEY + b"\r\nUpgrade: websocket\r\n\r\n"
    head, _, rest = answer(request, 1_795_000_000.0).partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 101 Switching Protocols"
    assert b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in lines
    assert b"Date: Wed, 18 Nov 2026 11:06:40 GMT" in lines
    assert rest == b""


def test_no_extension_is_agreed_to() -> None:
    """What is compressed would have to be made for each message."""
    offer = b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
    request = b"GET / HTTP/1.1\r\nSec-WebSocket-Key: " + KEY + b"\r\n" + offer + b"\r\n"
    assert b"Extensions" not in answer(request, 0.0)


def test_another_request_is_told_the_time() -> None:
    """The bridge asks for it before it dials."""
    response = answer(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0.0)
    assert response.startswith(b"HTTP/1.1 426 ")
    assert b"\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n" in response

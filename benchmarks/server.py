"""A provider whose cost is negligible: it answers the handshake itself and sends prepared frames.

    python -m benchmarks.server --messages 200000            as fast as the client reads
    python -m benchmarks.server --messages 5000 --rate 500   on an absolute schedule; betIds say when

While it sends it reads nothing, so a client must not wait for replies to WebSocket pings. After the last
message the connection stays open, with a ping message each second. It prints JSON objects, one a line:
`listening` (the port), `first` and `last` (seconds of CLOCK_MONOTONIC, which all processes of a machine
share) and `cpu_us` a message.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import resource
import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from itertools import count

from benchmarks.messages import BLOCK, Block, Feed, ping, stamp

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_PING_SECONDS = 1.0
_FIN_CLOSE = 0x88
_LARGEST_REQUEST = 65_536


def answer(request: bytes, now: float) -> bytes:
    """Return the response to a request: 101 for a WebSocket handshake (RFC 6455, section 4.2.2), else 426.

    Both have a Date, `now` in Unix seconds, which the bridge compares with its clock before it dials. No
    extension is accepted.
    """
    date = b"Date: %s\r\n" % formatdate(now, usegmt=True).encode()
    for line in request.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"sec-websocket-key":
            digest = base64.b64encode(hashlib.sha1(value.strip() + _GUID, usedforsecurity=False).digest())
            return (
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                + (b"Sec-WebSocket-Accept: %s\r\n" % digest)
                + date
                + b"\r\n"
            )
    return b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n" + date + b"\r\n"


def serve(send: Callable[[socket.socket], None]) -> None:
    """Accept one connection after the other; call `send`, then send pings until the connection closes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        tell(listening=listener.getsockname()[1])
        while True:
            connection, _ = listener.accept()
            with connection:
                try:
                    if _shakes_hands(connection):
                        send(connection)
                        _keep_open(connection)
                except OSError:  # the client is gone
                    continue


def tell(**facts: float) -> None:
    """Print a JSON object as one line."""
    print(json.dumps(facts), flush=True)


def as_fast_as_possible(feed: Feed, messages: int) -> Callable[[socket.socket], None]:
    """Send all messages, as fast as the client reads."""

    def send(connection: socket.socket) -> None:
        began = _cpu_seconds()
        tell(first=time.monotonic())
        for piece in feed:
            connection.sendall(piece)
        tell(last=time.monotonic(), cpu_us=round((_cpu_seconds() - began) * 1e6 / messages, 2))

    return send


def paced(block: Block, messages: int, rate: float) -> Callable[[socket.socket], None]:
    """Send message k at `start + k / rate`; its betId holds the time at which it is due, in ns.

    A late sender sends everything that is due at once, so lateness counts as latency.
    """

    def send(connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began, start, late = _cpu_seconds(), time.monotonic_ns(), 0
        tell(first=start / 1e9)
        for k in range(messages):
            due = start + int(k * 1e9 / rate)
            if (ahead := due - time.monotonic_ns()) > 0:
                time.sleep(ahead / 1e9)
            late = max(late, time.monotonic_ns() - due)
            connection.sendall(block.one(k % BLOCK, due, stamp(time.time())))
        cpu = (_cpu_seconds() - began) * 1e6 / messages
        tell(last=time.monotonic(), cpu_us=round(cpu, 2), latest_ms=round(late / 1e6, 3))

    return send


def _shakes_hands(connection: socket.socket) -> bool:
    request = b""
    while b"\r\n\r\n" not in request:
        part = connection.recv(_LARGEST_REQUEST)
        if not part or len(request) > _LARGEST_REQUEST:
            return False
        request += part
    response = answer(request, time.time())
    connection.sendall(response)
    return b" 101 " in response


def _keep_open(connection: socket.socket) -> None:
    """Send pings until the client closes the connection or sends a close frame."""
    connection.settimeout(_PING_SECONDS)
    for number in count():
        connection.sendall(ping(number))
        try:
            said = connection.recv(_LARGEST_REQUEST)
        except TimeoutError:
            continue
        if not said or said[0] == _FIN_CLOSE:
            return


def _cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--rate", type=float, help="a second; as fast as possible without it")
    parser.add_argument("--selections", type=int, help="of each bet; the simulator's mixture without it")
    parser.add_argument("--unknown-field", action="store_true", help="in each bet and its first selection")
    parser.add_argument("--first", type=int, default=0, help="number of the first message")
    parser.add_argument("--total", type=int, help="number of the message settled at --newest")
    parser.add_argument("--span", type=float, default=71 * 3600, help="seconds that all messages cover")
    parser.add_argument("--newest", type=float, help="Unix seconds; now without it")
    options = parser.parse_args()
    block = Block(options.selections, unknown_field=options.unknown_field)
    if options.rate:
        serve(paced(block, options.messages, options.rate))
        return
    feed = Feed(
        block,
        first=options.first,
        count=options.messages,
        total=options.total or options.first + options.messages,
        span=options.span,
        newest=options.newest or time.time(),
    )
    serve(as_fast_as_possible(feed, options.messages))


if __name__ == "__main__":
    main()

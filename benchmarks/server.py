"""A provider whose cost is negligible: it answers the handshake by hand and sends frames made before.

    python -m benchmarks.server --messages 200000            as fast as the client reads
    python -m benchmarks.server --messages 5000 --rate 500   on an absolute schedule; betIds say when

While it sends it reads nothing, so a client must not wait for answers to pings of the protocol. Behind the
last message the connection stays open, with a ping message each second. What it does it
tells on stdout, a JSON object a line: `listening` (the port), `first` and `last` (moments of
CLOCK_MONOTONIC in seconds, which all processes of a machine share) and `cpu_us` a message.
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
    """The answer to a request: 101 to a WebSocket handshake (RFC 6455, section 4.2.2), 426 to any other.

    Both say what time it is, `now` in Unix seconds: the bridge asks for that before it dials. No extension
    is agreed to.
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
    """Accept one connection after the other; each gets what `send` sends, then pings until it closes."""
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
    """One line on stdout."""
    print(json.dumps(facts), flush=True)


def as_fast_as_possible(feed: Feed, messages: int) -> Callable[[socket.socket], None]:
    """Send all of it, as fast as the client reads."""

    def send(connection: socket.socket) -> None:
        began = _cpu_seconds()
        tell(first=time.monotonic())
        for piece in feed:
            connection.sendall(piece)
        tell(last=time.monotonic(), cpu_us=round((_cpu_seconds() - began) * 1e6 / messages, 2))

    return send


def paced(block: Block, messages: int, rate: float) -> Callable[[socket.socket], None]:
    """Send message k at `start + k / rate`, whatever came before it; its betId says when it was due, in ns.

    A sender that is late sends at once what is due, so lateness counts as latency.
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
    """Send pings until the client closes, or says that it wants to."""
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
    parser.add_argument("--first", type=int, default=0, help="number of the first message")
    parser.add_argument("--total", type=int, help="number of the message settled at --newest")
    parser.add_argument("--span", type=float, default=71 * 3600, help="seconds that all messages cover")
    parser.add_argument("--newest", type=float, help="Unix seconds; now without it")
    options = parser.parse_args()
    block = Block(options.selections)
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

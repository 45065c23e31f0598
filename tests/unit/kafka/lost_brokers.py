"""A server that speaks as much of Kafka's protocol as strands a client of librdkafka (decision 0009).

Every other answer to the question for brokers lists none, as that of a broker does whose session with the
controller has run out.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Thread
from typing import ClassVar

METADATA, FIND_COORDINATOR, API_VERSIONS = 3, 10, 18
UNSUPPORTED_VERSION, COORDINATOR_NOT_AVAILABLE = 35, 15
TOPIC = "t"


class LostBrokers(ThreadingTCPServer):
    """The server, on a port of its own. Once it `is_sound`, all its answers list a broker."""

    daemon_threads = True
    supported: ClassVar = {METADATA: (1, 1), FIND_COORDINATOR: (0, 0), API_VERSIONS: (0, 0)}
    """Requests and their versions."""
    is_sound = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.port = self.server_address[1]
        self.joined = Event()
        """Set by a member of a group that looks for its coordinator."""
        self._numbers = count(1)
        Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def metadata(self, body: bytes) -> bytes:
        """An answer of version 1: brokers, controller and, if it is asked for, a topic of one partition."""
        leader = 1 if next(self._numbers) % 2 or self.is_sound else -1
        brokers = [broker(1, self.port)] if leader > 0 else []
        partition = struct.pack(">hii ii ii", 0, 0, leader, 1, 1, 1, 1)
        topic = struct.pack(">h", 0) + text(TOPIC) + struct.pack(">?i", False, 1) + partition
        topics = [topic] if struct.unpack(">i", body[:4])[0] else []  # -1 asks for all, 0 for none
        return array(brokers) + struct.pack(">i", leader) + array(topics)

    def answer(self, key: int, version: int, body: bytes) -> bytes:
        if key == METADATA:
            return self.metadata(body)
        if key == FIND_COORDINATOR:
            self.joined.set()
            return struct.pack(">hihi", COORDINATOR_NOT_AVAILABLE, -1, 0, -1)
        ranges = b"".join(struct.pack(">hhh", api, *versions) for api, versions in self.supported.items())
        return struct.pack(">hi", UNSUPPORTED_VERSION if version else 0, len(self.supported)) + ranges


class _Connection(StreamRequestHandler):
    server: LostBrokers

    def handle(self) -> None:
        with suppress(ConnectionError):
            while size := self.rfile.read(4):
                request = self.rfile.read(*struct.unpack(">i", size))
                key, version, correlation, name = struct.unpack(">hhih", request[:10])
                answer = struct.pack(">i", correlation)
                answer += self.server.answer(key, version, request[10 + max(0, name) :])
                self.wfile.write(struct.pack(">i", len(answer)) + answer)


def text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def array(items: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(items)) + b"".join(items)


def broker(number: int, port: int) -> bytes:
    """A broker of this machine, as version 1 of an answer lists it."""
    return struct.pack(">i", number) + text("127.0.0.1") + struct.pack(">ih", port, -1)

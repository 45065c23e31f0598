"""The limit: the least CPU that a message needs, as the sum of parts that are measured one by one.

Beside it, what the bridge needs in a catch-up of the same round. The parts: receive into one buffer and make
a bytes object of each message, parse it with orjson, encode a dict, hash the record, and produce it, with
librdkafka's threads and the commits. Nothing is checked, and nothing connects the parts.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Sequence
from urllib.parse import urlsplit

import orjson

from benchmarks.arena import Arena
from benchmarks.catchup import catch_up
from benchmarks.contenders import BRIDGE, CEILING, Contender
from benchmarks.figures import summary
from benchmarks.messages import BLOCK, Block
from benchmarks.micro import Step, each
from benchmarks.process import BenchmarkFailed
from benchmarks.rounds import Line, Options, divided, say
from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load
from bridge.dedup.deduplicator import fingerprint
from bridge.messages.parser import MessageParser

MESSAGES = 100_000
_BUFFER_BYTES = 256 * 1024
ALL = "all parts"


def run(arena: Arena, options: Options) -> Iterator[Line]:
    """Yield a line for each part, for their sum and for the bridge."""
    messages, rounds = options.messages or MESSAGES, options.rounds
    codec, parser, block = Codec(load("settled-bet"), READ_ONLY), MessageParser(), Block()
    bodies = block.bodies()
    bets = [bet for body in bodies if (bet := parser.parse(body).bet) is not None]
    records = [codec.encode(bet) for bet in bets]
    parts: dict[str, Step] = {
        "receive": lambda: _received(arena, messages, block.ends),
        "parse": each(bodies, orjson.loads),
        "encode": each(bets, codec.encode),
        "hash": each(records, fingerprint),
        "produce": lambda: _caught_up(arena, CEILING, messages),
    }
    found: list[dict[str, float]] = []
    for number in range(rounds):
        costs = {name: part() for name, part in parts.items()}
        found.append(costs | {ALL: sum(costs.values()), BRIDGE.name: _caught_up(arena, BRIDGE, messages)})
        say(f"limit, round {number + 1} of {rounds}")
    share = divided(found, found, ALL, BRIDGE.name)
    for name, cpu_us in summary(found).items():
        line = {"bench": "limit", "part": name, "messages": messages, "rounds": rounds, "cpu_us": cpu_us}
        yield line | ({"ratio_bridge": share} if name == ALL else {})


def _caught_up(arena: Arena, contender: Contender, messages: int) -> float:
    with arena.lane() as lane:
        return catch_up(lane, contender, messages)["cpu_us"]


def _received(arena: Arena, messages: int, ends: Sequence[int]) -> float:
    with arena.lane() as lane, lane.feed("--messages", messages) as (_, url):
        address = urlsplit(url)
        with socket.create_connection((address.hostname, address.port)) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nSec-WebSocket-Key: bench\r\n\r\n")
            answer = b""
            while not answer.endswith(b"\r\n\r\n"):
                answer += connection.recv(1)
            bytes_left = sum(ends[min(left, BLOCK) - 1] for left in range(messages, 0, -BLOCK))
            began = time.process_time()
            receive(connection, bytes_left, bytes_left // messages)
            return (time.process_time() - began) * 1e6 / messages


def receive(connection: socket.socket, bytes_left: int, message_bytes: int) -> int:
    """Receive into one buffer, and make a bytes object of each piece as long as a message.

    Returns the number of pieces. Raises BenchmarkFailed if the connection closes early.
    """
    buffer, pieces = memoryview(bytearray(_BUFFER_BYTES)), 0
    while bytes_left > 0:
        received = connection.recv_into(buffer)
        if not received:
            raise BenchmarkFailed(f"the connection has closed, {bytes_left} bytes too early")
        bytes_left -= received
        for begin in range(0, received, message_bytes):
            bytes(buffer[begin : min(begin + message_bytes, received)])
            pieces += 1
    return pieces

"""Reads the log of a partition as the broker stores it: batches, producers, ends of transactions.

No client shows this. A fetch with the isolation level `read_uncommitted` returns every batch, aborted and
open ones included, and the markers that commit or abort (Kafka's protocol, Fetch version 4; the layout of a
batch is in Kafka's documentation, "Record Batch"). Records are not decoded.
"""

from __future__ import annotations

import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing
from math import inf
from typing import NamedTuple

_SECONDS = 60.0
"""How long a leader may be missing."""
_BYTES = 1 << 20
_HEADER = struct.Struct(">qiibIhiqqqhii")
"""Offset, length, epoch of the leader, magic, CRC, attributes, last offset - first, first and largest
timestamp, producer's id and epoch, first sequence number, number of records."""
_LENGTH_AT = 12
"""Bytes of a batch that its length does not count."""
_TRANSACTIONAL, _CONTROL = 0x10, 0x20
_COMMIT = 1
COMMITTED = "committed"
"""The fate of a batch that its readers see."""
UNTRANSACTED = "written without a transaction"

Address = Callable[[], tuple[str, int]]
"""Returns host and port of the leader. Raises OSError while there is none."""


class Batch(NamedTuple):
    """Records that one producer wrote at once, and what became of them."""

    first: int
    last: int
    """Offsets."""
    records: int
    producer: str
    """Id and epoch."""
    fate: str
    """`COMMITTED`, `aborted`, or `UNTRANSACTED`."""
    ended_at: float
    """Unix seconds of the marker that ended the transaction."""
    written: float = inf
    """The largest timestamp of its records, Unix seconds."""
    fenced: bool = False
    """Whether a producer that came after it has ended the transaction."""


class _Raw(NamedTuple):
    first: int
    last: int
    records: int
    producer: int
    epoch: int
    is_transactional: bool
    commits: bool | None
    """None for records; whether a marker commits."""
    timestamp: float


def batches(leader: Address, topic: str, partition: int, end: int) -> Iterator[Batch]:
    """Yield the batches of records below an offset, in order; `end` is at most the last stable offset.

    So each transaction has ended, if need be by a marker behind it. Raises TimeoutError if no leader answers.
    """
    if not end:
        return
    waiting: deque[tuple[_Raw, list[Batch]]] = deque()
    """Batches, each with a place for the result."""
    open_: dict[int, list[tuple[_Raw, list[Batch]]]] = {}
    """Those of each producer whose transaction has not ended yet."""
    for raw in raw_batches(leader, topic, partition, 0):
        if raw.first >= end and not waiting:
            return
        if raw.commits is not None:
            for batch, result in open_.pop(raw.producer, []):
                result.append(_ended(batch, COMMITTED if raw.commits else "aborted", raw))
        elif raw.first >= end:
            continue
        elif raw.is_transactional:
            waiting.append((raw, []))
            open_.setdefault(raw.producer, []).append(waiting[-1])
        else:
            waiting.append((raw, [_ended(raw, UNTRANSACTED, raw)]))
        while waiting and waiting[0][1]:
            yield waiting.popleft()[1][0]
        if raw.last >= end - 1 and not waiting:
            return


def raw_batches(leader: Address, topic: str, partition: int, start: int) -> Iterator[_Raw]:
    """Yield the batches and markers from an offset on. Raises as `batches`, also if nothing more comes."""
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            with closing(socket.create_connection(leader(), timeout=10)) as connection:
                while True:
                    records = _fetch(connection, topic, partition, start)
                    for raw in _parsed(records):
                        if raw.last >= start:
                            yield raw
                            start = raw.last + 1
                            deadline = time.monotonic() + _SECONDS
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{topic}, partition {partition}: nothing at offset {start}")
        except OSError as error:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic}, partition {partition}: {error}") from error
            time.sleep(0.5)


def _ended(raw: _Raw, fate: str, by: _Raw) -> Batch:
    producer, fenced = f"{raw.producer}/{raw.epoch}", by.epoch > raw.epoch
    return Batch(raw.first, raw.last, raw.records, producer, fate, by.timestamp, raw.timestamp, fenced)


def _fetch(connection: socket.socket, topic: str, partition: int, offset: int) -> bytes:
    """Return the batches at an offset; the last one may be cut off. Raises OSError."""
    name = topic.encode()
    body = struct.pack(">iiiib", -1, 500, 1, _BYTES, 0) + struct.pack(f">ih{len(name)}s", 1, len(name), name)
    body += struct.pack(">iiqi", 1, partition, offset, _BYTES)
    request = struct.pack(">hhih", 1, 4, 0, -1) + body  # Fetch 4, without a client id
    connection.sendall(struct.pack(">i", len(request)) + request)
    answer = _receive(connection, struct.unpack(">i", _receive(connection, 4))[0])
    # Correlation id, throttle time, one topic, its name, one partition.
    at = 4 + 4 + 4 + 2 + len(name) + 4
    _, error, _, _, aborted = struct.unpack_from(">ihqqi", answer, at)
    if error:
        raise OSError(f"the broker answers with error {error}")
    at += 4 + 2 + 8 + 8 + 4 + 16 * max(0, aborted)
    (size,) = struct.unpack_from(">i", answer, at)
    return answer[at + 4 : at + 4 + max(0, size)]


def _receive(connection: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        part = connection.recv(min(1 << 18, size - len(found)))
        if not part:
            raise OSError("the broker closed the connection")
        found += part
    return bytes(found)


def _parsed(records: bytes) -> Iterator[_Raw]:
    at = 0
    while at + _HEADER.size <= len(records):
        first, length, _, _, _, attributes, span, _, largest, producer, epoch, _, count = _HEADER.unpack_from(
            records, at
        )
        if at + _LENGTH_AT + length > len(records):
            return
        commits = None
        if attributes & _CONTROL:
            commits = _marker(records, at + _HEADER.size) == _COMMIT
        transactional = bool(attributes & _TRANSACTIONAL)
        yield _Raw(first, first + span, count, producer, epoch, transactional, commits, largest / 1000)
        at += _LENGTH_AT + length


def _marker(records: bytes, at: int) -> int:
    """Return the kind of marker: behind length, attributes, two deltas and the length of the key."""
    for field in ("length", "attributes", "timestamp", "offset", "key length"):
        while field != "attributes" and records[at] & 0x80:
            at += 1
        at += 1
    _, kind = struct.unpack_from(">hh", records, at)
    return int(kind)

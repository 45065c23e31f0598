"""A provider in virtual time, and a client that always reads."""

from __future__ import annotations

import orjson

from bridge_sandbox.provider.feed import Connection, Policy, Provider
from bridge_sandbox.provider.rate_limits import Limits
from bridge_sandbox.provider.stream import Stream
from tests.unit.sandbox.provider.conftest import ORIGIN

NOW = ORIGIN + 100


def provider(stream: Stream, policy: Policy | None = None, scale: float = 1) -> Provider:
    return Provider(stream, Limits(scale), policy)


def let_in(feed: Provider, now: float, revision: int | None) -> Connection:
    answer = feed.connect(now, revision)
    assert isinstance(answer, Connection), answer
    return answer


def received(connection: Connection, start: float, end: float, limit: int = 100) -> list[bytes]:
    """All that a client gets from `start` to `end` when it always reads, pings included."""
    got: list[bytes] = []
    now = start
    while now <= end and connection.is_active:
        got += connection.frames(now, limit)
        now = max(now, connection.due)
    return got


def bets(frames: list[bytes]) -> list[bytes]:
    return [frame for frame in frames if b'"data":' in frame]


def pings(frames: list[bytes]) -> list[str]:
    return [message["pingId"] for message in map(orjson.loads, frames) if "data" not in message]

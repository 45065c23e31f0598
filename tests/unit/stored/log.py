"""A topic in virtual time, read by clients that may be slow, deaf or broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from math import ceil
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from bridge.clock import Instant
from bridge.kafka import admin, clients, reader
from bridge.kafka.batch import Header
from bridge.kafka.errors import KafkaUnavailable

NEVER = float("inf")
PATIENCE = 1e6
"""Seconds after which no reader is still to be waiting for what never comes: millions of tries."""


def never() -> bool:
    """Not give up."""
    return False


def nobody(_: str) -> None:
    """Hear no status."""


@dataclass
class Log:
    """Partitions with a few records each, one a second from 1970 on, and their readers."""

    there: bool = True
    id: str = "an id"
    written: list[int] = field(default_factory=lambda: [5, 5])
    """Behind the last record."""
    stable: list[int] = field(default_factory=lambda: [5, 5])
    """What comes behind is hidden by an open transaction."""
    unseen: range = range(0)
    """Offsets of markers and of what was aborted."""
    content: bytes | Callable[[int], bytes | None] | None = None
    """Of each record, or what gives it by its offset."""
    keys: list[bytes] = field(default_factory=list)
    """Of the records by offset; without them, each has its place."""
    marks: dict[int, list[Header]] = field(default_factory=dict)
    """Headers, by offset."""
    leaderless: set[int] = field(default_factory=set)
    """Partitions of which nothing comes, not even their end."""
    breaks: int = 0
    """How often a client breaks down before the third record of a partition."""
    away: range = range(0)
    """Seconds in which no broker answers a question."""
    waits: list[Iterable[float]] = field(default_factory=list)
    """Of each client, one after the other: seconds before the first that comes, the second, and so on."""
    connected: Callable[[int], None] = lambda _: None
    """Called with the number of each new client, from 1."""
    prompt: list[bool] = field(default_factory=list)
    """Of each client."""
    longest_wait: float = 0.0
    """The longest time-out given to `consume`: the real one takes that long where few records are left."""
    given: list[tuple[int, int]] = field(default_factory=list)
    """The places of all records that came to a client."""
    now: float = 0.0

    def installed(self, monkeypatch: pytest.MonkeyPatch) -> Log:
        """Use the log in place of Kafka."""
        monkeypatch.setattr(clients, "admin", lambda _: Admin())
        monkeypatch.setattr(clients, "reader", self._reader)
        monkeypatch.setattr(admin, "topic_id", self._topic_id)
        monkeypatch.setattr(admin, "partition_count", self._partition_count)
        monkeypatch.setattr(admin, "end_offsets", self._end_offsets)
        monkeypatch.setattr(admin, "offsets_since", self._offsets_since)
        monkeypatch.setattr(reader, "RETRY_SECONDS", 0)
        monkeypatch.setattr(reader, "explain_hidden", lambda *_: "")
        return self

    def clock(self) -> Instant:
        """Return the virtual time, which passes while a client waits."""
        return Instant(self.now, self.now)

    def _reader(self, *_: Any, name: str, prompt: bool = False, committed: bool = True) -> Client:
        self.prompt.append(prompt)
        self.connected(len(self.prompt))
        waits = self.waits[len(self.prompt) - 1 :][:1]
        return Client(self, chain(*waits, repeat(0.0)))

    def _topic_id(self, client: Admin, *_: Any) -> str | None:
        client.knows_the_brokers = True
        return self.id if self.there else None

    def _partition_count(self, client: Admin, _: str) -> int:
        client.knows_the_brokers = True
        return len(self.written)

    def _end_offsets(self, client: Admin, *_: Any, visible: bool = False) -> list[int]:
        assert client.knows_the_brokers, "its first question may be lost (decision 0009)"
        if int(self.now) in self.away:
            raise KafkaUnavailable("no broker answered")
        return list(self.stable if visible else self.written)

    def _offsets_since(self, _: Admin, __: str, moment: float, ends: list[int]) -> list[int]:
        offsets = (min(ceil(moment), stable) for stable in self.stable)
        return [min(offset, end) for offset, end in zip(offsets, ends, strict=True)]


class Admin:
    knows_the_brokers = False


class Client:
    """The part of a consumer that readers use. Like the real one it may return more than was requested."""

    stranded = ""

    def __init__(self, log: Log, waits: Iterator[float]) -> None:
        self._log = log
        self._waits = waits
        self._met = ""
        """The topic whose leaders it knows."""

    def list_topics(self, topic: str, timeout: float) -> None:
        self._met = topic

    def assign(self, places: list[TopicPartition]) -> None:
        assert self._met == places[0].topic, "its first question may be lost (decision 0009)"
        # As a consumer does where the log is shorter than its place.
        self._next = {
            p.partition: p.offset if p.offset <= self._log.written[p.partition] else 0 for p in places
        }
        self._at_end: set[int] = set()
        self._topic = places[0].topic
        self._ready_at = self._log.now + next(self._waits)

    def unassign(self) -> None:
        self._next = {}

    def close(self) -> None:
        pass

    def consume(self, num_messages: int, timeout: float) -> list[Message]:
        """Return a record of each partition, or its end once."""
        log = self._log
        log.longest_wait = max(log.longest_wait, timeout)
        if log.now >= self._ready_at:
            messages = [message for partition in self._next for message in self._one(partition)]
            if messages:
                self._ready_at = log.now + next(self._waits)
                return messages
        log.now += timeout
        assert log.now < PATIENCE, "nobody gives up on this client"
        return []

    def _one(self, partition: int) -> list[Message]:
        log, offset = self._log, self._next[partition]
        if partition in log.leaderless:
            return []
        while offset in log.unseen and offset < log.stable[partition]:
            offset += 1
        if log.breaks and offset == 2:
            log.breaks -= 1
            raise KafkaException(KafkaError(KafkaError._TRANSPORT, "on purpose"))
        if offset < log.stable[partition]:
            self._next[partition] = offset + 1
            log.given.append((partition, offset))
            content = log.content(offset) if callable(log.content) else log.content
            key = log.keys[offset] if log.keys else b"%d-%d" % (partition, offset)
            headers, at = log.marks.get(offset, []), (1, offset * 1000)
            return [Message(self._topic, partition, offset, key, content, headers, timestamp=at)]
        if partition not in self._at_end:
            self._at_end.add(partition)
            end = KafkaError(KafkaError._PARTITION_EOF)
            return [Message(self._topic, partition, offset, error=end)]
        return []

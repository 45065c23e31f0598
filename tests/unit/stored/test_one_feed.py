"""Of the feeds on one prefix, one runs: decided from the topic of checkpoints alone, at any moment."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import FeedSettings, Settings
from bridge.errors import TopologyError
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, State
from bridge.records.counters import Counters
from bridge.stored import checkpoint_reader
from bridge.stored.checkpoint_reader import RETIRED, CheckpointReader
from tests.unit.stored.log import Log, never, nobody

SCHEMA = load("feed-checkpoint")
CODEC = Codec(SCHEMA, 8)
UNREADABLE = b"\0\0\0\0\x08?"
"""In wire format."""


@dataclass
class Prefix:
    log: Log
    values: list[bytes | None] = field(default_factory=list)

    def write(self, feed: str, value: bytes | int | None, successor: str = "") -> None:
        """Append a record; a number stands for a checkpoint that has received as much."""
        if isinstance(value, int):
            counters = Counters(received=value, pings=value)
            checkpoint = Checkpoint(feed, 1, State.LIVE, (), counters, 1.0, "me")
            value = CODEC.encode(checkpoint.to_avro())
        if successor:
            self.log.marks[len(self.values)] = [(RETIRED, successor.encode())]
        self.values.append(value)
        self.log.keys.append(feed.encode())
        self.log.written = self.log.stable = [len(self.values)]

    def received(self, feed: str) -> int:
        found = [v for v, key in zip(self.values, self.log.keys, strict=True) if key == feed.encode()]
        if not found or found[-1] is None:
            return 0
        return Checkpoint.from_avro(CODEC.decode(found[-1])).counters.received

    def refusal(self, feed: str, *, ignoring: str = "") -> str:
        """Return why a feed is refused, "" if it goes on."""
        settings = Settings(feed=FeedSettings(name=feed))
        reader = CheckpointReader(settings, topics.declare(settings), lambda _: SCHEMA, self.log.clock)
        try:
            reader.refuse_other_feeds(never, nobody, ignoring=ignoring)
        except TopologyError as error:
            return str(error)
        return ""


@pytest.fixture
def prefix(monkeypatch: pytest.MonkeyPatch) -> Prefix:
    log = Log(written=[0], stable=[0])
    prefix = Prefix(log.installed(monkeypatch))
    log.content = lambda offset: prefix.values[offset]
    return prefix


A, B, C = "one", "two", "three"


@pytest.mark.parametrize(
    ("written", "goes_on"),
    [
        ([], {A, B, C}),
        ([(A, 0)], {A}),
        ([(A, 0), (B, 0)], {A}),  # they began together: the first one
        ([(A, 0), (B, 0), (A, 0)], {A}),
        ([(A, 0), (B, 0), (A, 1)], {A}),
        ([(A, 1), (B, 0)], {A}),  # what the loser has left holds up nobody
        ([(A, 0), (B, 1)], {B}),
        ([(A, 1), (B, 1)], {B}),  # renamed by an earlier version: the last one
        ([(A, 1), (B, 1), (A, 2)], {A}),
        ([(A, 0), (A, None)], {A, B, C}),
        ([(A, 0), (B, 0), (A, None)], {B}),
        ([(A, 0), (B, 0), (A, None), (A, 0)], {B}),
    ],
)
def test_one_goes_on(prefix: Prefix, written: list[tuple[str, int | None]], goes_on: set[str]) -> None:
    for feed, value in written:
        prefix.write(feed, value)
    assert {feed for feed in (A, B, C) if not prefix.refusal(feed)} == goes_on


def test_the_refusal_names_the_other_feed_and_the_fix(prefix: Prefix) -> None:
    prefix.write(A, 1)
    refusal = prefix.refusal(B)
    for words in (f"the feed {A} uses the topics", "BRIDGE_TOPICS__PREFIX", f"`bridge checkpoint retire {A}"):
        assert words in refusal


def test_a_key_that_is_no_name_of_a_feed_is_quoted(prefix: Prefix) -> None:
    prefix.write("x; reboot", 1)
    assert "`bridge checkpoint retire 'x; reboot'`" in prefix.refusal(A)


def test_a_feed_with_an_impossible_checkpoint_may_have_received_something(prefix: Prefix) -> None:
    counters = Counters(received=-1)
    impossible = Checkpoint(A, 1, State.LIVE, (), counters, 1.0, "me")
    prefix.write(A, CODEC.encode(impossible.to_avro()))
    reason = "not a FeedCheckpoint: counters.received: -1 is impossible"
    assert reason in prefix.refusal(B)
    assert "so another feed may use the topics" in prefix.refusal(B)
    prefix.write(A, CODEC.encode(impossible.to_avro()))
    assert re.search(rf"partition 0.* 1\b.*{reason}", prefix.refusal(A)), prefix.refusal(A)


def test_a_third_feed_must_be_settled_before_one_is_retired(prefix: Prefix) -> None:
    for feed in (A, B, C):
        prefix.write(feed, 1)
    refusal = prefix.refusal(A, ignoring=B)
    assert f"Before {A} is retired for {B}" in refusal
    assert f"`bridge checkpoint retire {C}` first" in refusal
    assert "BRIDGE_TOPICS__PREFIX" not in refusal


def test_foreign_records_are_no_feed(prefix: Prefix) -> None:
    prefix.write(A, 1)
    prefix.write(B, b"{}")
    assert not prefix.refusal(A)

    assert prefix.refusal(C)
    prefix.write(A, b"{}")
    assert f"the feed {A} uses" in prefix.refusal(C), "what is foreign hides the record before it"


@pytest.mark.parametrize(
    ("own", "refused"), [([], True), ([(A, 1)], True), ([(A, 0)], True), ([(B, None), (A, 1)], False)]
)
def test_a_checkpoint_that_cannot_be_read_may_be_that_of_another_feed(
    prefix: Prefix, own: list[tuple[str, int | None]], refused: bool
) -> None:
    for feed, value in own:
        prefix.write(feed, UNREADABLE if value is None else value)
    if refused:
        prefix.write(B, UNREADABLE)
    refusal = prefix.refusal(A)
    assert bool(refusal) == refused
    if refused:
        for words in (f"partition 0 offset {len(own)} cannot be read", f"its key is {B}", "registry.url"):
            assert words in refusal


def test_a_retired_feed_is_refused_wherever_the_one_behind_it_wrote(
    prefix: Prefix, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checkpoint_reader, "LOOKBACK", 2)
    prefix.write(B, 1)
    for _ in range(3):
        prefix.write(A, 1)
    prefix.write(A, 1, successor=B)
    assert f"the feed {B} uses the topics" in prefix.refusal(A)
    assert not prefix.refusal(B)


@pytest.mark.parametrize("seed", range(20))
def test_two_feeds_never_have_a_connection_at_the_same_time(prefix: Prefix, seed: int) -> None:
    at_random = random.Random(seed)
    processes = {feed: Process(feed, prefix) for feed in (A, B, C)}
    for _ in range(40):
        process = at_random.choice([*processes.values()])
        at_random.choice(process.steps())()
        connected = [p.feed for p in processes.values() if p.doing == "connected"]
        assert len(connected) <= 1, prefix.log.keys
    if prefix.values:
        assert len([feed for feed in processes if not prefix.refusal(feed)]) == 1


@dataclass
class Process:
    """A bridge of a feed, by its steps between which it may die."""

    feed: str
    prefix: Prefix
    doing: str = "nothing"
    received: int = 0

    def steps(self) -> list[Callable[[], None]]:
        match self.doing:
            case "nothing":
                return [self.start]
            case "started":
                return [self.commit, self.attempt, self.attempt, self.die]
            case "committed its attempt":
                return [self.connect, self.connect, self.die]
            case _:
                return [self.receive, self.disconnect, self.die]

    def start(self) -> None:
        self.received = self.prefix.received(self.feed)
        self.doing = "nothing" if self.prefix.refusal(self.feed) else "started"

    def commit(self) -> None:
        self.prefix.write(self.feed, self.received)

    def attempt(self) -> None:
        self.commit()
        self.doing = "committed its attempt"

    def connect(self) -> None:
        refused = not self.received and self.prefix.refusal(self.feed)
        self.doing = "nothing" if refused else "connected"

    def receive(self) -> None:
        self.received += 1
        self.commit()

    def disconnect(self) -> None:
        self.doing = "started"

    def die(self) -> None:
        self.doing = "nothing"

"""Who is let in and what is sent, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge_sandbox.provider.feed import Attempt, Policy, Refusal
from bridge_sandbox.provider.rate_limits import Kind, Rule
from bridge_sandbox.provider.stream import Log, Stream, StreamSettings
from bridge_sandbox.provider.world.entities import World
from tests.streams import CachedStream
from tests.unit.sandbox.provider.conftest import ORIGIN
from tests.unit.sandbox.provider.consumer import NOW, bets, let_in, pings, provider, received


@settings(deadline=None, max_examples=40)
@given(ago=st.integers(-5, 99), lasts=st.floats(0, 10), limit=st.integers(1, 40), inject=st.booleans())
def test_replay_and_live_leave_no_hole_and_double_nothing(
    world: World, ago: int, lasts: float, limit: int, inject: bool
) -> None:
    feed = provider(CachedStream(world, ORIGIN, StreamSettings(rate=3)))
    if inject:
        feed.log.inject(b'{"data":"old"}', NOW - 50)
    revision = int(NOW) - ago
    connection = let_in(feed, NOW, revision)
    if inject:
        feed.log.inject(b'{"data":"new"}', NOW)
    got = bets(received(connection, NOW, NOW + lasts, limit))
    truth = [m.body for m in feed.log.read(ORIGIN, NOW + lasts) if m.at >= min(revision, NOW)]
    assert got == truth


@pytest.mark.parametrize("revision", [None, 0])
def test_without_a_revision_only_what_comes_is_sent(stream: Stream, revision: int | None) -> None:
    got = bets(received(let_in(provider(stream), NOW, revision), NOW, NOW + 1))
    assert got == [message.body for message in Log(stream).read(NOW, NOW + 1)]


def test_a_revision_older_than_the_memory_is_replayed_from_its_edge(stream: Stream) -> None:
    feed = provider(stream, scale=10_000)
    got = bets(received(let_in(feed, NOW, int(ORIGIN)), NOW, NOW, limit=10_000))
    assert got[0] == stream.message(stream.first_slot(NOW - 25.92)).body
    assert feed.attempts[0].kind == "initial"


@pytest.mark.parametrize("second", ["refuse", "replace"])
def test_the_log_says_whose_connection_was_in_the_way(stream: Stream, second: Any) -> None:
    feed = provider(stream, Policy(second=second))
    feed.connect(NOW, int(NOW), client="a")
    feed.connect(NOW + 1, int(NOW), client="b")
    assert [(it.client, it.holder) for it in feed.attempts] == [("a", ""), ("b", "a")]
    assert [it.holder for it in feed.breaches] == (["a"] if second == "refuse" else [])
    for i in range(4):
        feed.connect(NOW + 2 + i, int(NOW), client="a")
    assert (feed.breaches[-1].rule, feed.breaches[-1].holder) == ("proper", "")


@pytest.mark.parametrize(
    ("revision", "status", "kind", "rule"),
    [
        (int(NOW), 401, "small", "proper"),
        (int(NOW) - 7200, 401, "large", "proper"),
        (None, 400, "initial", "initial"),
    ],
)
def test_a_handshake_that_is_denied_counts_as_what_it_asked_for(
    stream: Stream, revision: int | None, status: int, kind: Kind, rule: Rule
) -> None:
    feed, denied = provider(stream), Refusal(status, "no")
    assert [feed.connect(NOW + i, revision, denied) for i in range(6)] == [denied] * 6
    assert feed.attempts[0] == Attempt(NOW, revision, kind, status, "no", None)
    assert feed.breaches[0].rule == rule
    assert isinstance(feed.connect(NOW + 6, revision), Refusal)


def test_a_refusal_can_be_a_close_code(stream: Stream) -> None:
    feed = provider(stream, Policy(refusal="close", refusal_close_code=4029))
    first = let_in(feed, NOW, int(NOW))
    feed.connect(NOW + 1, int(NOW))
    feed.disconnect(first)
    for i in (2, 3, 4):
        feed.disconnect(let_in(feed, NOW + i, int(NOW)))
    answer = feed.connect(NOW + 5, int(NOW))
    assert isinstance(answer, Refusal)
    assert answer.close_code == 4029
    logged = [(attempt.status, attempt.close_code, attempt.since is None) for attempt in feed.attempts]
    let = (101, None, False)
    assert logged == [let, (101, 4029, True), let, let, let, (101, 4029, True)]


def test_pings_come_on_time_and_differ(stream: Stream) -> None:
    frames = received(let_in(provider(stream, Policy(replay_rate=200)), NOW, int(NOW) - 60), NOW, NOW + 26)
    ids = pings(frames)
    assert len(ids) == len(set(ids)) == 5
    assert pings(frames[:1100]) == ids[:1]


def test_pings_go_on_after_the_stream_has_ended(stream: Stream) -> None:
    feed = provider(stream)
    feed.log.end = NOW
    connection = let_in(feed, NOW + 1, int(NOW))
    frames = received(connection, NOW + 1, NOW + 21.5)
    assert bets(frames) == [stream.message(20_000).body]
    assert len(pings(frames)) == 4


def test_replay_keeps_its_pace_and_live_does_not(stream: Stream) -> None:
    connection = let_in(provider(stream, Policy(replay_rate=400)), NOW, int(NOW) - 10)
    assert len(bets(received(connection, NOW, NOW + 5))) == pytest.approx(2000, abs=2)
    assert len(bets(received(connection, NOW + 5.01, NOW + 20))) == pytest.approx(4000, abs=4)
    live = let_in(provider(stream, Policy(replay_rate=50)), NOW, None)
    assert len(bets(received(live, NOW, NOW + 5))) == 1001


def test_a_replay_can_begin_earlier_than_requested(stream: Stream) -> None:
    feed = provider(stream, Policy(replay_early_seconds=20))
    got = bets(received(let_in(feed, NOW, int(NOW) - 5), NOW, NOW, limit=10_000))
    assert got == [message.body for message in Log(stream).read(int(NOW) - 25, NOW)]


def test_frames_are_bounded_by_their_size(stream: Stream) -> None:
    connection = let_in(provider(stream), NOW, int(NOW) - 1)
    sizes = [len(message.body) for message in Log(stream).read(NOW - 1, NOW - 0.001)]
    assert [len(frame) for frame in connection.frames(NOW, 100, sum(sizes[:3]))] == sizes[:3]
    assert [len(frame) for frame in connection.frames(NOW, 100, 1)] == sizes[3:4]

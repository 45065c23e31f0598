"""Faults of the simulated provider, in virtual time."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from math import inf

import orjson
import pytest

from bridge_sandbox.provider.faults import (
    Clear,
    ClockJump,
    Drop,
    Fault,
    Forget,
    Garbage,
    HalfOpen,
    Pause,
    Refuse,
    Slow,
    Stall,
    Surge,
)
from bridge_sandbox.provider.feed import Attempt, Connection, Farewell, Policy, Provider, Refusal
from bridge_sandbox.provider.stream import StreamSettings
from bridge_sandbox.provider.world.entities import World
from tests.streams import CachedStream
from tests.unit.sandbox.provider.conftest import ORIGIN
from tests.unit.sandbox.provider.consumer import NOW, bets, let_in, pings, provider, received


@pytest.fixture
def feed(world: World) -> Provider:
    """Of its own, as its clock may step; ten messages a second."""
    return provider(CachedStream(world, ORIGIN, StreamSettings(rate=10, max_out_of_orderness_seconds=0)))


def truth(feed: Provider, since: float, until: float) -> list[bytes]:
    return [message.body for message in feed.log.read(since, until)]


@lru_cache(maxsize=10_000)
def settled(body: bytes) -> float:
    """The settlementTime of a message whose time has a zone, in seconds after NOW."""
    moment = datetime.fromisoformat(orjson.loads(body)["data"]["settlementTime"])
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - NOW


@pytest.mark.parametrize("abort", [False, True])
def test_a_dropped_connection_is_over(feed: Provider, abort: bool) -> None:
    first = let_in(feed, NOW, int(NOW))
    got = received(first, NOW, NOW + 1)
    feed.inflict(Drop(code=1012, abort=abort), NOW + 1)
    assert first.farewell == Farewell(1012, "dropped", abort)
    assert (first.is_active, first.due) == (False, -inf)
    second = let_in(feed, NOW + 5, int(NOW) + 1)
    got += received(second, NOW + 5, NOW + 5)[1:]  # the second of the revision has come before
    assert bets(got) == truth(feed, NOW, NOW + 5)


@pytest.mark.parametrize("fault", [Stall(seconds=30), HalfOpen(seconds=30)])
def test_silence_ends_when_its_time_is_up(feed: Provider, fault: Fault) -> None:
    connection = let_in(feed, NOW, int(NOW))
    got = received(connection, NOW, NOW + 1)
    feed.inflict(fault, NOW + 1)
    assert connection.frames(NOW + 30.9, 10**6) == []
    assert connection.due == NOW + 31
    late = received(connection, NOW + 31, NOW + 31, limit=1000)
    assert bets(got + late) == truth(feed, NOW, NOW + 31)
    assert len(pings(late)) == 1


@pytest.mark.parametrize("fault", [Stall(), HalfOpen(), Pause(), Slow(per_second=0.001)])
def test_a_fault_without_an_end_is_cleared(feed: Provider, fault: Fault) -> None:
    connection = let_in(feed, NOW, int(NOW))
    feed.inflict(fault, NOW)
    feed.inflict(Refuse(), NOW)
    assert len(bets(received(connection, NOW, NOW + 90))) <= 1
    assert len(feed.lasting(NOW + 90)) == 2
    feed.inflict(Clear(), NOW + 90)
    assert feed.lasting(NOW + 90) == {}
    received(connection, NOW + 90, NOW + 90, limit=1000)
    assert connection.sent == len(truth(feed, NOW, NOW + 90))
    feed.disconnect(connection)
    assert isinstance(feed.connect(NOW + 90, None), Connection)


def test_a_stall_is_of_the_provider_and_half_open_of_a_connection(feed: Provider) -> None:
    first = let_in(feed, NOW, int(NOW))
    feed.inflict(HalfOpen(), NOW)
    assert list(feed.lasting(NOW)) == ["half-open"]
    feed.disconnect(first)
    second = let_in(feed, NOW + 1, int(NOW))
    assert len(received(second, NOW + 1, NOW + 1)) == 11
    feed.inflict(Stall(), NOW + 1)
    feed.disconnect(second)
    assert received(let_in(feed, NOW + 2, int(NOW)), NOW + 2, NOW + 20) == []


def test_a_pause_in_the_middle_of_a_replay(world: World) -> None:
    feed = provider(CachedStream(world, ORIGIN, StreamSettings(rate=10)), Policy(replay_rate=100))
    connection = let_in(feed, NOW, int(ORIGIN))
    before = received(connection, NOW, NOW + 1)
    feed.inflict(Pause(seconds=60), NOW + 1)
    paused = received(connection, NOW + 1, NOW + 60)
    assert (len(bets(paused)), len(pings(paused))) == (0, 12)
    after = received(connection, NOW + 61, NOW + 160)
    assert bets(before + after) == truth(feed, ORIGIN, NOW + 160)
    assert connection.is_replaying is False


def test_a_slow_provider_sends_no_burst_after_a_stall(feed: Provider) -> None:
    connection = let_in(feed, NOW, int(ORIGIN))
    feed.inflict(Slow(per_second=4), NOW)
    feed.inflict(Stall(seconds=60), NOW)
    assert len(bets(received(connection, NOW, NOW + 69.99))) == pytest.approx(40, abs=1)


def test_a_late_driver_keeps_the_pace(feed: Provider) -> None:
    connection = let_in(feed, NOW, int(ORIGIN))
    feed.inflict(Slow(per_second=100), NOW)
    got = [frame for tick in range(100) for frame in connection.frames(NOW + tick * 0.03, 100)]
    assert len(bets(got)) == pytest.approx(298, abs=2)


@pytest.mark.parametrize("cleared", [False, True])
def test_a_surge_is_published_densely_and_ends(feed: Provider, cleared: bool) -> None:
    live = let_in(feed, NOW, int(NOW))
    feed.inflict(Surge(per_second=1000, seconds=None if cleared else 2), NOW + 1)
    during = received(live, NOW, NOW + 3)
    assert feed.lasting(NOW + 2) == {"surge": inf if cleared else NOW + 3}
    if cleared:
        feed.inflict(Clear(), NOW + 3)
    after = received(live, NOW + 3.0001, NOW + 5)
    assert len(truth(feed, NOW, NOW + 1)) == 11
    assert 2000 <= len(truth(feed, NOW + 1.0001, NOW + 3)) <= 2001
    assert 19 <= len(truth(feed, NOW + 3.0001, NOW + 5)) <= 21
    assert bets(during + after) == truth(feed, NOW, NOW + 5)
    feed.disconnect(live)
    replay = let_in(feed, NOW + 5, int(NOW))
    assert bets(received(replay, NOW + 5, NOW + 5)) == bets(during + after)


def test_garbage_is_part_of_the_truth(feed: Provider) -> None:
    connection = let_in(feed, NOW, int(NOW) + 1)
    feed.inflict(Garbage(count=9), NOW + 0.55)
    feed.inflict(Garbage(count=9), NOW + 0.6)
    feed.inflict(Garbage(count=2, body='{"data":"å"}'), NOW + 0.6)
    got = received(connection, NOW, NOW + 1)
    garbage = [message for message in feed.log.read(ORIGIN, NOW + 1) if message.bet_id is None]
    assert [message.seq for message in garbage] == [-1 - n for n in range(20)]
    bodies = [message.body for message in garbage]
    assert set(bodies) <= set(got)
    assert len(set(bodies[:18])) == 18
    assert bodies[18:] == ['{"data":"å"}'.encode()] * 2
    feed.disconnect(connection)
    again = received(let_in(feed, NOW + 1, int(NOW)), NOW + 1, NOW + 1)
    assert [frame for frame in again if frame in set(bodies)] == bodies


def test_the_next_handshakes_are_refused_or_those_of_a_while(feed: Provider) -> None:
    feed.inflict(Refuse(count=9, status=502), NOW)
    feed.connect(NOW, int(NOW))
    feed.inflict(Refuse(count=2, status=503), NOW)
    answers = [feed.connect(NOW + i, int(NOW)) for i in range(3)]
    assert answers[:2] == [Refusal(503, "refused by a fault")] * 2
    assert isinstance(answers[2], Connection)
    assert [attempt.status for attempt in feed.attempts] == [502, 503, 503, 101]
    feed.disconnect(answers[2])
    feed.inflict(Refuse(seconds=10, count=9, close_code=4000), NOW + 300)
    answer = feed.connect(NOW + 309.9, int(NOW))
    assert isinstance(answer, Refusal)
    assert answer.close_code == 4000
    assert feed.attempts[-1] == Attempt(NOW + 309.9, int(NOW), "small", 101, answer.reason, None, 4000)
    assert isinstance(feed.connect(NOW + 310, int(NOW)), Connection)


@pytest.mark.parametrize("by", [45.0, -45.0])
def test_a_clock_jump_shows_in_what_is_published_from_then_on(feed: Provider, by: float) -> None:
    before = truth(feed, NOW - 1, NOW)
    feed.inflict(ClockJump(by=by), NOW)
    assert truth(feed, NOW - 1, NOW) == before
    after = truth(feed, NOW + 0.01, NOW + 2)
    assert [settled(body) for body in after] == pytest.approx([by + 0.1 * n for n in range(1, 21)], abs=0.01)
    messages = list(feed.log.read(NOW - 1, NOW + 2))
    assert [message.at for message in messages] == sorted(message.at for message in messages)


@pytest.mark.parametrize("by", [45.0, -45.0])
@pytest.mark.parametrize("revision", [-60, -20, 0, 20, 60])
def test_a_revision_is_a_reading_of_the_clock(feed: Provider, by: float, revision: int) -> None:
    feed.inflict(ClockJump(by=by), NOW)
    got = bets(received(let_in(feed, NOW + 200, int(NOW) + revision), NOW + 200, NOW + 200))
    carried = [body for body in truth(feed, ORIGIN, NOW + 200) if settled(body) >= revision - 0.01]
    assert got[0] in carried[:2]
    assert set(carried[1:]) <= set(got)


def test_the_clock_decides_how_old_a_revision_is(feed: Provider) -> None:
    feed.inflict(ClockJump(by=7200), NOW)
    feed.connect(NOW + 1, int(NOW))
    assert feed.attempts[-1].kind == "large"


@pytest.mark.parametrize(
    ("before", "since"), [(None, NOW - 2), (NOW - 30, NOW - 30), (NOW - 60, NOW - 60), (NOW - 90, NOW - 80)]
)
def test_what_was_forgotten_is_not_replayed(feed: Provider, before: float | None, since: float) -> None:
    feed.inflict(Forget(before=before), NOW - 2)
    connection = let_in(feed, NOW, int(NOW) - 80)
    assert bets(received(connection, NOW, NOW)) == truth(feed, since, NOW)
    assert feed.attempts[-1].since == since
    assert len(list(feed.log.read(ORIGIN, NOW))) == 1001


def test_a_denied_handshake_uses_up_no_fault(feed: Provider) -> None:
    feed.inflict(Refuse(count=1), NOW)
    answers = [feed.connect(NOW, int(NOW), Refusal(401, "no")), feed.connect(NOW, int(NOW))]
    assert [answer.status for answer in answers if isinstance(answer, Refusal)] == [401, 503]

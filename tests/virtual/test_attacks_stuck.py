"""Found by attack: the process ended, the position stood still, or a gap was declared without a loss."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress

import pytest

from bridge.config import FeedSettings
from bridge.errors import FeedLost, GapError, SettingsError
from bridge.sandbox.provider.faults import Drop, Garbage, Pause
from bridge.sandbox.provider.feed import Policy
from bridge.service.interfaces import GiveUp
from bridge.state.checkpoint import State
from bridge.state.deduplicator import Deduplicator
from bridge.state.gap import Cause
from tests.virtual.desk import Desk, with_desk
from tests.virtual.world import DAY, EPOCH, HOUR, World, in_world, play, settled


# No clock takes it down. `Connector._look_back` may ask for the time a second time after `_take_back` (what
# is certain is older than the edge by then). `Checkpoint.follows` allows the way back only while the old
# position is later than `updated_at`.
@with_desk(revision=EPOCH + 37, connect_timeout_seconds=30.0)
async def test_a_reset_is_committed_however_long_the_second_question_takes(desk: Desk) -> None:
    """The position is 17 s in the future after the first answer, and 3 s past after the second."""
    await desk.checkpointer.commit()
    desk.answer_seconds, desk.connector.certain_revision = 20, int(EPOCH - 4 * DAY)
    await desk.connector.connect()


# No clock takes it down. `Timekeeper.watch` keeps a question that was asked on a connection that ended. Its
# answer is read on the next one; if the machine was paused in between, it is wrong by as much.
@in_world(rate=0.5)
async def test_an_answer_from_before_a_pause_does_not_count_after_it(world: World) -> None:
    """A clock step of 3 s, a question, a drop, a pause of two minutes, a new connection."""
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(100)
    world.network.there = 5.0
    world.set_by = 3
    await asyncio.sleep(1.5)
    world.set_by = 0
    world.inflict(Drop())
    world.unreachable(7)
    await asyncio.sleep(6)
    world.pause(120)
    await asyncio.sleep(HOUR)
    await world.check()


# PROCESS DOWN (exit 2) while the connection is fine. Rule broken: nothing takes it down. `Timekeeper.watch`
# asks beside everything else, but only FeedError of it is borne: `clock.ask` raises SettingsError where the
# authority's file or the proxy cannot be used just now, such as while it is rotated.
@in_world(rate=0.5)
async def test_a_question_that_cannot_be_asked_does_not_end_the_process(world: World) -> None:
    """The clock steps by 3 s while feed.ca_file is being replaced."""
    away = False
    ask = world.feed.ask_time

    async def ask_time(settings: FeedSettings) -> object:
        if away:
            raise SettingsError("feed.ca_file: cannot use ca.pem as certificates: No such file")
        return await ask(settings)

    world.feed.ask_time = ask_time  # type: ignore[method-assign,assignment]
    world.start()
    await world.until(State.LIVE)
    away = True
    world.set_by = 3
    await asyncio.sleep(10)
    away = False
    await asyncio.sleep(100)
    await world.check()


# STUCK for the life of the connection; after three days a false gap. Rule broken: the position follows the
# feed. The handshake has a Date, the answer at the root has none (or an Age, or nobody answers). After a
# pause every bet comes from the future: not near, not plausible. `watch` asks once a minute in vain;
# neither the wall clock, which is right, nor a new handshake, which would show it, is tried.
@pytest.mark.parametrize("root", ["no date", "no answer"])
@in_world(rate=0.1)
async def test_a_paused_machine_is_set_right_without_an_answer_of_the_root_path(
    world: World, root: str
) -> None:
    """Paused for ten minutes: two hours later the position would not have moved by a second."""

    async def ask_time(_settings: FeedSettings) -> None:
        if root == "no answer":
            raise FeedLost("the provider cannot be reached")

    world.feed.ask_time = ask_time  # type: ignore[method-assign]
    world.start()
    await world.until(State.LIVE)
    world.pause(600)
    await asyncio.sleep(2 * HOUR)
    assert world.feed.moment() - world.last.revision < HOUR


# STUCK for the life of the connection; after three days a false gap. Rule broken: the position follows the
# feed. While live the last three settlementTimes must be near; fifty far ones in a row would end being
# live, but one near one sets that count back. Where each near bet has a far one beside it (a twin dated
# 0001-01-01, or a late resettlement) the position neither moves nor falls back to catching up, where it
# would move.
@pytest.mark.parametrize("far", ["0001-01-01", "an hour ago"])
@in_world(rate=0.00001)
async def test_far_and_near_bets_in_turn_do_not_hold_the_position(world: World, far: str) -> None:
    """For two hours."""
    world.start()
    await world.until(State.CATCHING_UP)
    for number in range(10):  # near now: it goes live
        world.inflict(Garbage(body=settled(10_000 + number, world.feed.moment()).decode()))
        await asyncio.sleep(1)
    await world.until(State.LIVE)
    for number in range(700):
        moment = world.feed.moment()
        body = settled(2 * number, moment - HOUR)
        if far == "0001-01-01":
            body = re.sub(rb'"settlementTime":"[^"]*"', b'"settlementTime":"0001-01-01T00:00:00"', body)
        world.inflict(Garbage(body=body.decode()))
        world.inflict(Garbage(body=settled(2 * number + 1, moment).decode()))
        await asyncio.sleep(10)
    assert world.feed.moment() - world.last.revision < HOUR


# Settings that are accepted work (feed.safety_margin_seconds takes 0). The socket counts as not read after
# half the margin, but `note_alive` comes once a second: with less than 2 s every message is `stalled`,
# clears the window, and the position never moves.
@pytest.mark.parametrize("margin", [0.0, 1.0, 1.9])
def test_a_small_safety_margin_does_not_hold_the_position(margin: float) -> None:
    """Two hours of an ordinary feed."""

    async def story(world: World) -> None:
        world.start()
        await asyncio.sleep(2 * HOUR)
        assert world.feed.moment() - world.last.revision < HOUR

    play(story, rate=0.2, feed={"safety_margin_seconds": margin, "max_clock_skew_seconds": 0.0})


# Before anything is skipped the provider is asked for the time (0011). `Connector._look_back` does not look,
# after `answer(...)`, whether it was answered or the process is to stop. With on_gap = stop it then skips
# by a clock that nobody has confirmed.
@in_world(rate=0.05)
async def test_a_stop_during_the_question_declares_no_gap(world: World) -> None:
    """A clock four days ahead: the first question fails, the second is under way."""
    world.start()
    await asyncio.sleep(HOUR)
    await world.kill()
    world.set_by = 4 * DAY
    world.network.there = 5.0
    world.unreachable(0.5)
    world.start(on_gap="stop")
    await asyncio.sleep(3)
    with suppress(GapError):
        await world.stop()
    assert world.kafka.gaps == []
    assert world.last.revision < world.feed.moment()


EVERYTHING = Policy(zero="everything", replay_rate=5)


# FALSE PROMISE, and revision=0 is never asked. Rules broken: the provider is asked for the time before the
# first checkpoint; a first start asks revision=0 once. On SIGTERM during the question `FeedOwner.run` goes on
# to commit `Stopped` with a position by a clock that nobody has confirmed, and without an attempt. An
# attempt that was withdrawn because Kafka took long spends the 0 as well.
@pytest.mark.parametrize("off", [0, HOUR])
@in_world(rate=0.2, history=HOUR / 2, policy=EVERYTHING)
async def test_a_first_start_that_is_stopped_during_the_question_is_repeated(
    world: World, off: float
) -> None:
    """The bridge has not connected and commits no position, so the next start is the first."""
    world.network.there = 5.0
    world.set_by = off
    world.start()
    await asyncio.sleep(2)
    await world.stop()
    assert world.provider.attempts == []
    assert world.kafka.transactions == 0 or world.last.revision < world.feed.moment()
    world.set_by = 0
    world.network.there = 0.02
    world.start()
    await asyncio.sleep(60)
    assert [attempt.revision for attempt in world.provider.attempts] == [0]


@in_world(rate=0.2, history=HOUR / 2, policy=EVERYTHING)
async def test_a_withdrawn_first_attempt_does_not_count(world: World) -> None:
    """Kafka takes 15 s for the first checkpoint: the attempt is not made, and the next one is the first."""
    restored = world.kafka.deduplicator

    def deduplicator(since: float, give_up: GiveUp, on_status: Callable[[str], None]) -> Deduplicator:
        world.kafka.away(15)
        return restored(since, give_up, on_status)

    world.kafka.deduplicator = deduplicator  # type: ignore[method-assign,assignment]
    world.start()
    await asyncio.sleep(60)
    assert [attempt.revision for attempt in world.provider.attempts] == [0]


# What is lost is declared, once. Where nothing was published, what is certain is the edge of the feed's
# memory at the start. By the time of the attempt the edge has moved on, and what the first gap has already is
# declared as `TooOld` as well.
@in_world(rate=0.05)
async def test_the_certain_position_is_within_memory_at_the_connection(world: World) -> None:
    """The provider is away for a minute after the start."""
    world.network.shows_date = False
    world.set_by = 12 * HOUR
    world.start()
    await world.until(State.CATCHING_UP)
    await world.kill()
    world.set_by = 0
    world.unreachable(60)
    world.start()
    await world.check(Cause.POSITION_IN_FUTURE)


# STUCK, then a FALSE GAP and exit 5. Rule broken: the position follows the feed; no gap that is none. A
# ping with an unknown field moves nothing and takes the trust in others away, for ever where all pings have
# it. Decided so (0001), but nothing bounds it: each reconnection asks for hours, and three days without a
# bet end the bridge.
def test_pings_that_all_have_an_unknown_field_hold_the_position_for_a_while_only() -> None:
    """A feed without a bet for four hours, connected all the time, then one drop."""

    async def story(world: World) -> None:
        world.network.altered = lambda body: body if b'"data"' in body else body[:-1] + b',"at":1}'
        world.start(on_gap="stop")
        await world.until(State.LIVE)
        world.inflict(Pause(seconds=5 * HOUR))
        await asyncio.sleep(4 * HOUR)
        assert world.feed.moment() - world.last.revision < HOUR
        world.inflict(Drop())
        await asyncio.sleep(100)
        assert (world.kafka.gaps, world.last.state is State.STOPPED_ON_GAP) == ([], False)

    play(story, rate=0.5)

"""Found by attack: what a bridge once did wrong, and the rule that it broke."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

import orjson
import pytest

from bridge.clock import AnchoredClock
from bridge.config import FeedSettings
from bridge.dedup.deduplicator import Deduplicator
from bridge.errors import ClockError, FeedLost, GapError, NotOwner, SettingsError
from bridge.feed.received import Oversized
from bridge.kafka.batch import Record
from bridge.records.checkpoint import State
from bridge.records.gap import Cause
from bridge_sandbox.provider.bets import message
from bridge_sandbox.provider.faults import Clear, Drop, Forget, Garbage, Pause, Refuse, Slow
from bridge_sandbox.provider.feed import Policy
from tests.virtual.desk import Desk, with_desk
from tests.virtual.kafka import CODECS
from tests.virtual.world import DAY, ENTITIES, EPOCH, HOUR, World, in_world, settled

# Bets published twice because the deduplicator evicted by a wrong time.


def doubled(world: World) -> int:
    """Return how many records of the topic occur more than once."""
    records = world.kafka.records(world.kafka.topics.bets.name)
    return sum(count - 1 for count in Counter(record.value for record in records).values())


# Between the end of a pause and the answer that sets the clock right, bets are stamped by a clock behind:
# they were evicted as older than they are.
@pytest.mark.parametrize("cut", ["drop", "kill"])
@in_world(rate=0.5)
async def test_bets_received_before_a_clock_step_are_known_in_the_replay(world: World, cut: str) -> None:
    world.start()
    await asyncio.sleep(300)
    world.pause(600)
    await asyncio.sleep(40)
    if cut == "drop":
        world.inflict(Drop())
    else:
        await world.kill()
        world.start()
    await asyncio.sleep(100)
    assert (doubled(world), world.kafka.gaps) == (0, [])


async def promise_an_hour_too_far(world: World) -> int:
    """No Date, a clock an hour ahead, an hour of pings; then kill the process and set the clock right."""
    world.network.shows_date = False
    world.set_by = HOUR
    world.start()
    await asyncio.sleep(300)
    world.inflict(Pause(seconds=2 * HOUR))
    await asyncio.sleep(HOUR * 1.5)
    await world.kill()
    world.set_by = 0
    world.inflict(Pause(seconds=0))
    await asyncio.sleep(60)
    assert world.last.revision > world.feed.moment() + HOUR / 2
    return world.last.revision


# What was certain at the start of a term was never taken back: a second position in the future went back to
# it.
@in_world(rate=0.2)
async def test_a_second_position_in_the_future_does_not_go_back_to_the_first(world: World) -> None:
    await promise_an_hour_too_far(world)
    world.start()
    await asyncio.sleep(2 * HOUR)
    world.set_by = HOUR
    world.inflict(Drop())
    await asyncio.sleep(60)
    world.inflict(Pause(seconds=1.2 * HOUR))
    await asyncio.sleep(1.2 * HOUR)
    world.set_by = 0
    world.inflict(Drop())
    with suppress(ClockError):
        await asyncio.sleep(HOUR)
        await world.kill()
    world.start()
    await asyncio.sleep(HOUR)
    assert doubled(world) == 0


# The position moved to now (0001) within a replay, which may repeat everything from the revision it asked
# for.
@in_world(rate=0.5)
async def test_a_replay_that_pauses_for_more_than_an_hour_doubles_nothing(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    world.inflict(Drop())
    world.inflict(Pause(seconds=1.2 * HOUR))
    await asyncio.sleep(1.5 * HOUR)
    assert doubled(world) == 0  # after an hour of pings alone nothing more is waited for: a gap (0011)


@in_world(rate=0.5, policy=Policy(replay_rate=1))
async def test_a_replay_that_pauses_near_its_end_for_ten_minutes_doubles_nothing(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    world.inflict(Drop())
    await asyncio.sleep(36)
    world.inflict(Pause(seconds=600))
    await asyncio.sleep(900)
    assert (doubled(world), world.kafka.gaps) == (0, [])


# What a replay brought from before the margins was published again.
@pytest.mark.parametrize("cut", ["drop", "kill"])
@in_world(rate=0.5, odd=0.1)
async def test_a_replay_that_begins_earlier_than_requested_doubles_nothing(world: World, cut: str) -> None:
    world.network.early = 600
    world.start()
    await asyncio.sleep(1200)
    if cut == "drop":
        world.inflict(Drop())
    else:
        await world.kill()
        world.start()
    await asyncio.sleep(300)
    letters = [record.value for record in world.kafka.records(world.kafka.topics.deadletters.name)]
    assert (doubled(world), world.kafka.gaps) == (0, [])
    assert len(letters) == len(set(letters)) > 20
    await world.check()


def held(world: World) -> int:
    """Return how many bets are held until the replay is over."""
    assert world.owner is not None
    loop = world.owner._feed_loop
    return 0 if loop is None else len(loop.pipeline.replay.held.bets)


# The replay after a restart brought only the last A of A, B, A: it looked like the first one and was dropped.
@pytest.mark.parametrize("away", [0.0, 300.0, HOUR], ids=["at once", "minutes", "an hour"])
@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed while held"])
@in_world(rate=0.5)
async def test_bets_that_were_changed_back_during_a_restart_are_published(
    world: World, away: float, killed: bool
) -> None:
    world.start()
    await world.until(State.LIVE)
    settled_at = int(world.feed.moment() * 1e6)

    def publish(variant: int) -> None:
        for number in range(120):
            body = orjson.dumps(message(ENTITIES, 10**9 + number, 1, settled_at, variant=variant))
            world.inflict(Garbage(body=body.decode()))

    publish(0)
    await asyncio.sleep(1)
    publish(1)
    await asyncio.sleep(20)
    await world.kill()
    world.start()
    await asyncio.sleep(400)
    await world.stop()
    counters = world.last.counters
    publish(0)
    await asyncio.sleep(away)
    world.start()
    if killed:
        await world.reached(lambda: bool(held(world)), "nothing is held")
        await world.kill()
        world.start()
    await asyncio.sleep(400)
    assert (world.last.counters.corrections - counters.corrections >= 120, world.kafka.gaps) == (True, [])
    await world.check()


# Limits of the provider broken because ages were taken by a clock that stood still.


# The anchored clock stood still with the machine: no refusal set it right, so each attempt was entered as a
# small recovery of seconds.
@pytest.mark.parametrize("pause", [HOUR / 2, 2 * HOUR, 4 * DAY])
@in_world(rate=0.05)
async def test_a_machine_that_was_paused_and_is_refused_breaks_no_limit(world: World, pause: float) -> None:
    world.start()
    await asyncio.sleep(HOUR)
    world.inflict(Refuse(seconds=HOUR + pause))
    world.inflict(Drop(abort=True))
    world.pause(pause)
    await asyncio.sleep(HOUR)
    assert [breach.reason for breach in world.provider.breaches] == []


@in_world(rate=0.5, policy=Policy(replay_rate=1))
async def test_a_machine_that_was_paused_and_loses_its_next_connection_breaks_no_limit(world: World) -> None:
    world.start()
    await asyncio.sleep(HOUR)
    world.inflict(Drop(abort=True))
    world.pause(50 * 60)
    await asyncio.sleep(10)
    world.inflict(Drop(abort=True))
    await asyncio.sleep(60)
    assert [breach.reason for breach in world.provider.breaches] == []


# The limiter was asked for the position as it was; then it was taken back by hours, and not asked again.
@in_world(rate=0.2, history=5 * HOUR, feed={"start": "4h"}, policy=Policy(replay_rate=1))
async def test_a_position_that_is_taken_back_is_judged_again(world: World) -> None:
    for _ in range(5):
        world.start()
        await asyncio.sleep(70)
        await world.kill()
    wrong = replace(world.last, revision=int(world.feed.moment() + 2 * HOUR))
    value = CODECS.checkpoints.encode(wrong.to_avro())
    world.kafka.append([Record(world.kafka.topics.checkpoints.name, b"f", value, 0, partition=0)])
    world.start()
    await asyncio.sleep(60)
    assert [breach.reason for breach in world.provider.breaches] == []


# An older version drops a counter that it does not know from what it restores (0023).
@pytest.mark.parametrize("counter", ["redriven", "stale", "received"])
@in_world(rate=0.5)
async def test_a_rollback_is_not_the_end_of_the_feed(world: World, counter: str) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(60)
    await world.kill()
    counters = replace(world.last.counters, **{counter: getattr(world.last.counters, counter) + 7})
    value = CODECS.checkpoints.encode(replace(world.last, counters=counters).to_avro())
    world.kafka.append([Record(world.kafka.topics.checkpoints.name, b"f", value, 0, partition=0)])
    before = world.last.revision
    world.start()
    await asyncio.sleep(120)
    assert world.last.counters.balanced
    assert world.last.revision > before


# A wall clock that was not believed was, by the next term, while the provider could not be asked (0010).
@in_world(rate=0.5)
async def test_a_second_term_in_one_process_keeps_the_age_of_the_ledger(world: World) -> None:
    world.anchored = clock = AnchoredClock(world.clock)  # one for the process, as in `bridge.service.app`
    world.start()
    await world.until(State.LIVE)
    for _ in range(5):
        world.inflict(Drop())
        await asyncio.sleep(15)
    world.set_by = HOUR
    await asyncio.sleep(5)
    assert clock.stepped > HOUR / 2  # not believed
    world.lose_leadership()
    assert isinstance(await world.ended(), NotOwner)
    world.unreachable(5)
    world.start()
    with suppress(ClockError):
        await asyncio.sleep(100)
        await world.kill()
    assert [breach.reason for breach in world.provider.breaches] == []


# A standby's clock is anchored when it starts, weeks before it takes over; its correction moved the ledger.
@pytest.mark.parametrize("ahead", [HOUR, 300, -HOUR])
@in_world(rate=0.5)
async def test_a_standby_that_started_with_a_wrong_clock_keeps_the_age_of_the_ledger(
    world: World, ahead: float
) -> None:
    world.start()
    await world.until(State.LIVE)
    for _ in range(4):
        world.inflict(Drop())
        await asyncio.sleep(15)
    await world.kill()
    world.set_by = ahead
    world.anchored = AnchoredClock(world.clock)
    world.set_by = 0
    world.unreachable(3)
    world.start()
    await asyncio.sleep(100)
    world.inflict(Drop())
    await world.check()


# The same with a clock behind: the bridge ended for a position in the future, with a clock corrected by then.
@in_world(rate=1 / 12_000, history=11_990)
async def test_a_standby_that_started_with_a_clock_that_was_behind_takes_over(world: World) -> None:
    world.start()
    await asyncio.sleep(3 * HOUR)
    assert world.last.newest
    assert world.last.revision > world.last.newest + 2 * HOUR
    await world.kill()
    world.set_by = -600
    world.anchored = AnchoredClock(world.clock)
    world.set_by = 0
    world.unreachable(3)
    world.start()
    await asyncio.sleep(100)
    await world.check()


# Bets lost without a gap, by wrong clocks and the positions committed by them.


# What waits in the queue has times of the clock before it was set right: its bets made the position live
# again, and the first ping promised everything of the pause.
@in_world(rate=0.5, max_records=1)
async def test_messages_queued_before_a_clock_step_do_not_advance_the_position(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    world.kafka.away(45)
    await asyncio.sleep(12)
    world.inflict(Slow(per_second=1 / 400))
    await asyncio.sleep(15)
    world.pause(2 * HOUR)
    await asyncio.sleep(30)
    await world.kill()
    world.inflict(Clear())
    world.start()
    await asyncio.sleep(600)
    await world.check(*[gap.cause for gap in world.kafka.gaps])


# By the clock that stood still with the machine the position was a minute old; the handshake set the clock
# right, and nobody looked again.
@pytest.mark.parametrize("quiet", [False, True])
@in_world(rate=0.006)
async def test_a_machine_that_was_paused_for_four_days_declares_the_gap(world: World, quiet: bool) -> None:
    world.start()
    await asyncio.sleep(HOUR)
    if quiet:
        await world.until(State.QUIET)
    world.inflict(Drop(abort=True))
    world.pause(4 * DAY)
    await asyncio.sleep(3 * HOUR)
    await world.check(*[gap.cause for gap in world.kafka.gaps])


BURST = {"rate": 60 / 7200, "burst": 60}


# The position was compared at the attempt only: while the provider was away it passed, and all was forgotten.
@pytest.mark.parametrize("shows_date", [False, True])
@in_world(**BURST)
async def test_a_position_in_the_future_is_a_gap_even_if_it_passes_before_the_connection(
    world: World, shows_date: bool
) -> None:
    world.network.shows_date = False
    await asyncio.sleep(100)
    world.set_by = HOUR
    world.start()
    await asyncio.sleep(5400)
    await world.kill()
    assert world.last.revision > 9000 + EPOCH - 120
    world.set_by = 0
    await asyncio.sleep(60)
    world.network.shows_date = shows_date
    world.unreachable(1.1 * HOUR)  # a burst is published meanwhile
    world.start()
    await asyncio.sleep(1.5 * HOUR)
    await world.check(*[gap.cause for gap in world.kafka.gaps])


# A promise trails the clock by 90 s: one that is 10 s ahead was made by a clock that was 100 s wrong.
@in_world(rate=60 / 7200, burst=60)
async def test_a_position_that_only_a_wrong_clock_can_have_committed_is_a_gap(world: World) -> None:
    world.network.shows_date = False
    await asyncio.sleep(100)
    world.set_by = 150
    world.start()
    await asyncio.sleep(7060)
    await world.kill()
    assert world.last.revision > EPOCH + 7205
    assert world.last.updated_at > world.feed.moment() + 100
    world.set_by = 0
    await asyncio.sleep(58)
    assert world.last.revision > world.feed.moment() - 30
    world.start()
    await asyncio.sleep(600)
    await world.check(*[gap.cause for gap in world.kafka.gaps])


# The process ended, the position stood still, or a gap was declared without a loss.


# The way back was allowed only while the old position was later than the checkpoint's own time.
@with_desk(revision=EPOCH + 37, connect_timeout_seconds=30.0)
async def test_a_reset_is_committed_however_long_the_second_question_takes(desk: Desk) -> None:
    await desk.checkpointer.commit()
    desk.provider.answer_seconds, desk.term.safe_revision = 20, int(EPOCH - 4 * DAY)
    await desk.connector.connect()


# A question of a connection that has ended was answered on the next one, wrong by the pause in between.
@in_world(rate=0.5)
async def test_an_answer_from_before_a_pause_does_not_count_after_it(world: World) -> None:
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


# Where the authority's file is away, as while it is rotated, the question raises SettingsError.
@in_world(rate=0.5)
async def test_a_question_that_cannot_be_asked_does_not_end_the_process(world: World) -> None:
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


# After a pause every bet comes from the future; neither the wall clock nor a new handshake, which are right,
# was tried.
@pytest.mark.parametrize("root", ["no date", "no answer"])
@in_world(rate=0.1)
async def test_a_paused_machine_is_set_right_without_an_answer_of_the_root_path(
    world: World, root: str
) -> None:
    async def ask_time(_settings: FeedSettings) -> None:
        if root == "no answer":
            raise FeedLost("the provider cannot be reached")

    world.feed.ask_time = ask_time  # type: ignore[method-assign]
    world.start()
    await world.until(State.LIVE)
    world.pause(600)
    await asyncio.sleep(2 * HOUR)
    assert world.feed.moment() - world.last.revision < HOUR


# A near settlementTime beside each far one neither moved the position nor let it fall back to catching up.
@pytest.mark.parametrize("far", ["0001-01-01", "an hour ago"])
@in_world(rate=0.00001)
async def test_far_and_near_bets_in_turn_do_not_hold_the_position(world: World, far: str) -> None:
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


# A socket counts as not read after half the margin, and is noted alive once a second.
@pytest.mark.parametrize("margin", [0.0, 1.0, 1.9])
@in_world(rate=0.2)
async def test_a_small_safety_margin_does_not_hold_the_position(world: World, margin: float) -> None:
    world.start(safety_margin_seconds=margin, max_clock_skew_seconds=0.0)
    await asyncio.sleep(2 * HOUR)
    assert world.feed.moment() - world.last.revision < HOUR


# It skipped by a clock that nobody had confirmed (0011).
@in_world(rate=0.05)
async def test_a_stop_during_the_question_declares_no_gap(world: World) -> None:
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


# `Stopped` was committed with a position by a clock that nobody had confirmed, and 0 was never asked for
# again.
@pytest.mark.parametrize("off", [0, HOUR])
@in_world(rate=0.2, history=HOUR / 2, policy=EVERYTHING)
async def test_a_first_start_that_is_stopped_during_the_question_is_repeated(
    world: World, off: float
) -> None:
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
    restored = world.kafka.restore

    def restore(*arguments: Any) -> Deduplicator:
        world.kafka.away(15)
        return restored(*arguments)

    world.kafka.restore = restore  # type: ignore[method-assign,assignment]
    world.start()
    await asyncio.sleep(60)
    assert [attempt.revision for attempt in world.provider.attempts] == [0]
    before = [it.revision for it in world.kafka.checkpoints if not it.counters.received]
    assert len(before) > 1
    assert len({*before}) == 1, "the position has moved without a message and without a gap"


# What was certain at the start had left the feed's memory by the attempt, and was declared twice.
@in_world(rate=0.05)
async def test_the_certain_position_is_within_memory_at_the_connection(world: World) -> None:
    world.network.shows_date = False
    world.set_by = 12 * HOUR
    world.start()
    await world.until(State.CATCHING_UP)
    await world.kill()
    world.set_by = 0
    world.unreachable(60)
    world.start()
    await world.check(Cause.POSITION_IN_FUTURE)


# A ping that is not understood moves nothing (0001); where all are so, nothing bounded it.
@in_world(rate=0.5)
async def test_pings_that_all_have_an_unknown_field_hold_the_position_for_a_while_only(world: World) -> None:
    world.network.altered = lambda body: body if b'"data"' in body else body[:-1] + b',"at":1}'
    world.start(on_gap="stop")
    await world.until(State.LIVE)
    world.inflict(Pause(seconds=5 * HOUR))
    await asyncio.sleep(4 * HOUR)
    assert world.feed.moment() - world.last.revision < HOUR
    world.inflict(Drop())
    await asyncio.sleep(100)
    assert (world.kafka.gaps, world.last.state is State.STOPPED_ON_GAP) == ([], False)


# A greeting that had been evicted and recorded anew was taken for a repetition of the replay.
@pytest.mark.parametrize("seconds", [430, 460, 490, 520, 550])
@in_world(rate=0.1)
async def test_what_comes_again_and_again_does_not_hide_that_the_provider_has_forgotten(
    world: World, seconds: float
) -> None:
    async def beat() -> None:
        while True:
            world.inflict(Garbage(body='{"type":"heartbeat"}'))
            await asyncio.sleep(10)

    beating = asyncio.create_task(beat())
    world.start()
    await asyncio.sleep(seconds)
    world.unreachable(600)
    await asyncio.sleep(600)
    world.inflict(Forget())
    await asyncio.sleep(900)
    beating.cancel()
    await world.check(Cause.MISSING_IN_REPLAY)


# It was dropped as stale, and no redrive could publish it. The bet may go back for as long as the replay
# takes.
@in_world(rate=0.5)
async def test_a_correction_that_was_too_large_is_published_once_the_limit_is_raised(world: World) -> None:
    def as_oversized(body: bytes) -> bytes | Oversized:
        return body if len(body) < 100_000 else Oversized(len(body), sha256(body).hexdigest(), body[:65_536])

    world.network.altered = as_oversized
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(200)
    now = world.feed.moment()
    for variant, least in ((0, 0), (1, 200_000)):
        body = orjson.dumps(message(ENTITIES, 10**9 + 7, 1, int(now * 1e6), least, variant=variant))
        world.inflict(Garbage(body=body.decode()))
        await asyncio.sleep(10)
    await world.stop()
    world.network.altered = bytes
    world.start()
    await asyncio.sleep(300)
    [latest] = [r for r in world.kafka.records(world.kafka.topics.bets.name) if len(r.value or b"") > 10_000]
    assert latest.key
    await world.check()


# A pause before the second question was committed before any attempt: the next process took it for a promise.
@in_world(rate=0.2, history=HOUR / 2, policy=Policy(zero="everything", replay_rate=5))
async def test_a_first_start_whose_clock_steps_before_the_network_is_up_asks_for_everything(
    world: World,
) -> None:
    world.unreachable(4)
    world.start()
    await asyncio.sleep(0.5)
    world.set_by = 5
    await asyncio.sleep(1.7)
    await world.stop()
    await asyncio.sleep(3)
    world.start()
    await asyncio.sleep(200)
    assert world.provider.attempts[0].revision in (None, 0)


def reopened(at: float, *, valid: bool = True, variant: int = 0) -> Garbage:
    """A bet of its own in the feed; one that is not valid lacks a field that settings may make optional."""
    body = message(ENTITIES, 10**9 + 7, 1, int(at * 1e6), 0, variant=variant)
    if not valid:
        del body["data"]["isCancelled"]
    return Garbage(body=orjson.dumps(body).decode())


# Known bets of a replay were no longer kept once anything new had come, as a dead letter that converts now.
@pytest.mark.parametrize("replayed", [25, 32, 40])
@in_world(rate=0.5, policy=Policy(replay_rate=1))
async def test_a_replay_that_begins_with_a_former_dead_letter_and_pauses_doubles_nothing(
    world: World, replayed: float
) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    world.inflict(reopened(world.feed.moment(), valid=False))
    await asyncio.sleep(60)
    await world.kill()
    await asyncio.sleep(1)
    world.start(optional_fields=frozenset({"data.isCancelled"}))
    await asyncio.sleep(replayed)
    world.inflict(Pause(seconds=600))
    await asyncio.sleep(800)
    assert doubled(world) == 0


# A replay counted as over by the time that had passed, though nothing new had come.
@pytest.mark.parametrize("replayed", [34, 36, 42])
@in_world(rate=0.5, policy=Policy(replay_rate=1))
async def test_a_replay_that_pauses_takes_no_content_back(world: World, replayed: float) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    now = world.feed.moment()
    world.inflict(reopened(now))
    await asyncio.sleep(5)
    world.inflict(reopened(now + 5, variant=1))
    await asyncio.sleep(1)
    world.inflict(Drop())
    await asyncio.sleep(replayed)
    world.inflict(Pause(seconds=200))
    await asyncio.sleep(400)
    await world.check()


@in_world(rate=1 / 40_000, history=39_000)
async def test_a_correction_after_hours_of_pings_is_no_repetition(world: World) -> None:
    world.start()
    await asyncio.sleep(200)
    now = world.feed.moment()
    world.inflict(reopened(now))
    await asyncio.sleep(5)
    world.inflict(reopened(now + 5, variant=1))
    await asyncio.sleep(5)
    world.inflict(Drop())
    await asyncio.sleep(3 * HOUR)
    published = world.last.counters.published
    world.inflict(reopened(now))
    await asyncio.sleep(10)
    assert world.last.counters.published == published + 1


# The attempt was noticed to be older, but the ledger kept the age from before.
@pytest.mark.parametrize("refused", [False, True])
@in_world(rate=0.05)
async def test_a_pause_during_the_handshake_makes_the_attempt_longer(world: World, refused: bool) -> None:
    world.network.there = 1.0
    world.start()
    await asyncio.sleep(HOUR)
    if refused:
        world.inflict(Refuse(count=1, status=503, seconds=2 * HOUR))
    world.inflict(Drop(abort=True))
    await world.entered(State.CONNECTING, lambda: None)
    await asyncio.sleep(0.5)
    world.pause(3000)
    await asyncio.sleep(120)
    assert [breach.reason for breach in world.provider.breaches] == []


# The `Date` of an answer that refuses the connection says as much as that of one that accepts it.
@pytest.mark.parametrize("pause", [HOUR / 2, 2 * HOUR, 4 * DAY])
@in_world(rate=0.05)
async def test_a_clock_that_stood_still_is_seen_by_a_refusal(world: World, pause: float) -> None:
    world.start()
    await asyncio.sleep(HOUR)
    world.inflict(Refuse(seconds=HOUR + pause))
    world.inflict(Drop(abort=True))
    world.pause(pause)
    world.set_by -= pause
    with suppress(ClockError):
        await asyncio.sleep(HOUR)
        await world.kill()
    assert [breach.reason for breach in world.provider.breaches] == []

"""Found by attack: what a bridge once did wrong, and the rule that it broke."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256

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
from bridge.service.interfaces import GiveUp, OnDelay
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


# Entries younger than what a replay can reach are never evicted. Between the end of a pause and the answer
# that sets the clock right, bets are stamped by a clock that is behind. Then the position moves with the
# right clock, and `Deduplicator.evict` (or the restoration by `offsets_for_times`, after a kill) takes these
# bets for older than they are. The connection breaks, and they are published again.
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


# The revision never goes back; the deduplicator is restored from there. `Term.find_safe_revision` is of the
# start of the term and is never taken back. A second position in the future in the same term goes back to it,
# by hours or days, when the deduplicator has long evicted the bets since.
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


# Bets that a replay can repeat are not evicted. After an hour of pings alone the position moves to now
# (0001), the deduplicator evicts all bets received before, and then the replay of *this* connection goes on.
# It may repeat everything from the revision that it requested, however far the position has advanced.
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


# Bets and dead letters were remembered for the margins only: what a replay brought from before them was
# published again.
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


# The limits are law; an attempt counts in every class it could belong to. The age of a revision is taken by
# the anchored clock, which stood still with the machine, though the wall clock is right by then. No refusal
# and no lost answer sets it right, so each attempt is entered as a small recovery of seconds. Also where
# the first is let in: its entry keeps the age that it seemed to have.
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


# The limits are law; `decide` is asked for the attempt that is made. `Connector.connect` waits for the
# limiter with the position as it is, which asks for seconds. Then `_confirm_position` takes it back to what
# is certain, hours ago, and the attempt is made without asking the limiter for *that* recovery.
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


# An older version drops a counter that it does not know from what it restores, and `commit` asserts that each
# message has an outcome: after a rollback no bridge could commit anything any more (0023).
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


# Within a process, what has passed is what the monotonic clock says (0010). `FeedOwner._compare_clocks`
# anchors to the wall clock before it asks. Where that was set wrong (the provider had said so, and it was not
# believed) and the provider cannot be asked just now, the ledger of the last term looks an hour older.
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


# A process may stand by for weeks, and its clock is anchored when it starts. If that was ahead of what the
# former owner's was, and the provider does not tell the time at the take-over, the ledger looked too old, and
# the correction that follows moved it with the clock (`FeedOwner._take_over`).
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


# The same with a clock that was behind: the position looked like one of the future
# (`Term.find_safe_revision`), the clock was corrected, and the bridge ended all the same, with a reason that
# was no longer true.
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


# The revision is a promise; a step of a clock moves none. A machine is paused while Kafka keeps the bridge
# waiting, and its clock is set right (`Timekeeper.watch`, then `Position.stalled`) before the queue is
# handled. What is in the queue carries times of the old clock: its bets make the position live again, and
# the first ping with a time of the new one promises everything of the pause.
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


# A gap is declared when the position is older than three days at the attempt. The anchored clock stood
# still with the machine, so `Connector._confirm_position` takes a position that is four days old for a
# minute old, though the wall clock is right by then. The handshake sets the clock right (`note`), and
# nobody looks again whether what was asked for was within the feed's memory.
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


# A position that turns out to lie in the future is a gap (0011: waiting until it is past would lose, in
# silence). `Term.find_safe_revision` knows at the start that the position lies in the future, but
# `Connector._confirm_position` only looks at the moment of the attempt. While the provider is away, or a
# limit delays the attempt, it passes, and all is forgotten.
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


# A position that turns out to lie in the future is a gap. A promise trails the clock by 90 s, so a position
# of 10 s ahead was made by a clock that was wrong by more than 100 s. Yet `Term.is_ahead` and
# `Term.find_safe_revision` only look for more than max_clock_skew_seconds ahead of now; neither does anybody
# look at `updated_at`, which lies in the future as well.
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


# No clock takes it down. `Connector._confirm_position` may ask for the time a second time after
# `_take_back` (what is certain is older than the edge by then). `Checkpoint.follows` allows the way back
# only while the old position is later than `updated_at`.
@with_desk(revision=EPOCH + 37, connect_timeout_seconds=30.0)
async def test_a_reset_is_committed_however_long_the_second_question_takes(desk: Desk) -> None:
    await desk.checkpointer.commit()
    desk.provider.answer_seconds, desk.term.safe_revision = 20, int(EPOCH - 4 * DAY)
    await desk.connector.connect()


# No clock takes it down. `Timekeeper.watch` keeps a question that was asked on a connection that ended. Its
# answer is read on the next one; if the machine was paused in between, it is wrong by as much.
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


# PROCESS DOWN (exit 2) while the connection is fine. Rule broken: nothing takes it down. `Timekeeper.watch`
# asks beside everything else, but only FeedError of it is borne: `clock.ask` raises SettingsError where the
# authority's file or the proxy cannot be used just now, such as while it is rotated.
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


# STUCK for the life of the connection; after three days a false gap. Rule broken: the position follows the
# feed. The handshake has a Date, the answer at the root has none (or an Age, or nobody answers). After a
# pause every bet comes from the future: not near, not plausible. `watch` asks once a minute in vain;
# neither the wall clock, which is right, nor a new handshake, which would show it, is tried.
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


# STUCK for the life of the connection; after three days a false gap. Rule broken: the position follows the
# feed. While live the last three settlementTimes must be near; fifty far ones in a row would end being
# live, but one near one sets that count back. Where each near bet has a far one beside it (a twin dated
# 0001-01-01, or a late resettlement) the position neither moves nor falls back to catching up, where it
# would move.
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


# Settings that are accepted work (feed.safety_margin_seconds takes 0). The socket counts as not read after
# half the margin, but `note_alive` comes once a second: with less than 2 s every message is `stalled`,
# clears the window, and the position never moves.
@pytest.mark.parametrize("margin", [0.0, 1.0, 1.9])
@in_world(rate=0.2)
async def test_a_small_safety_margin_does_not_hold_the_position(world: World, margin: float) -> None:
    world.start(safety_margin_seconds=margin, max_clock_skew_seconds=0.0)
    await asyncio.sleep(2 * HOUR)
    assert world.feed.moment() - world.last.revision < HOUR


# Before anything is skipped the provider is asked for the time (0011). `Connector._confirm_position` does
# not look, after `answer(...)`, whether it was answered or the process is to stop. With on_gap = stop it
# then skips by a clock that nobody has confirmed.
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


# FALSE PROMISE, and revision=0 is never asked. Rules broken: the provider is asked for the time before the
# first checkpoint; a first start asks revision=0 once. On SIGTERM during the question `FeedOwner.run` goes on
# to commit `Stopped` with a position by a clock that nobody has confirmed, and without an attempt. An
# attempt that was withdrawn because Kafka took long spends the 0 as well.
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

    def restore(since: float, give_up: GiveUp, on_delay: OnDelay) -> Deduplicator:
        world.kafka.away(15)
        return restored(since, give_up, on_delay)

    world.kafka.restore = restore  # type: ignore[method-assign,assignment]
    world.start()
    await asyncio.sleep(60)
    assert [attempt.revision for attempt in world.provider.attempts] == [0]
    before = [it.revision for it in world.kafka.checkpoints if not it.counters.received]
    assert len(before) > 1
    assert len({*before}) == 1, "the position has moved without a message and without a gap"


# What is lost is declared, once. Where nothing was published, what is certain is the edge of the feed's
# memory at the start. By the time of the attempt the edge has moved on, and what the first gap has already is
# declared as `TooOld` as well.
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


# STUCK, then a FALSE GAP and exit 5. Rule broken: the position follows the feed; no gap that is none. A
# ping with an unknown field moves nothing and takes the trust in others away, for ever where all pings have
# it. Decided so (0001), but nothing bounds it: each reconnection asks for hours, and three days without a
# bet end the bridge.
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


# A message that is no bet and comes again and again, such as a greeting, was a dead letter that "a replay has
# repeated" once its row had been evicted and recorded anew: a provider that had forgotten all passed for one
# that has everything (`Pipeline._dead_letter`).
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


# What is only now converted may be what came last: it was once dropped as stale, and no redrive could publish
# it. So the bet may go back for as long as the replay takes, and ends right.
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


# The pause before the second question about the time is a state, and was committed, before any attempt was:
# the next process took the position for a promise, and asked for no more than it.
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


def reopened(number: int, at: float, *, valid: bool = True, variant: int = 0) -> Garbage:
    """A bet of its own in the feed; one that is not valid lacks a field that settings may make optional."""
    body = message(ENTITIES, 10**9 + number, 1, int(at * 1e6), 0, variant=variant)
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
    world.inflict(reopened(7, world.feed.moment(), valid=False))
    await asyncio.sleep(60)
    await world.kill()
    await asyncio.sleep(1)
    world.start(optional_fields=frozenset({"data.isCancelled"}))
    await asyncio.sleep(replayed)
    world.inflict(Pause(seconds=600))
    await asyncio.sleep(800)
    assert doubled(world) == 0


# A replay counted as over by the time that had passed, though nothing new had come: then A, B under one
# version were no longer recognised in their order.
@pytest.mark.parametrize("replayed", [34, 36, 42])
@in_world(rate=0.5, policy=Policy(replay_rate=1))
async def test_a_replay_that_pauses_takes_no_content_back(world: World, replayed: float) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(300)
    now = world.feed.moment()
    world.inflict(reopened(7, now))
    await asyncio.sleep(5)
    world.inflict(reopened(7, now + 5, variant=1))
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
    world.inflict(reopened(7, now))
    await asyncio.sleep(5)
    world.inflict(reopened(7, now + 5, variant=1))
    await asyncio.sleep(5)
    world.inflict(Drop())
    await asyncio.sleep(3 * HOUR)
    published = world.last.counters.published
    world.inflict(reopened(7, now))
    await asyncio.sleep(10)
    assert world.last.counters.published == published + 1


# A machine that is paused during a handshake asks for less than the provider counts. The attempt was noticed
# to be older, but the ledger kept the age from before.
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

"""Messages that the provider can no longer replay are declared as one gap with its bounds, and no others."""

from __future__ import annotations

import asyncio

import pytest

from bridge.config import FeedSettings
from bridge.errors import ClockError, FeedLost, GapError
from bridge.records.checkpoint import State
from bridge.records.gap import Cause
from bridge_sandbox.provider.faults import Drop, Forget, Refuse
from tests.virtual.world import DAY, HOUR, World, in_world

RATE = 0.006


async def outage(world: World, seconds: float) -> int:
    """Be live for half an hour, then down for these seconds; return the committed revision."""
    world.start()
    await asyncio.sleep(HOUR / 2)
    await world.kill()
    revision = world.last.revision
    await asyncio.sleep(seconds)
    return revision


def assert_bounds(world: World, revision: int) -> None:
    """Assert that the gap reaches from the committed to the requested revision, to the second."""
    [gap] = world.kafka.gaps
    attempt = world.provider.attempts[-1]
    assert attempt.revision is not None
    assert (gap.start, gap.end) == (revision, attempt.revision)
    oldest_replayable = attempt.at - 3 * DAY
    assert (
        oldest_replayable < gap.end < oldest_replayable + 60
    )  # within memory, whenever the attempt had arrived


@in_world(rate=RATE)
async def test_a_gap_is_one_after_any_number_of_attempts(world: World) -> None:
    revision = await outage(world, 4 * DAY)
    world.unreachable(HOUR / 2)
    world.inflict(Refuse(count=4))
    world.start()
    await asyncio.sleep(HOUR)
    await world.check(Cause.TOO_OLD)
    assert_bounds(world, revision)
    assert len(world.provider.attempts) == 1 + 4 + 1


@pytest.mark.parametrize("on_gap", ["continue", "stop"])
@in_world(rate=RATE)
async def test_a_provider_that_never_tells_its_time_does_not_keep_the_bridge_away(
    world: World, on_gap: str
) -> None:
    revision = await outage(world, 4 * DAY)

    async def ask_time(_settings: FeedSettings) -> None:
        raise FeedLost("the provider cannot be reached")

    world.feed.ask_time = ask_time  # type: ignore[method-assign]
    world.start(on_gap=on_gap)
    if on_gap == "stop":
        assert isinstance(await world.ended(), GapError)
        [gap] = world.kafka.gaps
        assert (gap.start, gap.end) == (revision, world.last.revision)
        assert world.last.state is State.STOPPED_ON_GAP
    else:
        await world.check(Cause.TOO_OLD)
        assert_bounds(world, revision)
    assert len(world.provider.attempts) == 2


@in_world(rate=RATE)
async def test_with_stop_the_gap_is_declared_without_an_attempt(world: World) -> None:
    revision = await outage(world, 4 * DAY)
    world.start(on_gap="stop")
    error = await world.ended()
    assert isinstance(error, GapError)
    assert "BRIDGE_FEED__ON_GAP" in str(error)
    assert world.last.state is State.STOPPED_ON_GAP
    [gap] = world.kafka.gaps
    assert gap.start == revision
    assert gap.end == world.last.revision
    world.start()
    assert isinstance(await world.ended(), GapError)
    assert len(world.provider.attempts) == len(world.kafka.gaps) == 1
    world.start(on_gap="continue")
    await world.check(Cause.TOO_OLD)
    assert_bounds(world, revision)


@in_world(rate=RATE)
async def test_an_outage_just_within_memory_is_no_gap(world: World) -> None:
    await outage(world, 3 * DAY - 180)
    world.start(on_gap="stop")
    await world.check()


@in_world(rate=RATE)
async def test_a_process_that_dies_at_the_gap_declares_it_once(world: World) -> None:
    await outage(world, 4 * DAY)
    world.kafka.away(30)
    world.start()
    await asyncio.sleep(10)
    await world.kill()
    world.kafka.deaf = True
    world.start()
    await asyncio.sleep(40)
    await world.kill()
    world.start()
    await world.check(Cause.TOO_OLD)


@pytest.mark.parametrize("cut", ["drop", "kill"])
@in_world(rate=0.1)
async def test_a_provider_that_discards_silently_is_detected(world: World, cut: str) -> None:
    world.start()
    await asyncio.sleep(HOUR)
    revision = world.last.revision
    world.feed.cut()
    if cut == "kill":
        await world.kill()
    else:
        world.unreachable(600)
    await asyncio.sleep(600)
    world.inflict(Forget())
    forgot_at = world.feed.moment()
    if cut == "kill":
        world.start()
    await asyncio.sleep(900)
    await world.check(Cause.MISSING_IN_REPLAY)
    [gap] = world.kafka.gaps
    assert gap.start == pytest.approx(revision, abs=15)
    assert forgot_at <= gap.end <= forgot_at + 120


@in_world(rate=0.1)
async def test_with_stop_a_silent_gap_stops_the_bridge_too(world: World) -> None:
    await silent_gap(world)
    assert isinstance(await world.ended(), GapError)
    assert world.last.state is State.STOPPED_ON_GAP
    assert world.last.reason.startswith("MissingInReplay: ")
    world.start(on_gap="continue")
    await world.check(Cause.MISSING_IN_REPLAY)


async def silent_gap(world: World) -> None:
    """Let the provider discard what was never received while the bridge is away."""
    world.start(on_gap="stop")
    await asyncio.sleep(HOUR)
    await world.kill()
    await asyncio.sleep(600)
    world.inflict(Forget())
    world.start()


async def assert_still_stopped(world: World) -> None:
    """Assert that the next process does not connect."""
    attempts = len(world.provider.attempts)
    world.start()
    assert isinstance(await world.ended(), GapError)
    assert len(world.provider.attempts) == attempts
    assert [gap.cause for gap in world.kafka.gaps] == [Cause.MISSING_IN_REPLAY]


@in_world(rate=0.1)
async def test_sigterm_while_a_gap_is_committed_does_not_lift_the_stop(world: World) -> None:
    await silent_gap(world)
    await world.entered(State.STOPPED_ON_GAP, lambda: world.kafka.away(1.5))
    await asyncio.sleep(0.5)
    with pytest.raises(GapError):
        await world.stop()
    await asyncio.sleep(10)
    await assert_still_stopped(world)


@in_world(rate=0.1)
async def test_a_slow_kafka_when_a_gap_is_found_does_not_lift_the_stop(world: World) -> None:
    await silent_gap(world)
    await world.entered(State.CATCHING_UP, lambda: world.kafka.away(600))
    assert isinstance(await world.ended(), GapError)
    assert world.last.state is State.STOPPED_ON_GAP
    await assert_still_stopped(world)


@in_world(rate=0.05)
async def test_a_clock_days_ahead_is_checked_before_a_gap_is_declared(world: World) -> None:
    await outage(world, HOUR)
    world.set_by = 4 * DAY
    world.start()
    assert isinstance(await world.ended(), ClockError)
    assert len(world.provider.attempts) == 1
    world.set_by = 0
    await asyncio.sleep(HOUR)
    world.start()
    await world.check()


@in_world(rate=0.1)
async def test_an_attempt_commits_what_it_awaits(world: World) -> None:
    await outage(world, HOUR / 6)
    before, world.network.answers_lost = world.last, 1
    world.start()
    await world.reached(lambda: len(world.provider.attempts) > 1, "no attempt")
    unproven = world.last.unproven
    assert unproven
    assert (unproven.revision, unproven.newest) == (before.revision, before.newest)
    assert before.updated_at < unproven.since <= world.provider.attempts[-1].at


async def brings(world: World, bets: int) -> None:
    """Wait until so many more bets are published."""
    topic = world.kafka.topics.bets.name
    count = len(world.kafka.records(topic)) + bets
    await world.reached(lambda: len(world.kafka.records(topic)) >= count, "no new bets")


# The next process took what the one before had brought, and committed, for proof that the replay was whole.
@pytest.mark.parametrize("bets", [1, 2])
@pytest.mark.parametrize("ends", ["drop", "kill", "stop", "kill kill", "drop stop"])
def test_what_a_short_connection_has_brought_does_not_hide_a_gap(bets: int, ends: str) -> None:
    @in_world(rate=0.1)
    async def story(world: World) -> None:
        await outage(world, HOUR / 6)
        world.inflict(Forget())
        world.start()
        for end in ends.split():
            await brings(world, bets)
            if end == "drop":
                world.inflict(Drop())
            else:
                await (world.stop() if end == "stop" else world.kill())
                world.start()
        await asyncio.sleep(HOUR / 4)
        await world.check(Cause.MISSING_IN_REPLAY)

    story()

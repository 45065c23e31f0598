"""One term of leadership: how it begins, what can be seen of it, and how it ends."""

from __future__ import annotations

import asyncio

import pytest

from bridge.errors import SettingsError
from bridge.observability.status import TermStatus
from bridge.records.checkpoint import State
from tests.virtual.world import HOUR, World, in_world, play


@in_world()
async def test_before_it_is_open_only_ownership_can_be_seen(world: World) -> None:
    world.kafka.away(60)
    world.start()
    assert world.owner is not None
    await asyncio.sleep(30)
    assert world.owner.seen() == TermStatus()
    assert world.status.state is State.WAITING_FOR_KAFKA
    await world.check()


@in_world(rate=0.5)
async def test_what_can_be_seen_of_it(world: World) -> None:
    world.start()
    await asyncio.sleep(385.9)
    assert world.owner is not None
    for _ in range(15):  # as the heartbeat asks
        await asyncio.sleep(1)
        seen = world.owner.seen()
    last = world.last
    assert seen.intake.rates.received == pytest.approx(0.6, abs=0.25)
    assert seen.intake.rates.written == pytest.approx(0.5, abs=0.25)
    assert seen.known.revision == last.revision
    assert seen.known.committed_at == last.updated_at
    assert seen.intake.counters.received == last.counters.received > 100
    assert seen.intake.dedup_entries <= last.counters.published
    assert (seen.known.skew, seen.known.gaps, seen.intake.connections) == (0.0, 0, {"accepted": 1})
    assert (seen.intake.eta, seen.intake.queue_messages, seen.delivery.batch_records) == (None, 0, 0)
    assert seen.delivery.commit_durations.count == world.kafka.transactions
    used = {limit.name: limit.used for limit in seen.intake.usage}
    assert used == {"initial": 1, "proper": 0, "large": 1, "bucket": 0}
    assert seen.intake.next_connect == world.clock().wall


@in_world(rate=0.5)
async def test_how_long_messages_take_to_become_visible(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    await asyncio.sleep(600)
    assert world.owner is not None

    def seen() -> list[dict[str, float]]:
        assert world.owner is not None
        delivery = world.owner.seen().delivery
        return [dict(it.buckets()) for it in (delivery.receipt_to_visible, delivery.settlement_to_visible)]

    receipt, settlement = seen()
    assert receipt["1.0"] == receipt["+Inf"] == pytest.approx(world.kafka.transactions, abs=10)
    assert 100 < settlement["10.0"] <= settlement["+Inf"] <= receipt["+Inf"]
    world.kafka.away(25)
    await asyncio.sleep(60)
    later = seen()
    for before, after, bound in zip((receipt, settlement), later, ("10.0", "10.0"), strict=True):
        late = after["+Inf"] - after[bound] - (before["+Inf"] - before[bound])
        assert late == after["30.0"] - after[bound] - (before["30.0"] - before[bound]) >= 1


@pytest.mark.parametrize("ahead", [-3, 3])
def test_an_age_is_by_the_provider_s_clock(ahead: float) -> None:
    async def story(world: World) -> None:
        world.start()
        await world.until(State.LIVE)
        await asyncio.sleep(300)
        assert world.owner is not None
        found = world.owner.seen().delivery.settlement_to_visible
        assert found.count > 100
        assert 1.0 < found.seconds / found.count < 2.5  # the stream is two seconds out of order

    play(story, rate=0.5, ahead=ahead)


@in_world(rate=20, max_records=20)
async def test_what_waits_for_a_full_batch_waits_since_its_receipt(world: World) -> None:
    world.start()
    await world.until(State.LIVE)
    world.kafka.away(25)
    await asyncio.sleep(60)
    assert world.owner is not None
    found = dict(world.owner.seen().delivery.receipt_to_visible.buckets())
    assert found["30.0"] - found["10.0"] > 2


@in_world(feed={"start": "2036-01-01T00:00:00Z"})
async def test_a_first_start_in_the_future_is_a_wrong_setting(world: World) -> None:
    world.start()
    error = await world.ended()
    assert isinstance(error, SettingsError)
    assert "BRIDGE_FEED__START" in str(error)
    assert world.kafka.transactions == 0
    assert world.provider.attempts == []


@in_world()
async def test_an_end_while_kafka_is_away_does_not_drag_on(world: World) -> None:
    world.start()
    await asyncio.sleep(300)
    world.kafka.away(HOUR)
    await asyncio.sleep(60)
    began = world.clock().monotonic
    await world.stop()
    assert world.clock().monotonic - began < 5
    world.feed.cut()
    world.kafka.process_died()
    world.start()
    await world.check()


@in_world()
async def test_leadership_that_is_lost_during_the_last_commit_does_not_keep_the_process(world: World) -> None:
    world.start()
    await asyncio.sleep(300)
    world.kafka.lost = True
    await world.stop()
    assert world.status.state is State.STOPPED


@in_world()
async def test_one_that_has_lost_the_leadership_while_it_looks_for_other_feeds_does_not_connect(
    world: World,
) -> None:
    world.other_feed = "unknown"
    world.start()
    assert str(await world.ended()) == "leadership was lost"
    assert world.provider.attempts == []


@pytest.mark.parametrize(("reply", "pattern"), [("echo", '{"pingId":"%s"}'), ("pong {pingId}", "pong %s")])
def test_pings_are_answered(reply: str, pattern: str) -> None:
    async def story(world: World) -> list[str]:
        world.start()
        await asyncio.sleep(65)
        return world.feed.replies

    replies = play(story, feed={"ping_reply": reply})
    before, after = pattern.split("%s")
    ids = [answer.removeprefix(before).removesuffix(after) for answer in replies]
    assert len(set(ids)) == 6
    assert all(len(ping_id) == 16 for ping_id in ids)


@in_world(rate=0.2)
async def test_what_no_replay_can_bring_back_is_forgotten(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridge.dedup.deduplicator.KEPT", 100)
    world.start()
    await asyncio.sleep(HOUR)
    assert world.owner is not None
    entries = world.owner.seen().intake.dedup_entries
    assert 90 <= entries <= 100 + 5 + 0.2 * 15
    await world.check()

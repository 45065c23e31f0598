"""Which messages are published, and when."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from math import inf, nextafter
from typing import Any, get_args

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge_sandbox.provider.bets import Oddity
from bridge_sandbox.provider.stream import Published, Stream, StreamSettings
from bridge_sandbox.provider.world.entities import World

ORIGIN = 1_790_000_000.0


def published(stream: Stream, since: float, until: float) -> Iterator[Published]:
    """Generate what is published from `since` on and before `until`, in order."""
    return map(stream.message, range(stream.first_slot(since), stream.first_slot(until)))


def bet(body: bytes) -> dict[str, Any]:
    data: dict[str, Any] = orjson.loads(body)["data"]
    return data


def placed(data: dict[str, Any]) -> tuple[Any, ...]:
    """Return stake and prices of a bet."""
    return (data["amount"] or {}).get("value"), [item.get("price") for item in data.get("selections") or []]


def test_a_seed_gives_one_stream(stream: Stream) -> None:
    again = Stream(World(7, ORIGIN), ORIGIN, StreamSettings(rate=200))
    other = Stream(World(8, ORIGIN), ORIGIN, StreamSettings(rate=200))
    assert [again.message(slot) for slot in range(500)] == [stream.message(slot) for slot in range(500)]
    assert not {other.message(s).body for s in range(500)} & {stream.message(s).body for s in range(500)}


def test_a_stream_can_be_generated_from_any_moment(stream: Stream) -> None:
    walked = list(published(stream, ORIGIN, ORIGIN + 20))
    assert list(published(stream, ORIGIN + 12.5, ORIGIN + 20)) == walked[2500:]
    assert len(walked) == 4000
    far = stream.message(60 * 86_400 * 200)
    assert far.at == ORIGIN + 60 * 86_400


@pytest.mark.parametrize("rate", [0.3, 7.0, 200.0, 9999.0])
@settings(deadline=None)
@given(slot=st.integers(0, 10**9), part=st.floats(0, 0.99), burst=st.sampled_from([1, 2, 7, 5000]))
def test_the_first_slot_of_a_time_is_exact(
    world: World, rate: float, slot: int, part: float, burst: int
) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=rate, burst=burst))
    for time in (stream.at(slot), nextafter(stream.at(slot), inf), stream.at(slot) + part / rate):
        first = stream.first_slot(time)
        assert stream.at(first) >= time
        assert first == 0 or stream.at(first - 1) < time


@settings(deadline=None, max_examples=25)
@given(
    changes=st.lists(
        st.tuples(
            st.floats(0.1, 50), st.sampled_from([0.5, 9.0, 5000.0]), st.sampled_from([0.0, 0.7, 3.0, inf])
        ),
        min_size=1,
        max_size=4,
    ),
    burst=st.sampled_from([1, 7]),
)
def test_a_quickened_stream_is_still_one_stream(
    world: World, changes: list[tuple[float, float, float]], burst: int
) -> None:
    stream, now = Stream(world, ORIGIN, StreamSettings(rate=20, burst=burst)), ORIGIN
    for after, rate, seconds in changes:
        now += after
        past = [stream.at(slot) for slot in range(stream.first_slot(nextafter(now, inf)))]
        stream.quicken(now, rate, now + seconds)
        assert [stream.at(slot) for slot in range(len(past))] == past
        first = stream.first_slot(nextafter(now, inf))
        assert (first, stream.at(first) > now) == (len(past), True)
        for slot in range(first, first + 200):
            assert stream.at(slot) <= stream.at(slot + 1)
            assert stream.first_slot(stream.at(slot)) == slot // burst * burst


def test_the_versions_of_a_bet_rise_by_one(world: World) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, resettle=0.4))
    bets = defaultdict(list)
    for message in published(stream, ORIGIN, ORIGIN + 20):
        bets[message.bet_id].append(bet(message.body))
    for bet_id, seen in bets.items():
        assert {data["betId"] for data in seen} == {bet_id}
        assert [data["settlementVersion"] for data in seen] == list(range(1, len(seen) + 1))
        for before, after in pairwise(seen):
            assert before["betSettlement"] != after["betSettlement"]
            assert placed(before) == placed(after)
    assert max(map(len, bets.values())) >= 4


def test_revised_resettlements_have_no_new_version(world: World) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, resettle=0.6, revised=0.7))
    bets = defaultdict(list)
    for message in published(stream, ORIGIN, ORIGIN + 25):
        bets[message.bet_id].append(message)
    kinds: Counter[str] = Counter()
    for seen in bets.values():
        contents: dict[int | None, list[bytes]] = {}
        highest = 0
        for message in seen:
            before = contents.setdefault(message.version, [])
            version = message.version or 0
            if version < highest:
                assert version == highest - 1
                assert message.body not in before
                above = [it.at for it in seen if it.version == highest and it.at < message.at]
                assert message.at < above[-1] + 10
                kinds["late"] += 1
                continue
            if before and len(before) % 2 == 0:
                assert message.body == before[0]
                kinds["taken back"] += 1
            elif before:
                assert message.body not in before
                kinds["correction"] += 1
            else:
                assert version == highest + 1
            before.append(message.body)
            highest = version
    assert min(kinds["late"], kinds["taken back"], kinds["correction"]) > 20


def test_the_share_of_odd_messages_is_the_configured_one(world: World) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, resettle=0.4, odd=0.3))
    kinds: Counter[tuple[bool, ...]] = Counter()
    for message in published(stream, ORIGIN, ORIGIN + 20):
        content = orjson.loads(message.body)
        data = content.get("data") or {}
        assert (message.bet_id, message.version) == (data.get("betId"), data.get("settlementVersion"))
        kinds[bool(content.get("pingId")), bool(data), bool(data.get("betId"))] += 1
    usual = kinds.pop((False, True, True))
    assert usual == pytest.approx(2800, rel=0.05)
    assert kinds.keys() == {(True, True, True), (False, True, False), (False, False, False)}
    assert list(kinds.values()) == [pytest.approx(400, rel=0.2)] * 3


def test_odd_messages_are_of_the_kinds_that_are_asked_for(world: World) -> None:
    seen: Counter[str] = Counter()
    for kind in get_args(Oddity):
        stream = Stream(world, ORIGIN, StreamSettings(rate=200, odd=1, resettle=0, oddities=(kind,)))
        for message in published(stream, ORIGIN, ORIGIN + 1):
            content = orjson.loads(message.body)
            data = content.get("data") if content else None
            stake = ((data and data.get("amount")) or {}).get("value", 1)
            seen[f"{kind}: {content}" if not content else f"{kind}: {stake > 0} {stake == 0}"] += 1
            assert (data is not None) == (message.version is not None)
            assert ("unknownField" in (data or {})) == (kind == "unknown field")
    assert seen["list: []"] == seen["object: {}"] == 200
    assert seen["no stake: False True"] > 190
    assert seen["negative stake: False False"] > 190
    assert not {"list: True False", "object: True False", "unknown field: False True"} & seen.keys()


def test_a_message_without_a_bet_settles_nothing(world: World) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, resettle=0.4, odd=0.5))
    latest: dict[str, int] = {}
    skipped = anonymous = 0
    for message in published(stream, ORIGIN, ORIGIN + 25):
        if message.bet_id is None:
            anonymous += message.version is not None
        elif message.version is not None:
            rise = message.version - latest.get(message.bet_id, 0)
            assert rise >= 1
            skipped += rise - 1
            latest[message.bet_id] = message.version
    assert 50 < skipped <= anonymous


@pytest.mark.parametrize("longest", [0.0, 2.0, 45.0])
def test_settlement_times_lie_shortly_before_publication(world: World, longest: float) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, max_out_of_orderness_seconds=longest))
    lags = []
    for slot in range(1500):
        message = stream.message(slot)
        moment = datetime.fromisoformat(bet(message.body)["settlementTime"])
        lags.append(message.at - (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())
    assert min(lags) >= 0
    assert max(lags) <= longest + 1e-5
    assert max(lags) >= longest * 0.98


def test_bursts_keep_the_rate(world: World) -> None:
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, burst=50))
    times = [message.at - ORIGIN for message in published(stream, ORIGIN, ORIGIN + 1)]
    assert times == [0.0] * 50 + [0.25] * 50 + [0.5] * 50 + [0.75] * 50
    assert stream.first_slot(ORIGIN + 0.25) == 50


def test_large_bets_have_many_selections(world: World) -> None:
    plain = Stream(world, ORIGIN, StreamSettings(rate=200, resettle=0.4))
    stream = Stream(
        world, ORIGIN, StreamSettings(rate=200, resettle=0.4, large_every=10, large_bytes=100_000)
    )
    large = 0
    for slot in range(800):
        message, as_was = stream.message(slot), plain.message(slot)
        number = int((message.bet_id or "")[19:].replace("-", ""), 16)
        if number % 10 == 9:
            large += 1
            assert 100_000 <= len(message.body) < 150_000
            assert (message.bet_id, message.version) == (as_was.bet_id, as_was.version)
        else:
            assert message == as_was
    assert large == pytest.approx(80, abs=30)


def test_a_large_bet_has_selections_of_the_world_even_where_it_had_none(world: World) -> None:
    plain = Stream(world, ORIGIN, StreamSettings(rate=200))
    without = next(slot for slot in range(9000) if not bet(plain.message(slot).body).get("selections"))
    stream = Stream(world, ORIGIN, StreamSettings(rate=200, large_every=1))
    selections = {id_ for event in world.events for market in event.markets for id_ in market.selections}
    for slot in (*range(6), without):
        data = bet(stream.message(slot).body)
        assert data["payout"] is not None
        assert data["payoutMultiplier"] is not None
        assert {item["selectionId"] for item in data["selections"]} <= selections
        assert len(data["selections"]) > 1000

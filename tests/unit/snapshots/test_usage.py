"""What settled bets use, and what a job remembers of it from one run to the next."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import orjson
import pytest

from bridge.avro.codec import READ_ONLY, Codec
from bridge.avro.schemas import load, only
from bridge.config.api import KINDS
from bridge.messages.parser import MessageParser
from bridge.snapshots.state import NAMES_PER_RECORD, JobState
from bridge.snapshots.usage import FIELDS, HOUR_SECONDS, MAX_IDS_OF_EVENT, EventPlace, Usage
from bridge_sandbox.provider.stream import Stream, StreamSettings
from tests.integration.snapshots import Mentioned
from tests.unit.snapshots.world import NOW, WORLD, bet, item, keys, mention, merge

HOUR = 1_790_000_000 // HOUR_SECONDS * HOUR_SECONDS
EVENT, OTHER, THIRD = WORLD.events[:3]


def test_a_bet_of_the_topic_says_what_it_uses() -> None:
    writer = Codec(load("settled-bet"), 7)
    whole = load("settled-bet")
    readers = [Codec(only(whole, FIELDS[job]), READ_ONLY, lambda _: whole) for job in FIELDS]
    used, parser, stream = Usage(), MessageParser(), Stream(WORLD, NOW, StreamSettings(rate=100))
    bodies = [stream.message(slot).body for slot in range(600)]
    for body, reader in product(bodies, readers):
        used.add(reader.decode(writer.encode(parser.parse(body).bet or {})))
    bets = [orjson.loads(body)["data"] for body in bodies]
    assert {key.decode() for key in keys(used)} == Mentioned.by(bets).keys
    symbols = {(bet.get("amount") or {}).get("currency") for bet in bets}
    assert used.of["currency"].keys() == symbols - {None}


def test_each_kind_has_its_keys_and_0_is_an_id() -> None:
    used = Usage()
    used.add(bet([item(None, event={"id": 0}, market={"id": 0, "type": 0})]))
    found = [key.decode() for kind in KINDS for key in used.keys(kind)]
    kinds = ["sport", "region", "league", "event", "market:0", "selection", "selection-template"]
    assert found == [f"{kind}:0" for kind in [*kinds, "market-type-template:0"]]


def test_what_is_null_or_too_long_is_not_used() -> None:
    used = Usage()
    used.add(bet(None, currency=None))
    used.add({"selections": [], "amount": {"currency": None}})
    used.add(bet(currency="X" * 101))
    assert not used.changed
    used.add(bet([item(None, sportId=3, selectionId=7, market={"id": 5, "type": 18})], currency="X" * 100))
    assert (used.of["event"], used.selections(), [*used.of["market-type"]]) == ({}, {7}, [(3, 18)])
    assert used.of["currency"].keys() == {"X" * 100}


def test_parts_of_a_bet_builder_belong_to_the_event_of_their_item() -> None:
    parts = [{"market": {"id": 71, "type": 18}, "selectionId": 72}, {"market": None, "selectionId": 73}]
    used = Usage()
    used.add(bet([item(EVENT, market=None, selectionId=0, betBuilderItems=parts)]))
    use = used.of["event"][EVENT.id]
    assert (use.markets, use.selections) == ({71}, {0, 72, 73})
    assert [*used.of["market-type"]] == [(EVENT.league.sport.id, 18)]


class Topic(dict[bytes, bytes]):
    """A compacted topic, to which each state writes what it has changed."""

    def state(self) -> JobState:
        return JobState("translations", self)

    def take(self, state: JobState) -> set[bytes]:
        """Returns what was written."""
        changes = state.changes()
        for key, value in changes.items():
            if value is None:
                self.pop(key, None)
            else:
                assert len(value) < 1_000_000
                self[key] = value
        return {*changes}

    def learnt(self, used: Usage, hour: int = HOUR, *, seen: bool = False) -> JobState:
        """After a run that learnt that."""
        state = self.state()
        merge(state, used, hour)
        state.learnt({0: 5}, "topic", 30)
        if seen:
            state.mark_seen()
        self.take(state)
        return self.state()


def test_what_bets_use_is_remembered() -> None:
    used = mention(EVENT, OTHER, currencies=["EUR"])
    used.add(bet([item(None, selectionId=7, sportId=3, market={"id": 5, "type": 18})]))
    state = Topic().learnt(used)
    assert keys(state.used(0, full=True)) == keys(used)
    assert state.usage.of["currency"].keys() == {"EUR"}
    assert state.usage.of["event"][EVENT.id].place == EventPlace(
        EVENT.league.sport.id, EVENT.league.id, EVENT.league.region.id
    )
    assert state.usage.selections_among([*used.selections(), -5]) == used.selections()
    assert (state.position, state.topic_id, state.usage.newest) == ({0: 5}, "topic", HOUR)


def test_what_is_new_is_new_until_a_snapshot_has_seen_it() -> None:
    topic = Topic()
    topic.learnt(Usage(), seen=True)
    topic.learnt(mention(EVENT))
    state = topic.learnt(mention(OTHER))
    assert state.used(math.inf, full=False).of["event"].keys() == {EVENT.id, OTHER.id}
    state.mark_seen()
    topic.take(state)
    assert keys(topic.state().used(math.inf, full=False)) == set()
    assert keys(topic.learnt(mention(EVENT)).used(math.inf, full=False)) == set()
    later = topic.learnt(mention(EVENT), HOUR + HOUR_SECONDS)
    assert later.used(math.inf, full=False).of["event"].keys() == {EVENT.id}


def test_before_the_first_snapshot_only_what_is_recent_is_new() -> None:
    topic = Topic()
    topic.learnt(mention(EVENT), HOUR - 10 * HOUR_SECONDS)
    state = topic.learnt(mention(OTHER))
    for full in (False, True):
        assert state.used(HOUR, full=full).of["event"].keys() == {OTHER.id}
    state.mark_seen()
    topic.take(state)
    state = topic.learnt(mention(THIRD), HOUR - 20 * HOUR_SECONDS)
    assert state.used(HOUR, full=False).of["event"].keys() == {THIRD.id}
    assert state.used(HOUR, full=True).of["event"].keys() == {OTHER.id, THIRD.id}


def test_what_was_seen_before_the_topic_was_recreated_covers_nothing_learnt_since() -> None:
    topic = Topic()
    topic.learnt(mention(EVENT))
    topic[b"translations/seen"] = b'{"run": 5}'
    assert topic.state().used(math.inf, full=False).of["event"].keys() == {EVENT.id}


def test_a_new_market_makes_its_event_new_and_only_it_is_written() -> None:
    topic = Topic()
    topic.learnt(mention(EVENT, OTHER), seen=True)
    state, more = topic.state(), Usage()
    more.add(bet([item(EVENT, market={"id": 3, "type": EVENT.markets[0].type})], currency=None))
    merge(state, more, HOUR)
    state.learnt({0: 6}, "topic", 30)
    assert topic.take(state) == {f"translations/in-use/event:{EVENT.id}".encode(), b"translations/read"}
    markets = topic.state().used(math.inf, full=False).of["event"][EVENT.id].markets
    assert {*markets} == {3, *(market.id for market in EVENT.markets)}


def test_the_last_bet_says_where_an_event_is() -> None:
    topic = Topic()
    for hour, place in ((HOUR, {"sportId": 3}), (HOUR - HOUR_SECONDS, {"sportId": 1})):
        used = Usage()
        used.add(bet([item(EVENT, **place)]))
        state = topic.learnt(used, hour)
    where = state.usage.of["event"][EVENT.id].place
    assert (where and where.sport, state.usage.newest) == (3, HOUR)


def test_one_event_cannot_fill_a_record() -> None:
    used = Usage()
    for number in range(MAX_IDS_OF_EVENT + 100):
        used.add(bet([item(EVENT, market={"id": 2**62 + number, "type": 1}, selectionId=2**62 + number)]))
    use = Topic().learnt(used).usage.of["event"][EVENT.id]
    assert len(use.markets) == len(use.selections) == MAX_IDS_OF_EVENT


def test_what_is_refused_is_kept_until_it_is_not() -> None:
    topic, state = Topic(), Topic().state()
    owed = {f"event:{number}" for number in range(3 * NAMES_PER_RECORD)}
    state.refused |= {"owed": owed, "missing": {"league:9"}}
    topic.take(state)
    state = topic.state()
    assert state.refused == {"owed": owed, "partial": set(), "missing": {"league:9"}}
    assert state.changes() == {}
    state.refused |= {"owed": {"event:1"}, "missing": set()}
    topic.take(state)
    assert topic.state().refused == {"owed": {"event:1"}, "partial": set(), "missing": set()}
    state.refused["owed"] = set()
    topic.take(state)
    assert topic == {}


def test_a_record_of_an_unknown_kind_is_not_foreign() -> None:
    records = {b"translations/later": b"{}", b"translations/asking": b'{"snapshot": "of an older bridge"}'}
    state = JobState("translations", records | {b"currencies/read": b"\xff"})
    assert (state.foreign, state.changes()) == (0, {})


@pytest.mark.parametrize(
    ("own", "others", "adopted"),
    [
        ({}, {0: 7}, True),
        ({0: 3}, {0: 7}, True),
        ({0: 9}, {0: 7}, False),  # it has read on
        ({0: 3}, {0: 7, "from": 5}, False),  # the other job did not look for currencies before
        ({0: 6}, {0: 7, "from": 5}, True),
        ({}, {0: 7, "from": 5}, False),
    ],
)
def test_one_job_reads_the_bets_for_both(own: dict[int, int], others: dict[Any, int], adopted: bool) -> None:
    topic = Topic()
    state = topic.state()
    merge(state, mention(currencies=["EUR"]), HOUR)
    state.learnt({0: others[0]}, "topic", 30)
    state.symbols_from = {0: others["from"]} if "from" in others else {}
    state.learnt({0: others[0]}, "topic", 30)
    topic.take(state)
    mine = JobState("currencies", topic)
    if own:
        mine.learnt(own, "topic", 30)
    mine.adopt(topic.state(), "topic", 30)
    assert (mine.usage.of["currency"].keys() == {"EUR"}, mine.position == {0: 7}) == (adopted, adopted)
    mine.adopt(topic.state(), "another topic", 30)
    mine.adopt(topic.state(), "topic", 31)
    assert (mine.position == {0: 7}) is adopted


def test_a_state_of_an_older_version_has_no_currencies_before_its_position() -> None:
    read = {"position": {"0": 5}, "topic": "topic", "run": 1, "keep": 30}
    state = JobState("translations", {b"translations/read": orjson.dumps(read)})
    assert (state.position, state.symbols_from) == ({0: 5}, {0: 5})
    state.learnt({0: 9}, "topic", 30)
    assert orjson.loads(state.changes()[b"translations/read"] or b"")["symbols"] == {"0": 5}
    state.learnt({0: 9}, "recreated", 30)
    assert state.symbols_from == {}

"""What a job remembers from one run to the next."""

from __future__ import annotations

import math

from bridge.config.api import KINDS
from bridge.snapshots.references import Place, References
from bridge.snapshots.state import HOUR_SECONDS, MAX_IDS_OF_EVENT, NAMES_PER_RECORD, JobState
from tests.unit.snapshots.world import WORLD, bet, item, mention

HOUR = 1_790_000_000 // HOUR_SECONDS * HOUR_SECONDS
EVENT, OTHER = WORLD.events[:2]


class Topic(dict[bytes, bytes]):
    """A compacted topic, to which each state writes what it has changed."""

    def state(self) -> JobState:
        return JobState("translations", self)

    def take(self, state: JobState) -> None:
        for key, value in state.changes().items():
            if value is None:
                self.pop(key, None)
            else:
                assert len(value) < 1_000_000
                self[key] = value


def learnt(topic: Topic, references: References, hour: int = HOUR, *, seen: bool = False) -> JobState:
    """After a run that learnt that."""
    state = topic.state()
    state.learn(hour, references)
    state.learnt({0: 5}, "topic", 30)
    if seen:
        state.mark_seen()
    topic.take(state)
    return topic.state()


def keys(references: References) -> set[bytes]:
    return {key for kind in KINDS for key in references.keys(kind)}


def test_what_bets_mention_is_remembered() -> None:
    references = mention(EVENT, OTHER, currencies=["EUR"])
    references.add(bet([item(None, selectionId=7, sportId=3, market={"id": 5, "type": 18})]))
    state = learnt(Topic(), references)
    assert state.references(0, full=True) == references
    assert state.in_use().events == references.events
    assert state.in_use().market_types == references.market_types
    assert not state.in_use().markets
    selections = references.all_selections()
    assert state.selections_in_use([*selections, -5]) == selections
    assert state.selections_in_use([-5]) == set()
    assert (state.position, state.topic_id, state.newest) == ({0: 5}, "topic", HOUR)


def test_what_is_new_is_new_until_a_snapshot_has_seen_it() -> None:
    topic = Topic()
    learnt(topic, References(), seen=True)
    learnt(topic, mention(EVENT))
    state = learnt(topic, mention(OTHER))
    assert state.references(math.inf, full=False).events.keys() == {EVENT.id, OTHER.id}
    state.mark_seen()
    topic.take(state)
    assert keys(topic.state().references(math.inf, full=False)) == set()
    assert keys(learnt(topic, mention(EVENT)).references(math.inf, full=False)) == set()
    assert learnt(topic, mention(EVENT), HOUR + HOUR_SECONDS).references(
        math.inf, full=False
    ).events.keys() == {EVENT.id}


def test_before_the_first_snapshot_only_what_is_recent_is_new() -> None:
    topic = Topic()
    learnt(topic, mention(EVENT), HOUR - 10 * HOUR_SECONDS)
    state = learnt(topic, mention(OTHER))
    for full in (False, True):
        assert state.references(HOUR, full=full).events.keys() == {OTHER.id}
    state.mark_seen()
    topic.take(state)
    third = WORLD.events[2]
    state = learnt(topic, mention(third), HOUR - 20 * HOUR_SECONDS)
    assert state.references(HOUR, full=False).events.keys() == {third.id}
    assert state.references(HOUR, full=True).events.keys() == {OTHER.id, third.id}


def test_a_new_market_or_selection_makes_its_event_new() -> None:
    topic = Topic()
    first, more = References(), References()
    first.add(bet([item(EVENT, market={"id": 1, "type": 9}, selectionId=2)]))
    more.add(bet([item(EVENT, market={"id": 3, "type": 9}, selectionId=2)]))
    learnt(topic, first, seen=True)
    state = learnt(topic, more)
    assert state.references(math.inf, full=False).markets == {EVENT.id: {1, 3}}
    assert state.references(math.inf, full=False).selections == {EVENT.id: {2}}


def test_the_last_bet_says_where_an_event_is() -> None:
    topic = Topic()
    new, old = References(events={7: Place(3, 2, 1)}), References(events={7: Place(1, 1, 1)})
    learnt(topic, new)
    state = learnt(topic, old, HOUR - HOUR_SECONDS)
    assert state.in_use().events == {7: Place(3, 2, 1)}
    assert state.newest == HOUR


def test_what_no_bet_has_mentioned_for_long_is_forgotten() -> None:
    topic = Topic()
    learnt(topic, mention(EVENT), HOUR - 10 * HOUR_SECONDS, seen=True)
    state = learnt(topic, mention(OTHER), seen=True)
    assert state.references(HOUR, full=True).events.keys() == {OTHER.id}
    state.forget(HOUR)
    topic.take(state)
    assert topic.state().in_use().events.keys() == {OTHER.id}
    assert not any(f":{EVENT.id}".encode() in key for key in topic)


def test_one_event_cannot_fill_a_record() -> None:
    ids = {2**62 + number for number in range(MAX_IDS_OF_EVENT + 100)}
    state = learnt(Topic(), References(events={7: Place(1, 1, 1)}, markets={7: ids}, selections={7: ids}))
    assert (
        len(state.references(0, full=True).selections[7])
        == len(state.references(0, full=True).markets[7])
        == MAX_IDS_OF_EVENT
    )


def test_what_is_owed_and_what_is_short_is_kept_until_it_is_not() -> None:
    topic, state = Topic(), Topic().state()
    owed = {f"event:{number}" for number in range(3 * NAMES_PER_RECORD)}
    state.owed = owed
    state.missing = {"league:9"}
    topic.take(state)
    state = topic.state()
    assert (state.owed, state.missing) == (owed, {"league:9"})
    state.owed = set(owed)
    state.missing = {"league:9"}
    assert state.changes() == {}
    state.owed = {"event:1"}
    state.missing = set()
    topic.take(state)
    assert (topic.state().owed, topic.state().missing) == ({"event:1"}, set())
    state.owed = set()
    topic.take(state)
    assert topic == {}


def test_jobs_share_the_topic_and_nothing_in_it() -> None:
    topic = Topic()
    learnt(topic, mention(EVENT))
    topic[b"anything"] = b"\xff"
    other = JobState("currencies", topic)
    assert (other.position, other.topic_id, other.newest, other.owed) == ({}, None, 0, set())
    assert keys(other.in_use()) == set()


def test_a_bet_without_a_time_can_be_remembered() -> None:
    state = JobState("translations", {})
    hour = -1 - (-1 % 3600)
    state.learn(hour, References(events={7: Place(1, 1, 1)}))
    assert state.in_use().events == {7: Place(1, 1, 1)}


def test_a_record_of_an_unknown_kind_is_not_foreign() -> None:
    records = {b"translations/later": b"{}", b"translations/seen": b"{}"}
    assert JobState("translations", records).foreign == 1

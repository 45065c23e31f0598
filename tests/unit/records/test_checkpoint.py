"""Checkpoints survive Avro and never go back."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.feed.catch_up import CatchUp
from bridge.feed.rate_limits import Attempt
from bridge.records.checkpoint import Checkpoint, Move, State, UnprovenReplay
from bridge.records.counters import Counters
from bridge.records.reach import PartitionReach, TopicReach

CODEC = Codec(load("feed-checkpoint"), 3)
CHECKPOINT = Checkpoint(
    feed="settlement-v4",
    revision=1_790_000_000,
    state=State.LIVE,
    ledger=(
        Attempt(1_789_000_000.25, 0, True),
        Attempt(1_789_000_100.5, 100, False, 1_789_000_101.125, True, 1_789_000_701.125),
        Attempt(1_789_000_200.0, 3_599, False, 1_789_000_200.0, False),
    ),
    counters=Counters(
        26, published=6, duplicates=5, stale=4, corrections=1, dead_lettered=3, pings=7, empty=3, redriven=2
    ),
    updated_at=1_790_000_090.123456,
    owner="host:1:abc",
    reason="why",
    since=1_789_999_991.0,
    until=1_790_000_009.0,
    newest=1_789_999_998.0,
    skew=-0.5,
    catch_up=CatchUp(1_789_997_000.0, 1234.5, 60.5),
    moved=Move(1_789_999_999.5, "somebody@host", 1_789_000_000, 1_788_000_000, "resent"),
    topics=(TopicReach("t.bets", "id", (PartitionReach(7, 1_790_000_000.5, 3), PartitionReach())),),
    starting=True,
    bets_schema=9,
    unproven=UnprovenReplay(1_790_000_000, 1_789_999_999.5, 1_789_999_998.0),
)


@pytest.mark.parametrize("state", State)
def test_every_field_survives_avro_in_each_state(state: State) -> None:
    ledger = CHECKPOINT.ledger * (5_000 if state is State.LIVE else 5)
    least = Checkpoint("f", 0, state, ledger, Counters(), 0.0, "", newest=-62_135_596_800.0)
    for checkpoint in (replace(CHECKPOINT, state=state), least):
        assert Checkpoint.from_avro(CODEC.decode(CODEC.encode(checkpoint.to_avro()))) == checkpoint


def test_an_unknown_class_of_attempts_counts_as_the_strictest() -> None:
    datum = CHECKPOINT.to_avro()
    datum["connections"][1]["class"] = "Unknown"
    assert [attempt.initial for attempt in Checkpoint.from_avro(datum).ledger] == [True, True, False]


def test_a_revision_never_goes_back() -> None:
    assert replace(CHECKPOINT, revision=CHECKPOINT.revision + 1).follows(CHECKPOINT)
    assert not replace(CHECKPOINT, revision=CHECKPOINT.revision - 1).follows(CHECKPOINT)


@pytest.mark.parametrize("counter", [field.name for field in fields(Counters)])
def test_no_counter_ever_goes_back(counter: str) -> None:
    counters = CHECKPOINT.counters
    more = replace(counters, **{counter: getattr(counters, counter) + 1})
    assert replace(CHECKPOINT, counters=more).follows(CHECKPOINT)
    assert not CHECKPOINT.follows(replace(CHECKPOINT, counters=more))


@pytest.mark.parametrize("counter", [field.name for field in fields(Counters) if field.name != "corrections"])
def test_every_message_has_one_outcome(counter: str) -> None:
    counters = CHECKPOINT.counters
    assert counters.balanced
    assert not replace(counters, **{counter: getattr(counters, counter) + 1}).balanced
    assert replace(counters, corrections=0).balanced


@pytest.mark.parametrize("counter", [field.name for field in fields(Counters) if field.name != "corrections"])
def test_what_a_newer_bridge_has_counted_is_made_up_for(counter: str) -> None:
    counters = replace(CHECKPOINT.counters, **{counter: 10_000})
    counters.balance()
    assert counters.balanced

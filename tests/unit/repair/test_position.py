"""Where an operator may move the position to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from bridge.avro.codec import Codec
from bridge.avro.schemas import load
from bridge.config import FeedSettings, Settings
from bridge.errors import SettingsError
from bridge.inspection.limits import LimitForecast
from bridge.records import topics
from bridge.records.checkpoint import Checkpoint, State, UnprovenReplay
from bridge.records.counters import Counters
from bridge.repair.position import MovePlan, commit_move, first_revision, parse_revision, plan_move
from bridge.stored.reach_reader import Lost

NOW = 1_790_000_000.5


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        ("1789990000", 1_789_990_000),
        ("2026-09-21T13:20:00.9Z", 1_789_996_800),
        ("2026-09-21T15:20:00+02:00", 1_789_996_800),
        ("90s", 1_789_999_910),
        ("2h", 1_789_992_800),
    ],
)
def test_a_position_is_given_as_seconds_a_time_or_an_age(text: str, revision: int) -> None:
    assert parse_revision(text, NOW) == revision


@pytest.mark.parametrize("text", ["", "noon", "2026-09-21T13:20:00", "-5", "1.5", "2 h", "1" * 14])
def test_anything_else_is_refused_with_what_would_do(text: str) -> None:
    with pytest.raises(SettingsError, match=r"^--revision: .* is not a time: give one with its zone"):
        parse_revision(text, NOW)


@pytest.mark.parametrize("unit", ["milliseconds", "microseconds", "nanoseconds"])
def test_a_finer_unit_is_named_with_the_value_in_seconds(unit: str) -> None:
    text = "1789990000".ljust({"milliseconds": 13, "microseconds": 16, "nanoseconds": 19}[unit], "7")
    with pytest.raises(SettingsError, match=f"^--revision: {text} is in {unit}: give seconds, 1789990000$"):
        parse_revision(text, NOW)


def test_a_reset_goes_to_the_start_of_the_settings() -> None:
    assert first_revision(FeedSettings(start="2h"), NOW) == 1_789_992_800
    with pytest.raises(SettingsError, match=r"feed.start \(BRIDGE_FEED__START\) is 0"):
        first_revision(FeedSettings(), NOW)


def test_the_present_position_changes_something_only_behind_a_gap() -> None:
    def plan(state: State, revision: int) -> MovePlan:
        checkpoint = Checkpoint("f", 1_000, state, (), Counters(), NOW, "o")
        forecast = LimitForecast(Settings(), checkpoint, NOW, revision)
        return MovePlan(checkpoint, revision, 0.0, 0, forecast, 3_600.0, None, (), None)

    assert not plan(State.STOPPED, 1_000).changes
    assert plan(State.STOPPED, 999).changes
    assert plan(State.STOPPED_ON_GAP, 1_000).changes
    assert plan(State.STOPPED_ON_GAP, 1_000).gap is None


def moved(planned: Checkpoint, owned: Checkpoint, lost: Lost | None = None) -> Checkpoint:
    """Return the checkpoint of a move to 900."""
    forecast = LimitForecast(Settings(), planned, NOW, 900)
    plan = MovePlan(planned, 900, 0.0, 0, forecast, 3_600.0, None, (), lost)
    committed: list[Checkpoint] = []
    owner: Any = SimpleNamespace(
        checkpoint=owned,
        owner_id="me",
        commit=lambda batch, checkpoint, *_: committed.append(checkpoint),
        topics=topics.declare(Settings()),
        codecs=SimpleNamespace(gaps=Codec(load("feed-gap"), 1)),
    )
    commit_move(owner, plan, "why")
    [found] = committed
    return found


def test_a_move_is_possible_after_a_rollback_from_a_version_that_counted_more() -> None:
    planned, owned = (
        Checkpoint("f", 1_000, State.LIVE, (), Counters(received=107, published=100), NOW, "o") for _ in "po"
    )
    owned.counters.balance()
    assert moved(planned, owned).revision == 900


@pytest.mark.parametrize("lost", [None, Lost("records are lost", 950)])
def test_what_is_lost_is_not_awaited_after_a_move(lost: Lost | None) -> None:
    unproven = UnprovenReplay(1_000, NOW - 1, NOW - 5)
    before = Checkpoint("f", 1_000, State.STOPPED, (), Counters(), NOW, "o", newest=NOW, unproven=unproven)
    found = moved(before, before, lost)
    assert (found.newest, found.unproven) == ((None, None) if lost else (NOW, unproven))


@pytest.mark.parametrize(("revision", "updated_at"), [(NOW + 86_400, NOW - 60), (NOW - 60, NOW + 86_400)])
def test_a_position_by_a_clock_that_was_ahead_is_left_to_the_bridge(
    revision: float, updated_at: float
) -> None:
    checkpoint = Checkpoint("f", int(revision), State.STOPPED, (), Counters(), updated_at, "o")
    with pytest.raises(SettingsError, match="start `bridge run`: it goes back to what is certain"):
        plan_move(Settings(), checkpoint, int(NOW) - 3_600, NOW)

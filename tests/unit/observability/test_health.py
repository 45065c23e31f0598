"""When a bridge is healthy and ready, state by state, in virtual time."""

from __future__ import annotations

import pytest

from bridge.formatting import format_duration
from bridge.observability.health import (
    COMMIT_SECONDS,
    LOOP_SECONDS,
    START_SECONDS,
    HealthStatus,
    healthy,
    ready,
)
from bridge.observability.status import StatusSnapshot
from bridge.ownership.group import Group
from bridge.records.checkpoint import State
from tests.snapshots import replace, snapshot

NOW = 1_790_000_000.0
IDLE_TIMEOUT = 60.0
PATIENCE = IDLE_TIMEOUT + COMMIT_SECONDS
LONG_AGO = NOW - 86_400.0
MOVING = [State.CONNECTING, State.CATCHING_UP, State.LIVE, State.QUIET, State.IDLE_TIMEOUT]
PATIENT = [
    State.STANDBY,
    State.WAITING_FOR_LIMIT,
    State.BACKING_OFF,
    State.WAITING_FOR_KAFKA,
    State.STOPPED_ON_GAP,
    State.STOPPED,
]
READY = [*MOVING, State.STANDBY, State.WAITING_FOR_LIMIT, State.BACKING_OFF]


def status(
    state: State | None, *, since: float = LONG_AGO, committed_at: float | None = LONG_AGO
) -> StatusSnapshot:
    return snapshot(
        at=NOW,
        started_at=LONG_AGO,
        feed="f",
        idle_timeout_seconds=IDLE_TIMEOUT,
        owner_id="me",
        state=state,
        reason="why",
        since=since,
        committed_at=committed_at,
    )


def test_every_state_is_judged() -> None:
    assert {*MOVING, *PATIENT} == set(State)


@pytest.mark.parametrize("state", MOVING)
@pytest.mark.parametrize(
    ("since", "committed_at"),
    [(LONG_AGO, NOW - PATIENCE), (NOW - PATIENCE, LONG_AGO), (NOW - PATIENCE, None)],
)
def test_a_state_that_commits_is_healthy_while_it_does(
    state: State, since: float, committed_at: float | None
) -> None:
    last = status(state, since=since, committed_at=committed_at)
    assert healthy(last, NOW) == HealthStatus(True, "why")
    later = replace(last, at=NOW + 1)
    assert healthy(later, NOW + 1) == HealthStatus(False, f"no commit for {format_duration(PATIENCE + 1)}")
    assert ready(later, NOW + 1) == healthy(later, NOW + 1)
    assert healthy(replace(later, idle_timeout_seconds=IDLE_TIMEOUT + 1), NOW + 1).ok


@pytest.mark.parametrize("state", PATIENT)
def test_waiting_for_something_outside_is_healthy(state: State) -> None:
    assert healthy(status(state), NOW) == HealthStatus(True, "why")


@pytest.mark.parametrize("state", [None, *State])
def test_a_silent_event_loop_is_neither_healthy_nor_ready(state: State | None) -> None:
    last = replace(status(state, since=NOW, committed_at=NOW), started_at=NOW)
    assert healthy(last, NOW + LOOP_SECONDS).ok
    dead = HealthStatus(False, "the event loop has been silent for 11s")
    assert healthy(last, NOW + LOOP_SECONDS + 1) == dead
    assert ready(last, NOW + LOOP_SECONDS + 1) == dead


def test_a_starting_bridge_is_healthy_for_a_while_but_not_ready() -> None:
    starting = replace(status(None), started_at=NOW - START_SECONDS)
    assert healthy(starting, NOW).ok
    assert ready(starting, NOW) == HealthStatus(False, "still starting")
    assert not healthy(replace(starting, started_at=NOW - START_SECONDS - 1), NOW).ok


@pytest.mark.parametrize("state", [State.WAITING_FOR_LIMIT, State.BACKING_OFF])
def test_a_wait_before_a_connection_has_an_end(state: State) -> None:
    waiting = status(state)
    assert healthy(replace(waiting, until=NOW + 1_800), NOW).ok
    assert healthy(replace(waiting, until=NOW - PATIENCE), NOW).ok
    assert not healthy(replace(waiting, until=NOW - PATIENCE - 1), NOW).ok


@pytest.mark.parametrize("state", State)
def test_a_bridge_that_waits_for_kafka_or_has_stopped_is_not_ready(state: State) -> None:
    assert ready(status(state, committed_at=NOW), NOW) == HealthStatus(state in READY, "why")


def test_a_bridge_that_stands_by_for_a_feed_that_nobody_can_own_is_not_ready() -> None:
    standby = replace(status(State.STANDBY), group=Group())
    assert ready(standby, NOW).ok
    gone = replace(standby, group=Group(gone="settlement.checkpoints"))
    refused = replace(standby, refused=True, group=None)
    for vain in (gone, refused):
        assert (healthy(vain, NOW).ok, ready(vain, NOW)) == (True, HealthStatus(False, "why"))


@pytest.mark.parametrize("state", MOVING)
def test_a_bridge_that_can_convert_nothing_is_healthy_but_not_ready(state: State) -> None:
    vain = replace(status(state, committed_at=NOW), unconverted="nothing can be converted")
    assert healthy(vain, NOW) == HealthStatus(True, "why")
    assert ready(vain, NOW) == HealthStatus(False, "nothing can be converted")

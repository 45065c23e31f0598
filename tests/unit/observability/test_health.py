"""When a bridge is healthy and ready, state by state, in virtual time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.observability.health import (
    COMMIT_SECONDS,
    LOOP_SECONDS,
    START_SECONDS,
    HealthStatus,
    healthy,
    ready,
)
from bridge.observability.view import StatusSnapshot
from bridge.state.checkpoint import State

NOW = 1_790_000_000.0
SILENCE = 60.0
PATIENCE = SILENCE + COMMIT_SECONDS
LONG_AGO = NOW - 86_400.0
MOVING = [State.CONNECTING, State.CATCHING_UP, State.LIVE, State.QUIET, State.IDLE_TIMEOUT]
PATIENT = [
    State.STANDBY,
    State.WAITING_FOR_LIMIT,
    State.WAITING_FOR_KAFKA,
    State.STOPPED_ON_GAP,
    State.STOPPED,
]
READY = [*MOVING, State.STANDBY, State.WAITING_FOR_LIMIT]


def view(
    state: State | None, *, since: float = LONG_AGO, committed_at: float | None = LONG_AGO
) -> StatusSnapshot:
    return StatusSnapshot(
        at=NOW,
        started_at=LONG_AGO,
        feed="f",
        owner_id="me",
        state=state,
        reason="why",
        since=since,
        committed_at=committed_at,
    )


def test_every_state_is_judged() -> None:
    """A new one has to be thought about."""
    assert {*MOVING, *PATIENT} == set(State)


@pytest.mark.parametrize("state", MOVING)
def test_a_state_that_commits_is_healthy_while_it_does(state: State) -> None:
    """To the second."""
    assert healthy(view(state, committed_at=NOW - PATIENCE), NOW, SILENCE) == HealthStatus(True, "why")
    stalled = healthy(view(state, committed_at=NOW - PATIENCE - 1), NOW, SILENCE)
    assert stalled == HealthStatus(False, f"nothing was committed for {PATIENCE + 1:.0f} s")
    assert healthy(view(state, committed_at=NOW - PATIENCE - 1), NOW, SILENCE + 1).ok


@pytest.mark.parametrize("state", MOVING)
@pytest.mark.parametrize("committed_at", [None, LONG_AGO])
def test_a_state_has_its_time_from_its_beginning(state: State, committed_at: float | None) -> None:
    """After a long wait the last commit is old, or there is none."""
    assert healthy(view(state, since=NOW - PATIENCE, committed_at=committed_at), NOW, SILENCE).ok
    assert not healthy(view(state, since=NOW - PATIENCE - 1, committed_at=committed_at), NOW, SILENCE).ok


@pytest.mark.parametrize("state", PATIENT)
def test_waiting_for_something_outside_is_healthy(state: State) -> None:
    """For as long as it takes: a restart would only spend the provider's limits."""
    assert healthy(view(state), NOW, SILENCE) == HealthStatus(True, "why")


@pytest.mark.parametrize("state", [None, *State])
def test_an_event_loop_that_does_not_speak_is_neither_healthy_nor_ready(state: State | None) -> None:
    """Whatever it said last."""
    last = replace(view(state, since=NOW, committed_at=NOW), started_at=NOW)
    assert healthy(last, NOW + LOOP_SECONDS, SILENCE).ok
    dead = HealthStatus(False, "the event loop was not heard of for 11 s")
    assert healthy(last, NOW + LOOP_SECONDS + 1, SILENCE) == dead
    assert ready(last, NOW + LOOP_SECONDS + 1, SILENCE) == dead


def test_a_start_may_take_a_while() -> None:
    """It is not ready meanwhile."""
    starting = replace(view(None), started_at=NOW - START_SECONDS)
    assert healthy(starting, NOW, SILENCE).ok
    assert ready(starting, NOW, SILENCE) == HealthStatus(False, "still starting")
    assert not healthy(replace(starting, started_at=NOW - START_SECONDS - 1), NOW, SILENCE).ok


def test_a_wait_for_the_limiter_has_an_end() -> None:
    """One that goes on well after its own end is stuck; one whose end is not known is believed."""
    waiting = view(State.WAITING_FOR_LIMIT)
    assert healthy(replace(waiting, until=NOW + 1_800), NOW, SILENCE).ok
    assert healthy(replace(waiting, until=NOW - PATIENCE), NOW, SILENCE).ok
    assert not healthy(replace(waiting, until=NOW - PATIENCE - 1), NOW, SILENCE).ok


@pytest.mark.parametrize("state", State)
def test_ready_is_who_owns_the_feed_or_stands_by(state: State) -> None:
    """Not who waits for Kafka, nor who has stopped."""
    assert ready(view(state, committed_at=NOW), NOW, SILENCE) == HealthStatus(state in READY, "why")


def test_what_is_not_healthy_is_not_ready() -> None:
    """For the same reason."""
    stalled = view(State.LIVE)
    assert ready(stalled, NOW, SILENCE) == healthy(stalled, NOW, SILENCE)
    assert not ready(stalled, NOW, SILENCE).ok

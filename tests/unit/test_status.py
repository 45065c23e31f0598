"""Each change of state is told once, with its reason."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from bridge.sink.checkpoint import State
from bridge.status import Status


def test_a_state_is_told_once() -> None:
    """However often it is entered, and whatever its details are by then."""
    status = Status("f")
    with capture_logs() as lines:
        for revision in range(3):
            status.become(State.LIVE, revision=revision)
        status.become(State.QUIET, revision=9)
        status.become(State.LIVE, revision=10)
    assert [(line["state"], line["revision"]) for line in lines] == [("Live", 0), ("Quiet", 9), ("Live", 10)]
    assert lines[0]["feed"] == "f"
    assert (status.state, status.reason) == (State.LIVE, "")


def test_another_reason_for_the_same_state_is_told() -> None:
    """Silence always has a reason, and it may change."""
    status = Status("f")
    with capture_logs() as lines:
        for reason in ("5 connections", "5 connections", "the bucket"):
            status.become(State.WAITING_FOR_LIMIT, reason)
    assert [line["reason"] for line in lines] == ["5 connections", "the bucket"]
    assert status.reason == "the bucket"


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_sentence_of_its_own(state: State) -> None:
    """And a level: what an operator may have to look at is a warning."""
    with capture_logs() as lines:
        Status("f").become(state)
        for other in set(State) - {state}:
            Status("f").become(other)
    first, *others = lines
    assert first["event"] not in {line["event"] for line in others}
    ordinary = {State.CONNECTING, State.CATCHING_UP, State.LIVE, State.QUIET, State.STANDBY, State.STOPPED}
    assert first["log_level"] == ("info" if state in ordinary else "warning")

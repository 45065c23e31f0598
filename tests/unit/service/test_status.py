"""Each change of state is logged once, with its reason."""

from __future__ import annotations

from itertools import count

import pytest
from structlog.testing import capture_logs

from bridge.clock import Instant
from bridge.records.checkpoint import State
from bridge.service.status import Status


@pytest.fixture
def status() -> Status:
    """One whose clock moves on by a second each time it is looked at."""
    seconds = count(1_790_000_001)
    return Status("f", lambda: Instant(float(next(seconds)), 0.0))


def test_a_state_is_logged_once_and_again_for_another_reason(status: Status) -> None:
    with capture_logs() as lines:
        for revision in range(3):
            status.become(State.LIVE, revision=revision)
        status.become(State.QUIET, revision=9)
        status.become(State.LIVE, revision=10)
    assert [(line["state"], line["revision"]) for line in lines] == [("Live", 0), ("Quiet", 9), ("Live", 10)]
    assert lines[0]["feed"] == "f"
    assert (status.state, status.reason) == (State.LIVE, "")
    with capture_logs() as lines:
        for reason in ("5 connections", "5 connections", "the bucket"):
            status.become(State.WAITING_FOR_LIMIT, reason)
    assert [line["reason"] for line in lines] == ["5 connections", "the bucket"]
    assert status.reason == "the bucket"


@pytest.mark.parametrize("state", State)
def test_every_state_has_a_sentence_of_its_own(state: State) -> None:
    with capture_logs() as lines:
        for each in (state, *({*State} - {state})):
            Status("f", lambda: Instant(0.0, 0.0)).become(each)
    first, *others = lines
    assert first["event"] not in {line["event"] for line in others}
    ordinary = {State.CONNECTING, State.CATCHING_UP, State.LIVE, State.QUIET, State.STANDBY, State.STOPPED}
    assert first["log_level"] == ("info" if state in ordinary else "warning")


def test_it_is_known_since_when_and_until_when(status: Status) -> None:
    seen: list[float | None] = []
    with capture_logs() as lines:
        assert status.become(State.WAITING_FOR_LIMIT, "a", until=1_790_000_100.0)
        since = status.since
        assert not status.become(State.WAITING_FOR_LIMIT, "a", until=1_790_000_200.0)
        seen.append(status.until)
        assert status.become(State.WAITING_FOR_LIMIT, "b")
        assert status.since == since
        seen.append(status.until)
        assert status.become(State.LIVE)
        assert status.since > since
    assert seen == [1_790_000_200.0, None]
    assert lines[0]["until"] == "2026-09-21T14:15:00Z"
    assert "until" not in lines[1]


def test_a_final_state_stays_until_the_process_stands_by_again(status: Status) -> None:
    with capture_logs() as lines:
        status.become(State.STOPPED, "the clocks are too far apart")
        assert not status.become(State.STOPPED)
        assert not status.become(State.WAITING_FOR_KAFKA, "no answer")
        assert (status.state, status.reason) == (State.STOPPED, "the clocks are too far apart")
        assert status.become(State.STANDBY)
        assert status.become(State.STOPPED)
    assert [line["log_level"] for line in lines] == ["warning", "info", "info"]

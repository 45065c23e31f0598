"""Time-outs grow while no answer comes in time, and shrink when answers come early."""

from __future__ import annotations

from bridge.kafka.patience import CALL_SECONDS, MOST, Patience


def waits(trip: float) -> list[bool]:
    """Whether each of some calls, of one round trip that takes so long, got its answer."""
    patience, answered = Patience(), list[bool]()
    for _ in range(10):
        answered.append(trip < CALL_SECONDS * patience.factor)
        if answered[-1]:
            patience.answered(trip)
        else:
            patience.ran_out()
    return answered


def test_a_long_way_needs_a_few_tries_once() -> None:
    assert waits(1.9) == [True] * 10
    assert waits(3.0) == [False] + [True] * 9
    assert waits(7.0) == [False] * 2 + [True] * 8
    assert not any(waits(CALL_SECONDS * MOST))


def test_a_request_that_nobody_took_needs_no_longer_time_out() -> None:
    patience = Patience()
    patience.unanswered(0.1)
    assert patience.factor == 1.0
    patience.unanswered(CALL_SECONDS)
    assert patience.factor == 2.0


def test_it_is_as_usual_again_once_answers_are_early() -> None:
    patience = Patience()
    for _ in range(9):
        patience.ran_out()
    assert patience.factor == MOST
    for _ in range(2):
        patience.answered(0.01)
    assert patience.factor == 1.0

"""The edges of pacing. test_client_pace.py shows rate, refusals and pauses on the client."""

from __future__ import annotations

from bridge.rest.pacing import SLOWEST_SHARE, TIMER_SECONDS, Pace


def test_a_timer_that_fires_slightly_early_is_on_time() -> None:
    pace = Pace(1)
    pace.sent(0.0)
    assert pace.left(1 - TIMER_SECONDS / 2) == 0
    assert pace.left(1 - TIMER_SECONDS * 3) > 0


def test_refusals_of_requests_in_flight_count_once() -> None:
    pace = Pace(8)
    for moment in (1.0, 1.125, 1.25):
        pace.sent(moment)
    for moment in (1.0, 1.125, 1.25):
        pace.refused(2.0, sent_at=moment)
    assert pace.rate == 4
    pace.sent(2.25)
    pace.refused(2.5, sent_at=2.25)
    assert pace.rate == 2


def test_the_rate_has_a_floor() -> None:
    pace = Pace(64)
    for moment in range(1, 100):
        pace.refused(float(moment), sent_at=float(moment))
    assert pace.rate == 64 * SLOWEST_SHARE

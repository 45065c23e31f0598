"""When a request may be sent: evenly, later after a refusal, never in a pause."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.rest.pacing import LONGEST_PAUSE_SECONDS, SLOWEST_SHARE, TIMER_SECONDS, Pace, retry_after
from tests.unit.snapshots.provider import AT, DATE


def test_requests_are_spaced_evenly() -> None:
    """At five a second one may follow after a fifth of a second; an idle hour saves nothing up."""
    pace = Pace(5)
    assert pace.left(-100.0) == 0
    for sent in (100.0, 3700.0):
        pace.sent(sent)
        assert pace.left(sent) == pytest.approx(0.2)
        assert pace.left(sent + 0.15) == pytest.approx(0.05)
        assert pace.left(sent + 0.2) == 0


def test_a_timer_that_fires_slightly_early_is_on_time() -> None:
    """Or the loop would spin for the rest of a nanosecond."""
    pace = Pace(1)
    pace.sent(0.0)
    assert pace.left(1 - TIMER_SECONDS / 2) == 0
    assert pace.left(1 - TIMER_SECONDS * 3) > 0


def test_a_refusal_halves_the_rate_and_answers_bring_it_back() -> None:
    """By a hundredth of the configured rate each, and never above it."""
    pace = Pace(10)
    pace.sent(1.0)
    pace.refused(1.5, sent_at=1.0)
    assert pace.rate == 5
    assert pace.left(1.5) == pytest.approx(0.2)
    for _ in range(49):
        pace.answered()
    assert pace.rate == pytest.approx(9.9)
    for _ in range(10):
        pace.answered()
    assert pace.rate == 10


def test_refusals_of_requests_in_flight_count_once() -> None:
    """They were all sent at the old rate. A later one was not, and halves it again."""
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
    """A provider that refuses everything still gets requests."""
    pace = Pace(64)
    for moment in range(1, 100):
        pace.refused(float(moment), sent_at=float(moment))
    assert pace.rate == 64 * SLOWEST_SHARE


def test_a_pause_delays_everything() -> None:
    """A later, shorter one does not end it sooner. It is an hour at most."""
    pace = Pace(5)
    pace.pause(10.0, 60.0)
    pace.pause(11.0, 5.0)
    assert pace.left(12.0) == pytest.approx(58.0)
    assert pace.left(70.0) == 0
    pace.pause(100.0, inf)
    assert pace.left(100.0) == LONGEST_PAUSE_SECONDS


@given(
    rate=st.floats(0.01, 10_000),
    events=st.lists(
        st.tuples(st.sampled_from(["ask", "answered", "refused", "pause"]), st.floats(0, 100)), max_size=60
    ),
)
def test_the_configured_rate_and_every_pause_are_kept(rate: float, events: list[tuple[str, float]]) -> None:
    """In any order of answers, refusals and pauses, if each request waits as computed."""
    pace, now, sent_at, held_until = Pace(rate), 0.0, -inf, -inf
    for event, seconds in events:
        match event:
            case "ask":
                now += pace.left(now)
                assert now >= sent_at + 1 / rate - 2 * TIMER_SECONDS
                assert now >= held_until - 2 * TIMER_SECONDS
                pace.sent(now)
                sent_at = now
            case "answered":
                pace.answered()
            case "refused":
                pace.refused(now, sent_at)
            case _:
                pace.pause(now, seconds)
                held_until = max(held_until, now + seconds)
        assert rate * SLOWEST_SHARE <= pace.rate <= rate
        now += seconds / 10


@pytest.mark.parametrize(
    ("header", "date", "seconds"),
    [
        ("120", None, 120),
        (" 0 ", DATE, 0),
        ("1.5", None, 1.5),
        ("9" * 400, None, inf),
        ("Mon, 21 Sep 2026 14:14:20 GMT", DATE, 60),
        ("Mon, 21 Sep 2026 14:13:00 GMT", DATE, 0),
        # The provider's clock is an hour behind ours, which does not matter.
        ("Mon, 21 Sep 2026 13:13:50 GMT", "Mon, 21 Sep 2026 13:13:20 GMT", 30),
        ("Mon, 21 Sep 2026 14:14:20 GMT", None, 60),
        ("Mon, 21 Sep 2026 14:14:20 GMT", "yesterday", 60),
        ("Mon, 21 Sep 2026 14:14:20", DATE, 60),
        (None, DATE, None),
        ("", DATE, None),
        ("soon", DATE, None),
        ("-5", DATE, None),
        ("٣", DATE, None),
        ("Mon, 99 Sep 2026 14:14:20 GMT", DATE, None),
    ],
)
def test_a_retry_after_is_read(header: str | None, date: str | None, seconds: float | None) -> None:
    """As seconds, or as a moment by the provider's clock; anything else is ignored."""
    assert retry_after(header, date, AT) == seconds

"""The revision that may be promised where the provider's clock is not ours."""

from __future__ import annotations

import pytest

from bridge.clock_skew import Skew
from tests.unit.feed.positions import DAY, MARGIN, NOW, OUT_OF_ORDER, WINDOW, live, position, replay


@pytest.mark.parametrize("skew", [7.0, -7.0])
def test_the_revision_stays_behind_by_as_much_as_the_clocks_differ(skew: float) -> None:
    assert live(skew=skew).revision == NOW - OUT_OF_ORDER - MARGIN - 7
    assert replay(position(skew=skew), [NOW - DAY] * WINDOW).revision == NOW - DAY - MARGIN - 7


@pytest.mark.parametrize("skew", [7.0, -7.0])
def test_it_is_replaying_for_as_much_longer(skew: float) -> None:
    made = live(skew=skew)
    assert made.replaying(NOW + OUT_OF_ORDER + MARGIN + 7)
    assert not made.replaying(NOW + OUT_OF_ORDER + MARGIN + 7.001)


def test_a_time_ahead_of_now_by_the_skew_is_near_and_plausible() -> None:
    made = replay(position(skew=7), [NOW + 7] * 2)
    assert made.newest == NOW + 7
    assert not made.live
    assert replay(made, [NOW + 7]).live
    made = replay(position(skew=7), [NOW + 7.001] * 3)
    assert made.newest is None
    assert not made.live


def test_fifty_times_in_a_row_from_the_future_show_the_skew() -> None:
    made = replay(position(), [*[NOW + DAY] * 10, NOW + 1, *[NOW + 5] * 20, *[NOW + 3] * (WINDOW - 32)])
    assert made.skew == 0
    made.data(NOW, NOW + 5)
    assert made.skew == 5
    replay(made, [NOW + 5] * 3)
    assert made.live
    assert made.revision == NOW - OUT_OF_ORDER - MARGIN - 5


def test_a_time_that_is_not_from_the_future_begins_the_count_anew() -> None:
    """What was seen before it says nothing any more; nor is what the skew explains from the future."""
    made = replay(position(), [NOW + 1] * (WINDOW - 1))
    made.data(NOW, NOW)
    replay(made, [NOW + 4] * (WINDOW - 1))
    assert made.skew == 0
    made.data(NOW, NOW + 4)
    assert made.skew == 4
    replay(made, [*[NOW + 7] * (WINDOW - 1), NOW + 4, *[NOW + 9] * (WINDOW - 1)])
    assert made.skew == 4
    made.data(NOW, NOW + 9)
    assert made.skew == 9


def test_the_skew_grows_when_the_clocks_drift_apart() -> None:
    made = replay(position(), [NOW + 5] * 3 * WINDOW)
    assert made.skew == 5
    replay(made, [NOW + 7, NOW + 6] * (WINDOW // 2))
    assert made.skew == 6.5
    replay(made, [NOW + 9] * (WINDOW - 1))
    assert made.skew == 6.5
    made.data(NOW, NOW + 9)
    assert made.skew == 9


def test_a_connection_begins_with_what_its_handshake_says() -> None:
    made = replay(position(), [NOW + 5] * WINDOW)
    made.connected(Skew(-4, -3))
    assert made.skew == 3
    made.connected()
    assert made.skew == 0
    replay(made, [NOW + 5] * (WINDOW - 1))
    made.connected()
    made.data(NOW, NOW + 5)
    assert made.skew == 0


def test_a_handshake_with_the_time_is_believed_and_not_the_data() -> None:
    made = position()
    made.connected(Skew(-0.25, 0.75))
    assert replay(made, [NOW + 0.75] * 3).live
    replay(made, [NOW + DAY] * (WINDOW - 1))
    assert not made.doubts_clocks
    made.data(NOW, NOW + DAY)
    assert (made.doubts_clocks, made.skew) == (True, 0)
    made.clocks_compared(Skew(4.0, 5.25))
    assert (made.doubts_clocks, made.skew) == (False, 4)
    replay(made, [NOW + 5.25] * 3)
    made.ping(NOW + 10)
    assert made.revision == NOW + 10 - OUT_OF_ORDER - MARGIN - 4
    made.connected(Skew(-9.0, -8.0))
    replay(made, [NOW + 0.25] * 3)
    assert (made.skew, made.live) == (8, False)


def test_a_stall_does_not_change_what_is_known_of_the_clocks() -> None:
    made = replay(position(), [*[NOW + 3] * WINDOW, *[NOW + 5] * (WINDOW - 1)])
    made.catch_up()
    assert made.skew == 3
    made.data(NOW, NOW + 5)
    assert made.skew == 5

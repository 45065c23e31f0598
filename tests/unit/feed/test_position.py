"""The revision that may be promised, at exact moments."""

from __future__ import annotations

import pytest

from bridge.feed.position import Position
from tests.unit.feed.positions import (
    AFTER_PINGS,
    DAY,
    MARGIN,
    NO_TIME,
    NOW,
    OUT_OF_ORDER,
    SETTINGS,
    WINDOW,
    live,
    position,
    replay,
)


def test_before_the_first_connection_nothing_is_known() -> None:
    made = Position(SETTINGS, int(NOW - 2 * DAY))
    assert (made.revision, made.live, made.skew) == (NOW - 2 * DAY, False, 0)
    assert (made.newest, made.last_data, made.doubts_clocks) == (None, None, False)
    assert made.replaying(NOW)
    assert not replay(made, [NOW] * 2).live
    assert replay(made, [NOW]).live
    made = Position(SETTINGS, int(NOW - 2 * DAY))
    assert replay(made, [NOW + 5] * (WINDOW - 1)).skew == 0
    assert replay(made, [NOW + 5]).skew == 5
    made = Position(SETTINGS, int(NOW - 2 * DAY))
    made.ping(NOW)
    made.ping(NOW + AFTER_PINGS)
    assert not made.live


def test_a_revision_stays_until_the_window_is_full() -> None:
    made = replay(position(), [NOW - DAY] * (WINDOW - 1))
    assert made.revision == NOW - 2 * DAY
    made.data(NOW, NOW - DAY)
    assert made.revision == NOW - DAY - MARGIN


def test_catching_up_follows_the_lowest_of_the_last_times() -> None:
    made = replay(position(), [NOW - DAY, *(NOW - DAY + 500 + n for n in range(WINDOW - 1))])
    assert made.revision == NOW - DAY - MARGIN
    made.data(NOW, NOW - DAY + 1000)
    assert made.revision == NOW - DAY + 500 - MARGIN
    assert not made.live


@pytest.mark.parametrize("settled", [NO_TIME, NOW - 2 * DAY, NOW - 3 * DAY, NOW + 1, NOW + DAY])
def test_times_that_are_not_plausible_are_ignored(settled: float) -> None:
    made = position()
    for _ in range(WINDOW - 1):
        made.data(NOW, settled)
    assert made.newest is None
    made = replay(made, [NOW - DAY] * (WINDOW - 1))
    assert made.revision == NOW - 2 * DAY
    assert not made.live
    made.data(NOW, NOW - DAY)
    assert made.revision == NOW - DAY - MARGIN


def test_the_newest_plausible_time_is_known() -> None:
    made = replay(position(), [NOW - DAY, NO_TIME, NOW - DAY - 5, NOW - DAY + 5, NOW + 5, NOW - DAY])
    assert (made.newest, made.last_data) == (NOW - DAY + 5, NOW)
    made.connected()
    assert (made.newest, made.last_data) == (None, None)


def test_a_gap_is_skipped_forwards_only() -> None:
    made = position()
    made.skip(int(NOW - DAY))
    assert made.revision == NOW - DAY
    made.skip(int(NOW - 2 * DAY))
    assert made.revision == NOW - DAY


@pytest.mark.parametrize("age", [0.0, OUT_OF_ORDER])
def test_three_times_in_a_row_near_now_make_it_live(age: float) -> None:
    made = replay(position(), [NOW - age] * 2)
    assert not made.live
    assert made.revision == NOW - 2 * DAY
    made.data(NOW, NOW - age)
    assert made.live
    assert made.revision == NOW - OUT_OF_ORDER - MARGIN


def test_what_is_not_understood_moves_nothing_until_data_near_now_come() -> None:
    made = live()
    before = made.revision
    made.invalid(NOW + 10)
    made.ping(NOW + 15)
    made.invalid(NOW + 20)
    made.data(NOW + 21, NOW - DAY)
    assert (made.revision, made.last_data) == (before, NOW + 21)
    replay(made, [NOW + 22] * 3, at=NOW + 22)
    made.invalid(NOW + 23)
    made.data(NOW + 24, NOW + 24)
    made.ping(NOW + 30)
    assert made.revision == NOW + 30 - OUT_OF_ORDER - MARGIN
    made.invalid(NOW + 40)
    assert not made.is_silent(NOW + 40 + AFTER_PINGS)
    for seconds in (50, 110, 49 + AFTER_PINGS):
        made.ping(NOW + seconds)
    assert made.revision == NOW + 30 - OUT_OF_ORDER - MARGIN
    made.ping(NOW + 50 + AFTER_PINGS)
    assert made.revision == NOW + 50 + AFTER_PINGS - OUT_OF_ORDER - MARGIN
    made.invalid(NOW + 400)
    made.connected()
    replay(made, [NOW + 500] * 3, at=NOW + 500)
    assert made.revision == NOW + 500 - OUT_OF_ORDER - MARGIN


def test_far_data_between_near_ones_do_not_hold_it_for_ever() -> None:
    made = live()
    for number in range(60):
        made.data(NOW + 4 * number, NO_TIME)
        made.data(NOW + 4 * number, NOW + 4 * number)
    assert not made.live
    replay(made, [NOW + 240] * WINDOW, at=NOW + 240)
    assert made.revision >= NOW + 120 - MARGIN


def test_after_a_clock_was_set_right_nothing_in_between_is_promised() -> None:
    made = live()
    made.connected(clock_corrected_at=NOW + 600)
    replay(made, [NOW + 601] * 3, at=NOW + 601)
    made.ping(NOW + 660)
    made.ping(NOW + 600 + OUT_OF_ORDER + 2 * MARGIN - 1)
    assert made.revision == NOW - OUT_OF_ORDER - MARGIN
    made.ping(NOW + 600 + OUT_OF_ORDER + 2 * MARGIN)
    assert made.revision == NOW + 600 + MARGIN


def test_a_revision_that_lies_in_the_future_is_taken_back() -> None:
    made = live()
    assert not made.rewound
    made.rewind_to(int(NOW - DAY))
    assert (made.revision, made.rewound) == (NOW - DAY, True)


@pytest.mark.parametrize("settled", [NOW - DAY, NO_TIME, NOW + 20.001])
def test_data_that_are_not_near_stop_it_until_three_have_been(settled: float) -> None:
    made = live()
    before = made.revision
    for what in (settled, NOW + 20, NOW + 20):
        made.data(NOW + 20, what)
        made.ping(NOW + 20)
        assert made.revision == before
    made.data(NOW + 20, NOW + 20)
    assert made.revision == NOW + 20 - OUT_OF_ORDER - MARGIN
    assert made.live


def test_the_revision_is_a_whole_second_in_the_past() -> None:
    made = live()
    made.ping(NOW + 0.999)
    assert made.revision == NOW - OUT_OF_ORDER - MARGIN


def test_a_stall_is_catching_up_again() -> None:
    made = replay(position(), [NOW - DAY] * (WINDOW - 1))
    made.catch_up()
    made.data(NOW, NOW - DAY)
    assert made.revision == NOW - 2 * DAY
    made = live()
    made.catch_up()
    assert not made.live
    replay(made, [NOW] * 2)
    assert not made.live
    made.data(NOW, NOW)
    assert made.live


def test_many_old_data_in_a_row_end_being_live() -> None:
    made = replay(live(), [NOW - DAY] * (WINDOW - 1))
    assert made.live
    made.data(NOW, NOW - OUT_OF_ORDER)
    replay(made, [NOW - DAY] * (WINDOW - 1))
    assert made.live
    made.data(NOW, NOW - DAY)
    assert not made.live


def test_it_is_replaying_until_some_time_after_it_went_live() -> None:
    made = position()
    assert made.replaying(NOW)
    replay(made, [NOW] * 3)
    made.data(NOW + 50, NOW + 50)
    assert made.replaying(NOW + OUT_OF_ORDER + MARGIN)
    assert not made.replaying(NOW + OUT_OF_ORDER + MARGIN + 0.001)
    made.catch_up()
    assert made.replaying(NOW + 1000)


def test_a_feed_that_falls_behind_while_live_gains_no_promise() -> None:
    made = live()
    before = made.revision
    for number in range(WINDOW - 1):
        made.data(NOW + 600 + number, NOW + number)
        made.ping(NOW + 600.5 + number)
        assert made.revision == before

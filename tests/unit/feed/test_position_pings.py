"""What pings say of the feed, at exact moments: that it is quiet, or nothing where it had been behind."""

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
    PINGS_ALONE,
    WINDOW,
    live,
    position,
    replay,
)


def pings(made: Position, first: float, last: float) -> Position:
    """Nothing else between these moments, every five seconds and at the last."""
    at = first
    while at < last:
        made.ping(at)
        at += 5
    made.ping(last)
    return made


def test_pings_alone_count_after_an_hour() -> None:
    made = replay(position(), [NOW - DAY] * 10)
    pings(made, NOW + 1, NOW + PINGS_ALONE)
    assert not made.live
    made.ping(NOW + 1 + PINGS_ALONE)
    assert made.live
    assert made.revision == NOW + 1 + PINGS_ALONE - OUT_OF_ORDER - MARGIN


def test_pings_alone_count_sooner_where_the_last_data_were_near() -> None:
    made = live()
    made.catch_up()
    pings(made, NOW + 10, NOW + 9.999 + AFTER_PINGS)
    assert not made.live
    made.ping(NOW + 10 + AFTER_PINGS)
    assert made.live
    assert made.revision == NOW + 10 + AFTER_PINGS - OUT_OF_ORDER - MARGIN
    made.connected()
    pings(made, NOW + 200, NOW + 199 + PINGS_ALONE)
    assert not made.live


def test_a_ping_after_silence_promises_nothing_that_may_be_on_its_way() -> None:
    longest = OUT_OF_ORDER + MARGIN
    for silence, is_live in ((longest, True), (longest + 1, False)):
        made = live()
        made.ping(NOW + 1)
        for late in (0.0, 0.001, 0.002):
            made.ping(NOW + 1 + silence + late)
        assert made.live is is_live
        assert made.revision <= NOW + 1
    replay(made, [NOW + 60 + silence] * 3, at=NOW + 60 + silence)
    assert made.live


def test_a_feed_that_pings_alone_made_live_is_so_again_after_a_stall() -> None:
    made = pings(position(), NOW, NOW + PINGS_ALONE)
    made.catch_up()
    pings(made, NOW + PINGS_ALONE, NOW + PINGS_ALONE + AFTER_PINGS)
    assert made.live


@pytest.mark.parametrize("settled", [NOW - DAY, NO_TIME, NOW + DAY])
def test_pings_after_data_that_are_not_near_must_last_for_an_hour(settled: float) -> None:
    for between in ([settled], [settled, NOW, NOW]):
        made = live()
        before = made.revision
        for what in between:
            made.data(NOW, what)
        pings(made, NOW + 10, NOW + 9 + PINGS_ALONE)
        assert made.revision == before
        made.ping(NOW + 10 + PINGS_ALONE)
        assert made.revision == NOW + 10 + PINGS_ALONE - OUT_OF_ORDER - MARGIN
        made = live()
        made.catch_up()
        for what in between:
            made.data(NOW, what)
        pings(made, NOW + 10, NOW + 9 + PINGS_ALONE)
        assert not made.live


@pytest.mark.parametrize("count", [1, WINDOW - 1, WINDOW, WINDOW + 10])
def test_a_live_feed_that_falls_behind_and_pauses_gains_nothing_by_its_pings(count: int) -> None:
    made = live()
    for number in range(count):
        made.data(NOW + 600 + number / 10, NOW + number / 10)
    before = made.revision
    assert before <= NOW
    pings(made, NOW + 610, NOW + 810)
    assert made.revision == before


def test_pings_that_end_a_catch_up_forget_what_was_far() -> None:
    made = position()
    for number in range(WINDOW):
        made.data(NOW + number, NOW - DAY + number)
    pings(made, NOW + 100, NOW + 100 + PINGS_ALONE)
    assert made.live
    replay(made, [NOW - DAY] * (WINDOW - 1), at=NOW + 101 + PINGS_ALONE)
    assert made.live
    made.data(NOW + 101 + PINGS_ALONE, NOW - DAY)
    assert not made.live


def test_quiet_is_live_without_data_for_long() -> None:
    made = live()
    pings(made, NOW + 10, NOW + 100)
    assert not made.is_silent(NOW + AFTER_PINGS)
    assert made.is_silent(NOW + AFTER_PINGS + 0.001)
    made.data(NOW + 130, NO_TIME)
    assert not made.is_silent(NOW + 140)
    made.catch_up()
    assert not made.is_silent(NOW + 1000)


def test_a_feed_that_never_sent_data_is_quiet_once_it_counts_as_live() -> None:
    made = position()
    pings(made, NOW, NOW + PINGS_ALONE)
    assert made.is_silent(NOW + PINGS_ALONE)


def test_it_is_held_when_it_is_live_and_has_promised_nothing_for_long() -> None:
    made = live()
    pings(made, NOW + 10, NOW + 100)
    assert not made.is_stalled(NOW + 100 + AFTER_PINGS)
    assert made.is_stalled(NOW + 100.001 + AFTER_PINGS)
    for seconds in (150, 200):
        made.data(NOW + seconds, NOW - DAY)
    made.ping(NOW + 210)
    assert made.is_stalled(NOW + 220.001)
    replay(made, [NOW + 220] * 2, at=NOW + 220)
    assert made.is_stalled(NOW + 221)
    made.data(NOW + 220, NOW + 220)
    assert not made.is_stalled(NOW + 221)

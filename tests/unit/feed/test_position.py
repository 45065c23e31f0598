"""The revision that may be promised, at exact moments."""

from __future__ import annotations

import pytest

from bridge.feed.position import BLIND_QUIET_SECONDS, WINDOW, Position, PositionSettings

OVERLAP, DISORDER, QUIET = 30.0, 60.0, 120.0
NOW = 1_790_000_000.0
DAY = 86_400.0
NO_TIME = -62_135_596_800.0
"""0001-01-01, which some senders use for 'not set'."""


def position(revision: float = NOW - 2 * DAY) -> Position:
    """Connected, with a revision of two days ago."""
    made = Position(PositionSettings(OVERLAP, DISORDER, QUIET), int(revision))
    made.connected()
    return made


def live() -> Position:
    """Live since NOW."""
    made = position()
    made.data(NOW, NOW)
    return made


def replay(made: Position, settled: list[float], at: float = NOW) -> Position:
    for moment in settled:
        made.data(at, moment)
    return made


def test_a_revision_stays_until_the_window_is_full() -> None:
    """Fewer than 50 plausible times promise nothing."""
    made = replay(position(), [NOW - DAY] * (WINDOW - 1))
    assert made.revision == NOW - 2 * DAY
    made.data(NOW, NOW - DAY)
    assert made.revision == NOW - DAY - OVERLAP


def test_catching_up_follows_the_lowest_of_the_last_times() -> None:
    """The lowest counts for as long as it is among the last 50."""
    made = replay(position(), [NOW - DAY, *(NOW - DAY + 500 + n for n in range(WINDOW - 1))])
    assert made.revision == NOW - DAY - OVERLAP
    made.data(NOW, NOW - DAY + 1000)
    assert made.revision == NOW - DAY + 500 - OVERLAP
    assert not made.live


@pytest.mark.parametrize("settled", [NO_TIME, None, NOW - 2 * DAY, NOW - 3 * DAY, NOW + 1, NOW + DAY])
def test_times_that_are_not_plausible_are_ignored(settled: float | None) -> None:
    """No time, one at or before the revision and one from the future fill no window."""
    made = position()
    for _ in range(WINDOW):
        made.data(NOW, settled)
    assert made.newest is None
    made = replay(made, [NOW - DAY] * (WINDOW - 1))
    assert made.revision == NOW - 2 * DAY
    assert not made.live
    made.data(NOW, NOW - DAY)
    assert made.revision == NOW - DAY - OVERLAP


def test_the_newest_plausible_time_is_known() -> None:
    """It is that of this connection, and the future does not count."""
    made = replay(position(), [NOW - DAY, NOW - 2 * DAY - 1, NOW - DAY - 5, NOW + 5])
    assert made.newest == NOW - DAY
    made.connected()
    assert made.newest is None


@pytest.mark.parametrize("age", [0.0, DISORDER])
def test_a_time_within_the_disorder_of_now_makes_it_live(age: float) -> None:
    """Then the revision is the time of receipt, less disorder and overlap, with one message already."""
    made = position()
    made.data(NOW, NOW - age)
    assert made.live
    assert made.revision == NOW - DISORDER - OVERLAP


@pytest.mark.parametrize("age", [DISORDER + 0.001, -0.001])
def test_a_time_outside_the_disorder_does_not(age: float) -> None:
    """Neither a little older nor from the future."""
    made = position()
    made.data(NOW, NOW - age)
    assert not made.live
    assert made.revision == NOW - 2 * DAY


def test_live_data_and_pings_move_the_revision() -> None:
    """Whatever settlementTime they carry, because the feed is in order."""
    made = live()
    made.ping(NOW + 10)
    assert made.revision == NOW + 10 - DISORDER - OVERLAP
    for settled in (NOW + 20, NOW - DAY, NO_TIME, None):
        made.data(NOW + 20, settled)
        assert made.revision == NOW + 20 - DISORDER - OVERLAP


def test_the_revision_is_a_whole_second_in_the_past() -> None:
    """A fraction is cut off, never rounded up."""
    made = position()
    made.data(NOW + 0.999, NOW)
    assert made.revision == NOW - DISORDER - OVERLAP


def test_the_revision_never_goes_back() -> None:
    """Not by a clock that is set back, nor by a reconnection, nor by what a replay brings."""
    made = live()
    made.ping(NOW - 500)
    made.connected()
    replay(made, [NOW - 300] * WINDOW)
    assert made.revision == NOW - DISORDER - OVERLAP


def test_a_reconnection_is_catching_up_again() -> None:
    """A ping right after it promises nothing."""
    made = live()
    made.connected()
    assert not made.live
    made.ping(NOW + 50)
    assert made.revision == NOW - DISORDER - OVERLAP


def test_a_stall_is_catching_up_again() -> None:
    """What is read after it may be old, and the times before it are forgotten."""
    made = replay(position(), [NOW - DAY] * (WINDOW - 1))
    made.stalled()
    made.data(NOW, NOW - DAY)
    assert made.revision == NOW - 2 * DAY
    made = live()
    made.stalled()
    assert not made.live


def test_many_old_data_in_a_row_end_being_live() -> None:
    """Fifty settled longer than the disorder ago mean that the feed is behind; one near clears that."""
    made = replay(live(), [NOW - DAY] * (WINDOW - 1))
    assert made.live
    made.data(NOW, NOW - DISORDER)
    replay(made, [NOW - DAY] * (WINDOW - 1))
    assert made.live
    made.data(NOW, NOW - DAY)
    assert not made.live


def test_pings_alone_count_after_an_hour() -> None:
    """A provider that pauses and pings in the middle of a replay does not fool it before."""
    made = replay(position(), [NOW - DAY] * 10)
    made.ping(NOW + 1)
    made.ping(NOW + BLIND_QUIET_SECONDS)
    assert not made.live
    made.ping(NOW + 1 + BLIND_QUIET_SECONDS)
    assert made.live
    assert made.revision == NOW + 1 + BLIND_QUIET_SECONDS - DISORDER - OVERLAP


def test_pings_alone_count_sooner_where_data_had_been_near() -> None:
    """After a stall on a connection that had been live, the quiet time is enough."""
    made = live()
    made.stalled()
    made.ping(NOW + 10)
    made.ping(NOW + 9 + QUIET)
    assert not made.live
    made.ping(NOW + 10 + QUIET)
    assert made.live
    made.connected()
    made.ping(NOW + 200)
    made.ping(NOW + 200 + QUIET)
    assert not made.live


def test_data_between_pings_begin_the_quiet_anew() -> None:
    """Only pings in a row say that nothing is left."""
    made = position()
    made.ping(NOW)
    made.data(NOW + 3000, NOW - DAY)
    made.ping(NOW + 3001)
    made.ping(NOW + BLIND_QUIET_SECONDS)
    assert not made.live
    made.ping(NOW + 3001 + BLIND_QUIET_SECONDS)
    assert made.live


def test_it_is_replaying_until_some_time_after_it_went_live() -> None:
    """What came before may come again for disorder and overlap more, counted from the moment it went live."""
    made = position()
    assert made.replaying(NOW)
    made.data(NOW, NOW)
    made.data(NOW + 50, NOW + 50)
    assert made.replaying(NOW + DISORDER + OVERLAP)
    assert not made.replaying(NOW + DISORDER + OVERLAP + 0.001)
    made.stalled()
    assert made.replaying(NOW + 1000)


def test_quiet_is_live_without_data_for_long() -> None:
    """Pings do not end it, data do, and a feed that is behind is never quiet."""
    made = live()
    made.ping(NOW + 100)
    assert not made.quiet(NOW + QUIET)
    assert made.quiet(NOW + QUIET + 0.001)
    made.data(NOW + 130, NO_TIME)
    assert not made.quiet(NOW + 140)
    made.stalled()
    assert not made.quiet(NOW + 1000)


def test_a_feed_that_never_sent_data_is_quiet_once_it_counts_as_live() -> None:
    """An hour of pings and nothing else."""
    made = position()
    made.ping(NOW)
    made.ping(NOW + BLIND_QUIET_SECONDS)
    assert made.quiet(NOW + BLIND_QUIET_SECONDS)


def test_a_feed_that_falls_behind_while_live_gains_no_promise() -> None:
    """Old data, one or some dozens, leave the revision where it is, and so do the pings between them."""
    made = live()
    before = made.revision
    for number in range(WINDOW - 1):
        made.data(NOW + 600 + number, NOW + number)
        made.ping(NOW + 600.5 + number)
        assert made.revision == before
    made.data(NOW + 700, NOW + 699)
    assert made.revision == NOW + 700 - DISORDER - OVERLAP


def test_after_a_late_resettlement_pings_alone_must_last_for_the_quiet_time() -> None:
    """Then the feed is taken for quiet, and the revision goes on."""
    made = live()
    made.data(NOW + 1, NOW - 3600)
    before = made.revision
    made.ping(NOW + 2)
    made.ping(NOW + 2 + QUIET - 1)
    assert made.revision == before
    made.ping(NOW + 2 + QUIET)
    assert made.revision == NOW + 2 + QUIET - DISORDER - OVERLAP

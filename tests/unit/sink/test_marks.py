"""Which rows no replay can bring back."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bridge.sink.marks import Marks, Reach

BLOCK, RANK = 1000, 900
LATE_SECONDS = 3600
NOW = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0
THEN = NOW - 2 * DAY
"""Where the feed is while catching up."""


class Feed:
    """Publications, one row each, received now unless it is said otherwise; the first was read back."""

    def __init__(self, keep_from: float = THEN - HOUR, *, read_back: bool = True) -> None:
        self.marks = Marks()
        self.row = 0
        if read_back:
            self.marks.published(0, NOW - 10 * DAY, None)
        self.marks.passed(keep_from, 0)

    def block(self, times: float | Iterable[float], at: float = NOW) -> Feed:
        """A block of bets settled at these times."""
        for settled_at in [times] * BLOCK if isinstance(times, float) else times:
            self.row += 1
            self.marks.published(self.row, at, settled_at)
        return self

    def passed(self, keep_from: float) -> int | None:
        """The row before which nothing comes again, at that revision."""
        return self.marks.passed(keep_from, self.row + 1)


def mixed(others: float, count: int, settled_at: float) -> list[float]:
    """A block in which so many, spread all over it, were settled at another time."""
    return [others if n * count // BLOCK != (n + 1) * count // BLOCK else settled_at for n in range(BLOCK)]


def test_what_was_received_long_ago_was_published_long_ago() -> None:
    """At the latest then: as of the eviction before which it came, and nothing younger than asked."""
    marks = Marks()
    marks.received(NOW)
    assert marks.passed(NOW - 90, 2) is None
    marks.received(NOW + 60)
    assert marks.passed(NOW - 30, 3) is None
    assert marks.passed(NOW, 3) is None
    assert marks.passed(NOW + 0.001, 3) == 2
    assert marks.passed(NOW + 60, 3) is None
    assert marks.passed(NOW + 60.001, 3) == 3


def test_a_receipt_that_goes_back_makes_nothing_older() -> None:
    """The latest receipt counts for all rows: partitions are read back one after the other."""
    marks = Marks()
    marks.received(NOW + 60)
    marks.received(NOW)
    assert marks.passed(NOW + 59, 3) is None
    assert marks.passed(NOW + 61, 3) == 3


def test_while_catching_up_a_block_says_when_what_came_before_it_was_published() -> None:
    """Within an hour of its settlementTimes; what is in the block waits for the next."""
    feed = Feed().block(THEN).block(THEN + HOUR)
    shown = THEN + HOUR + LATE_SECONDS
    assert feed.passed(shown) is None
    assert feed.passed(shown + 1) == BLOCK + 1
    feed.block(THEN + 3 * HOUR)
    assert feed.passed(THEN + 3 * HOUR + LATE_SECONDS + 1) == 2 * BLOCK + 1


def test_the_first_block_says_nothing() -> None:
    """It may be one of late resettlements, and there is nothing to compare it with."""
    feed = Feed()
    for _ in range(5):
        feed.marks.received(NOW)
    feed.row = 5
    assert feed.block(THEN).passed(NOW) is None


def test_an_incomplete_block_says_nothing() -> None:
    """Not even one that lacks a single record."""
    feed = Feed().block(THEN).block([THEN + HOUR] * (BLOCK - 1))
    assert feed.passed(THEN + HOUR - 1) is None
    feed.block([THEN + HOUR])
    assert feed.passed(NOW) == BLOCK + 1


@pytest.mark.parametrize("late", [THEN, THEN - HOUR / 2, THEN - 2 * HOUR])
def test_a_burst_of_late_resettlements_makes_nothing_older(late: float) -> None:
    """However long it is: only a settlementTime later than all before shows where the feed is."""
    feed = Feed(THEN - DAY).block(THEN - HOUR).block(THEN)
    for _ in range(4):
        feed.block(late)
    assert feed.passed(THEN + LATE_SECONDS + 1) == BLOCK + 1
    feed.block(THEN + DAY)
    assert feed.passed(THEN + DAY + LATE_SECONDS) is None
    assert feed.passed(THEN + DAY + LATE_SECONDS + 1) == 6 * BLOCK + 1


def test_a_tenth_of_the_times_may_be_too_late() -> None:
    """A wrong clock that says now while the feed is days behind keeps nothing for longer."""
    late = BLOCK - RANK - 1
    feed = Feed().block(mixed(NOW, late, THEN)).block(mixed(NOW, late, THEN + HOUR))
    assert feed.passed(THEN + HOUR + LATE_SECONDS + 1) == BLOCK + 1
    feed = Feed().block(THEN).block(mixed(NOW - 2 * HOUR, late + 1, THEN + HOUR))
    assert feed.passed(NOW - 2 * HOUR) is None


def test_a_tenth_of_the_times_is_enough() -> None:
    """Where all others are late resettlements, the rest of them still shows where the feed is."""
    feed = Feed().block(THEN).block(mixed(THEN + DAY, BLOCK - RANK, THEN + 60))
    assert feed.passed(THEN + DAY + LATE_SECONDS) is None
    assert feed.passed(THEN + DAY + LATE_SECONDS + 1) == BLOCK + 1


@pytest.mark.parametrize("wrong", [NOW + 1, NOW + DAY, THEN - HOUR, -62_135_596_800.0])
def test_times_in_the_future_or_before_the_revision_do_not_count(wrong: float) -> None:
    """A block is only of those between."""
    feed = Feed().block(THEN).block(wrong)
    assert feed.passed(THEN - HOUR) is None
    feed.block(THEN + HOUR)
    assert feed.passed(THEN + HOUR + LATE_SECONDS + 1) == BLOCK + 1


def test_a_first_start_may_catch_up_from_before_its_revision() -> None:
    """Nothing was read back that a burst of late resettlements could make old too early."""
    for read_back, expected in ((True, None), (False, BLOCK + 1)):
        feed = Feed(NOW, read_back=read_back).block(THEN).block(THEN + HOUR)
        assert feed.passed(NOW) == expected


def test_a_block_that_was_wrong_is_put_right_by_receipt() -> None:
    """Where most times said now, what comes live later is forgotten as ever."""
    feed = Feed().block(THEN).block(NOW).block(THEN + HOUR)
    assert feed.passed(NOW) is None
    assert feed.passed(NOW + 1) == 3 * BLOCK + 1


def test_while_live_the_receipt_counts() -> None:
    """It is closer than a settlementTime and an hour."""
    feed = Feed(NOW - 90)
    for n in range(4):
        feed.block(NOW + 30 * n - 1, at=NOW + 30 * n)
        feed.passed(NOW + 30 * n - 90)
    assert feed.passed(NOW + 31) == 2 * BLOCK + 1


def test_marks_do_not_pile_up() -> None:
    """A later mark with an earlier moment takes the place of those before it."""
    feed = Feed()
    for n in range(20):
        feed.block(THEN + n)
        feed.passed(THEN)
    assert feed.passed(THEN + 19 + LATE_SECONDS + 1) == 19 * BLOCK + 1
    assert feed.passed(NOW + 1) == 20 * BLOCK + 1


def test_what_is_read_back_begins_where_a_replay_can_reach() -> None:
    """Per partition: at the block before the one that shows the feed an hour and the margins further."""
    reach = Reach(THEN + 4 * HOUR)
    for offset in range(10 * BLOCK):
        reach.read(1, 1 + offset, NOW, THEN + HOUR * (offset // BLOCK))
        reach.read(2, 5_000 + offset, NOW, THEN + DAY)
    # Blocks of the hours 0 to 9: by that of hour 2, what came before it was published by hour 3.
    assert reach.starts == {1: 1 + 2 * BLOCK}


def test_nothing_of_what_was_received_since_is_left_out_while_live() -> None:
    """However much it is: it was published about when it was received."""
    reach = Reach(NOW - 90)
    for offset in range(5 * BLOCK):
        reach.read(0, offset, NOW + offset / 1000, NOW + offset / 1000 - 1)
    assert reach.starts == {}

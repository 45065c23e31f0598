"""Which rows no replay can reach."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bridge.dedup.eviction_horizon import EvictionHorizon

BLOCK, RANK = 1000, 900
LATE_SECONDS = 3600
NOW = 1_700_000_000.0
HOUR, DAY = 3600.0, 86_400.0
THEN = NOW - 2 * DAY
"""Where the feed is while catching up."""


class Feed:
    """Publications, one row each, received now unless stated otherwise, in a crowded table.

    The connection has shown that the provider is `late` by these seconds; None if it has not.
    """

    def __init__(self, keep_from: float = THEN - HOUR, *, late: float | None = 0.0) -> None:
        self.horizons = EvictionHorizon()
        self.row = 0
        if late is not None:
            self.horizons.connected(THEN)
            for _ in range(BLOCK):
                self.horizons.observe(THEN - late)
        self.horizon(keep_from)

    def block(self, times: float | Iterable[float], at: float = NOW) -> Feed:
        """Publish a block of bets settled at these times."""
        for settled_at in [times] * BLOCK if isinstance(times, float) else times:
            self.row += 1
            self.horizons.published(self.row, at, settled_at)
        return self

    def horizon(self, keep_from: float, *, crowded: bool = True) -> int | None:
        """Return the row before which nothing is repeated, at this revision."""
        return self.horizons.horizon(keep_from, self.row + 1, crowded=crowded)


def mixed(others: float, count: int, settled_at: float) -> list[float]:
    """Return a block in which this many bets, spread evenly, were settled at another time."""
    return [others if n * count // BLOCK != (n + 1) * count // BLOCK else settled_at for n in range(BLOCK)]


def test_rows_received_long_ago_were_published_long_ago() -> None:
    horizons = EvictionHorizon()
    horizons.received(NOW)
    assert horizons.horizon(NOW - 90, 2, crowded=False) is None
    horizons.received(NOW + 60)
    assert horizons.horizon(NOW - 30, 3, crowded=False) is None
    assert horizons.horizon(NOW, 3, crowded=False) is None
    assert horizons.horizon(NOW + 0.001, 3, crowded=False) == 2
    assert horizons.horizon(NOW + 60, 3, crowded=False) is None
    assert horizons.horizon(NOW + 60.001, 3, crowded=False) == 3


def test_a_receipt_that_goes_back_makes_nothing_older() -> None:
    horizons = EvictionHorizon()
    horizons.received(NOW + 60)
    horizons.received(NOW)
    assert horizons.horizon(NOW + 59, 3, crowded=False) is None
    assert horizons.horizon(NOW + 61, 3, crowded=False) == 3


def test_during_catch_up_a_block_dates_the_rows_before_it() -> None:
    feed = Feed().block(THEN).block(THEN + HOUR)
    shown = THEN + HOUR + LATE_SECONDS
    assert feed.horizon(shown) is None
    assert feed.horizon(shown + 1) == BLOCK + 1
    feed.block(THEN + 3 * HOUR)
    assert feed.horizon(THEN + 3 * HOUR + LATE_SECONDS + 1) == 2 * BLOCK + 1


def test_the_first_block_says_nothing() -> None:
    feed = Feed()
    for _ in range(5):
        feed.horizons.received(NOW)
    feed.row = 5
    assert feed.block(THEN).horizon(NOW) is None


def test_an_incomplete_block_says_nothing() -> None:
    feed = Feed().block(THEN).block([THEN + HOUR] * (BLOCK - 1))
    assert feed.horizon(THEN + HOUR - 1) is None
    feed.block([THEN + HOUR])
    assert feed.horizon(NOW) == BLOCK + 1


@pytest.mark.parametrize("late", [THEN, THEN - HOUR / 2, THEN - 2 * HOUR])
def test_a_burst_of_late_resettlements_makes_nothing_older(late: float) -> None:
    feed = Feed(THEN - DAY).block(THEN - HOUR).block(THEN)
    for _ in range(4):
        feed.block(late)
    assert feed.horizon(THEN + LATE_SECONDS + 1) == BLOCK + 1
    feed.block(THEN + DAY)
    assert feed.horizon(THEN + DAY + LATE_SECONDS) is None
    assert feed.horizon(THEN + DAY + LATE_SECONDS + 1) == 6 * BLOCK + 1


def test_a_tenth_of_the_times_may_be_too_late() -> None:
    late = BLOCK - RANK - 1
    feed = Feed().block(mixed(NOW, late, THEN)).block(mixed(NOW, late, THEN + HOUR))
    assert feed.horizon(THEN + HOUR + LATE_SECONDS + 1) == BLOCK + 1
    feed = Feed().block(THEN).block(mixed(NOW - 2 * HOUR, late + 1, THEN + HOUR))
    assert feed.horizon(NOW - 2 * HOUR) is None


def test_a_tenth_of_the_times_is_enough() -> None:
    feed = Feed().block(THEN).block(mixed(THEN + DAY, BLOCK - RANK, THEN + 60))
    assert feed.horizon(THEN + DAY + LATE_SECONDS) is None
    assert feed.horizon(THEN + DAY + LATE_SECONDS + 1) == BLOCK + 1


@pytest.mark.parametrize("wrong", [NOW + 1, NOW + DAY, THEN - HOUR, -62_135_596_800.0])
def test_times_in_the_future_or_before_the_revision_do_not_count(wrong: float) -> None:
    feed = Feed().block(THEN).block(wrong)
    assert feed.horizon(THEN - HOUR) is None
    feed.block(THEN + HOUR)
    assert feed.horizon(THEN + HOUR + LATE_SECONDS + 1) == BLOCK + 1


def test_settlement_times_only_count_in_a_crowded_table() -> None:
    feed = Feed().block(THEN).block(THEN + HOUR)
    assert feed.horizon(NOW - HOUR, crowded=False) is None
    assert feed.horizon(NOW - HOUR) == BLOCK + 1


def test_they_do_not_count_before_the_lateness_is_measured() -> None:
    feed = Feed(late=None).block(THEN).block(THEN + HOUR)
    assert feed.horizon(NOW - HOUR) is None
    for revision, observe, expected in (
        (None, BLOCK, None),
        (THEN, BLOCK - 1, None),
        (THEN, BLOCK, BLOCK + 1),
    ):
        feed.horizons.connected(revision)
        for _ in range(observe):
            feed.horizons.observe(THEN)
        assert feed.horizon(NOW - HOUR) == expected


@pytest.mark.parametrize("late", [0.0, 100.0, 5 * HOUR])
def test_a_constant_lateness_is_respected(late: float) -> None:
    feed = Feed(THEN - DAY, late=late).block(THEN - late).block(THEN + HOUR - late)
    assert feed.horizon(THEN + HOUR + LATE_SECONDS) is None
    assert feed.horizon(THEN + HOUR + LATE_SECONDS + 1) == BLOCK + 1


def test_a_tenth_of_the_first_times_may_be_wrong() -> None:
    feed = Feed(late=None).block(THEN).block(THEN + HOUR)
    feed.horizons.connected(THEN)
    for settled_at in mixed(-62_135_596_800.0, BLOCK - RANK, THEN):
        feed.horizons.observe(settled_at)
    assert feed.horizon(THEN + HOUR + LATE_SECONDS + 1) == BLOCK + 1


def test_a_provider_that_seems_early_evicts_nothing_sooner() -> None:
    feed = Feed(late=-5 * HOUR).block(THEN).block(THEN + HOUR)
    assert feed.horizon(THEN + HOUR + LATE_SECONDS) is None


def test_a_wrong_block_is_corrected_by_receipt() -> None:
    feed = Feed().block(THEN).block(NOW).block(THEN + HOUR)
    assert feed.horizon(NOW) is None
    assert feed.horizon(NOW + 1) == 3 * BLOCK + 1


def test_while_live_the_receipt_counts() -> None:
    feed = Feed(NOW - 90)
    for n in range(4):
        feed.block(NOW + 30 * n - 1, at=NOW + 30 * n)
        feed.horizon(NOW + 30 * n - 90)
    assert feed.horizon(NOW + 31) == 2 * BLOCK + 1


def test_marks_do_not_accumulate() -> None:
    feed = Feed()
    for n in range(20):
        feed.block(THEN + n)
        feed.horizon(THEN)
    assert feed.horizon(THEN + 19 + LATE_SECONDS + 1) == 19 * BLOCK + 1
    assert feed.horizon(NOW + 1) == 20 * BLOCK + 1

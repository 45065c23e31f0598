"""When a small recovery may be asked for: the leaky bucket, at exact moments.

It holds 3,600 s and drains four seconds a second. An attempt answered at once adds two seconds to what it
asks for; one that is asked about, 22, because so much older it may be when it arrives.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from bridge.feed.rate_limits import Decision
from tests.unit.feed.ledgers import NEVER_ANSWERED, NOW, at, attempt, limiter, used, wait

FULL = (attempt(27, 3600), attempt(2, 1998))
"""Twice 100 s and 2,000 s, less what drained: 5,500 s are in the bucket."""


def test_the_bucket_may_be_filled_to_the_brim() -> None:
    made = limiter(attempt(2, 2000))
    assert wait(made, 3600 - 2002 - 22) == 0
    assert wait(made, 3600 - 2002 - 22 + 1) > 0
    assert made.decide(at(), int(NOW - 3000)).reason == "1h of small recovery in the leaky bucket"


def test_word_by_word_only_a_full_bucket_blocks() -> None:
    literal = {"bucket_may_overflow": True}
    assert wait(limiter(attempt(2, 3590), **literal), 3000) == 0
    assert wait(limiter(attempt(2, 3590)), 3000) > 500
    assert wait(limiter(*FULL, **literal), 3000) == pytest.approx((5500 - 3600) / 4, abs=0.002)


def test_the_bucket_drains_four_seconds_a_second() -> None:
    for ago in (2, 102, 402):
        level = 2002 - 4 * (ago - 2)
        assert used(limiter(attempt(ago, 2000)))["bucket"] == level
        assert wait(limiter(attempt(ago, 2000)), 3600 - level - 22) == 0
        assert wait(limiter(attempt(ago, 2000)), 3600 - level - 21) > 0
    assert used(limiter(attempt(502, 2000)))["bucket"] == 2
    assert used(limiter(attempt(503, 2000)))["bucket"] == 0
    assert used(limiter(attempt(1000, 2000), attempt(2, 10)))["bucket"] == 12
    assert used(limiter(attempt(102, 399), attempt(2, 10)))["bucket"] == 1 + 12


def test_what_was_asked_for_adds_up() -> None:
    """In the order in which it was seen, whatever order the ledger has."""
    late = attempt(302, 1000, took=200)
    assert used(limiter(late, attempt(202, 1000)))["bucket"] == (1002 - 4 * 100) + 1202 - 4 * 100
    assert used(limiter(attempt(102, 10), attempt(302, 3000), attempt(2, 10)))["bucket"] == 3026 - 1200


def test_the_settings_of_the_bucket() -> None:
    assert used(limiter(attempt(102, 2000), bucket_drain=2.0))["bucket"] == 2002 - 200
    assert wait(limiter(attempt(2, 2000), bucket_seconds=4000.0), 4000 - 2002 - 22) == 0
    assert wait(limiter(attempt(2, 2000), bucket_seconds=4000.0), 4000 - 2002 - 21) > 0
    assert used(limiter(attempt(2, 2000), large_age_seconds=1990.0))["bucket"] == 0
    assert used(limiter(attempt(2, 2000), large_age_seconds=1999.0))["bucket"] == 1999


def test_an_attempt_without_an_answer_is_in_the_bucket_at_once() -> None:
    made = limiter(attempt(2, 2000, took=NEVER_ANSWERED))
    assert used(made)["bucket"] == 2022
    assert made.usage(at(20))[-1].used == 2022
    assert made.usage(at(21))[-1].used == 2018


def test_another_clock_may_see_a_longer_recovery() -> None:
    made = limiter(attempt(2, 2000), skew=5)
    assert used(made)["bucket"] == 2007
    assert wait(made, 3600 - 2007 - 27) == 0
    assert wait(made, 3600 - 2007 - 26) > 0


def test_no_more_than_an_hour_goes_into_the_bucket() -> None:
    assert wait(limiter(), 3600) == 0
    assert used(limiter(attempt(2, 3599)))["bucket"] == 3600
    assert used(limiter(attempt(2, 3601)))["bucket"] == 3600


def test_a_recovery_grows_no_longer_than_an_hour() -> None:
    assert wait(limiter(attempt(2, 0)), 3590) == pytest.approx(2 / 4, abs=0.002)
    assert wait(limiter(attempt(2, 370)), 3500) == pytest.approx(372 / 4, abs=0.002)


def test_a_revision_ahead_of_now_asks_for_nothing() -> None:
    assert wait(limiter(*FULL), -1000) == pytest.approx(475, abs=0.002)
    assert wait(limiter(attempt(2, 3588)), -1000) == 0


def test_it_does_not_take_long_to_find_the_room() -> None:
    made = limiter(attempt(0, 0, took=NEVER_ANSWERED), timeout=11.4, bucket_seconds=3623.4)
    assert wait(made, 3588) == pytest.approx(12, abs=0.002)


@pytest.mark.parametrize("drain", [0.5, 1.0, 1.0000001])
def test_a_bucket_that_drains_hardly_faster_than_a_recovery_grows_is_no_work(drain: float) -> None:
    assert wait(limiter(attempt(2, 3000), bucket_drain=drain), 2000) == pytest.approx(1600, abs=0.01)
    nearly = limiter(attempt(2, 2000, took=0.0001), bucket_drain=drain)
    assert wait(nearly, 3600 - 2002 - 22) == pytest.approx(2024 if drain < 1 else 2000, abs=3)


def test_a_revision_that_falls_out_of_memory_grows_no_longer() -> None:
    made = limiter(attempt(2, 3598), max_age_seconds=3600.0, bucket_drain=1.5)
    until = made.decide(at(), int(NOW - 3577 + 100)).until
    assert until == pytest.approx(NOW + 100 + (3600 - 150 - 1) / 1.5, abs=1.0)


def test_a_small_recovery_becomes_large_when_it_is_older_than_an_hour_for_any_clock() -> None:
    assert wait(limiter(*FULL), 3595) == pytest.approx(5, abs=0.002)
    assert wait(limiter(*FULL, skew=7), 3595) == pytest.approx(12, abs=0.002)
    assert wait(limiter(*FULL, *[attempt(1700, 86_400)] * 5), 3595) == 1800 - 1700 + 2


def test_an_hour_is_a_small_recovery() -> None:
    assert limiter(*FULL).decide(at(), int(NOW - 3600)).until == pytest.approx(NOW, abs=0.002)
    assert limiter(*FULL).decide(at(), int(NOW - 3600)).until > NOW
    assert limiter(*FULL).decide(at(), int(NOW - 3601)) == Decision(NOW, "")


def test_the_bucket_is_asked_for_the_moment_at_which_the_window_is_free() -> None:
    window = [attempt(300 + 2 - 10, 0)] * 4
    made = limiter(*window, attempt(2, 2000))
    assert wait(made, 3600 - 2002 - 22 + 4 * 10 - 10) == 10
    assert wait(made, 3600 - 2002 - 22 + 4 * 10 - 10 + 30) == pytest.approx(20, abs=0.002)


def test_the_interfaces_own_example_of_a_client_that_stays_within() -> None:
    made = limiter()
    for number in range(1000):
        moment = at(300 * number)
        assert made.decide(moment, int(moment.wall - 600)) == Decision(moment.wall, "")
        made.attempt(moment, int(moment.wall - 600))
        made.answered(moment, refused=False)


def test_the_interfaces_own_example_of_a_client_that_does_not() -> None:
    made, waits = limiter(), []
    for number in range(6):
        moment = at(300 * number)
        until = made.decide(moment, int(moment.wall - 1800)).until
        waits.append(until > moment.wall)
        made.attempt(at(until - NOW), int(moment.wall - 1800))
        made.answered(at(until - NOW), refused=False)
    assert waits == [False, False, False, True, True, True]


@pytest.mark.parametrize("recovery", [1000, 1900, 1960, 1974, 1975, 1976])
def test_a_recovery_that_becomes_too_old_while_it_waits_grows_no_more(recovery: int) -> None:
    small = dict.fromkeys(("max_age_seconds", "bucket_seconds", "large_age_seconds"), 2000.0)
    assert wait(limiter(attempt(2, 1900), attempt(2, 500), **small), recovery) > 200


def test_what_arrives_just_now_leaks_though_another_is_on_its_way() -> None:
    """The first attempt is another process's, seen in 9 s at most; the second was answered 2 s ago."""
    answered = replace(attempt(2.5, 1823, took=0.5), retry_at=NOW)
    made = limiter(attempt(4, 1600, took=1.0, own=False), answered, skew=5, timeout=5)
    assert 0 < wait(made, 130) < 1

"""How much one transaction takes, by what Kafka has taken before."""

from __future__ import annotations

import pytest

from bridge.kafka.pace import (
    FIRST_BYTES,
    LASTS_SECONDS,
    LEAST_BYTES,
    MOST_SECONDS,
    QUICK_SECONDS,
    SIGN_SECONDS,
    SLOW_SECONDS,
    WANTED_SECONDS,
    KafkaPace,
)

MOST = 8 * 1024 * 1024


def test_it_begins_small_and_doubles_while_commits_are_quick() -> None:
    pace, sizes = KafkaPace(MOST), []
    for _ in range(8):
        sizes.append(pace.bytes)
        pace.took(pace.bytes, 1.0, 0.0)
    assert sizes == [FIRST_BYTES * 2**n for n in range(7)] + [MOST]
    assert sizes[6] == MOST
    fast = KafkaPace(MOST)
    fast.took(fast.bytes, 0.1, 0.0)
    assert fast.bytes == 4 * FIRST_BYTES
    small = KafkaPace(1000)
    small.took(1000, 0.1, 0.0)
    small.gave_up(1000, 0, 10, 0.0)
    assert small.bytes == 1000


def test_a_small_transaction_says_nothing_of_a_large_one() -> None:
    pace = KafkaPace(MOST)
    pace.took(FIRST_BYTES // 2 - 1, QUICK_SECONDS / 2, 0.0)
    assert pace.bytes == FIRST_BYTES


def test_a_larger_one_is_tried_now_and_then_if_one_is_neither_quick_nor_slow() -> None:
    pace, tried = KafkaPace(MOST), list[int]()
    for number in range(20):
        size = pace.bytes
        pace.took(size, 2.0 * size / FIRST_BYTES, 0.0)
        tried += [number] if pace.bytes > size else []
        pace.bytes = FIRST_BYTES
    assert tried == [0, 8, 16]


@pytest.mark.parametrize("trip", [0.05, 0.3, 0.6, 1.0, 2.0])
@pytest.mark.parametrize("start", [LEAST_BYTES, FIRST_BYTES, MOST])
def test_a_long_way_makes_transactions_large(trip: float, start: int) -> None:
    pace, now = KafkaPace(MOST), 0.0
    pace.bytes = start
    for _ in range(12):
        seconds = 6 * trip + pace.bytes / 10_000_000
        pace.took(pace.bytes, seconds, now := now + seconds)
    assert pace.bytes / seconds > 400_000 or pace.bytes == MOST
    assert trip < 0.3 or start == MOST or f"takes {6 * trip:.0f} s whatever its size" in pace.reason(now)


@pytest.mark.parametrize("rate", [5_000, 20_000, 50_000, 70_000, 93_000, 250_000, 500_000])
def test_it_settles_where_a_transaction_takes_seconds(rate: int) -> None:
    for start in (LEAST_BYTES, FIRST_BYTES, MOST):
        pace, now = KafkaPace(MOST), 0.0
        pace.bytes = start
        for _ in range(20):
            size = min(pace.bytes, 2_500_000)  # the settings' number of records
            seconds = size / rate
            now += seconds
            if seconds > 20:
                pace.gave_up(size, 8 / seconds, 8, now)
            else:
                pace.took(size, seconds, now)
        assert QUICK_SECONDS <= size / rate <= 2 * SLOW_SECONDS


def test_what_a_quota_takes_at_once_lets_none_grow_while_it_is_held_back_for() -> None:
    pace = KafkaPace(MOST)
    pace.on_throttle(1, QUICK_SECONDS + 0.1, 0.0)
    pace.took(FIRST_BYTES, 0.1, 0.0)
    assert pace.bytes == FIRST_BYTES
    pace.took(FIRST_BYTES, 0.1, 0.2)
    assert pace.bytes == 4 * FIRST_BYTES


@pytest.mark.parametrize("seconds", [2.1, 6.0])
def test_what_a_quota_holds_back_for_whatever_the_size_lets_them_grow_now_and_then(seconds: float) -> None:
    pace, now = KafkaPace(MOST), 0.0
    pace.bytes = FIRST_BYTES
    for _ in range(200):
        now += seconds
        pace.on_throttle(1, 2.0, now)
        pace.took(pace.bytes, seconds, now)
    assert pace.bytes > 8 * FIRST_BYTES


def test_growing_never_shrinks() -> None:
    pace = KafkaPace(1_000_000)
    pace.bytes = 1_000_000
    pace.on_throttle(1, 1.0, 0.0)
    pace.took(100_000, 2.0, 0.0)
    pace.took(600_000, 0.1, 0.1)
    assert pace.bytes == 1_000_000


def test_under_a_quota_none_grows_beyond_what_gets_through_in_seconds() -> None:
    pace = KafkaPace(MOST)
    pace.on_throttle(1, 2.0, 0.0)
    pace.took(40_000, 2.0, 1.0)
    for _ in range(4):
        pace.took(pace.bytes, 0.1, 2.0)
    assert pace.bytes == MOST_SECONDS * 20_000
    for _ in range(4):
        pace.took(pace.bytes, 0.1, 2.0 + SIGN_SECONDS)
    assert pace.bytes == MOST


def test_a_pause_of_kafka_does_not_make_it_tiny_at_once() -> None:
    pace = KafkaPace(MOST)
    pace.took(200, 60.0, 0.0)
    assert pace.bytes == FIRST_BYTES // 2


@pytest.mark.parametrize(("delivered", "expected"), [(0, 100_000), (0.1, 8_000), (1, 80_000)])
def test_what_was_given_up_goes_on_in_far_smaller_parts(delivered: float, expected: int) -> None:
    pace = KafkaPace(MOST)
    pace.bytes = MOST
    pace.gave_up(400_000, delivered, 10, 0.0)
    assert pace.bytes == max(expected, LEAST_BYTES)
    assert WANTED_SECONDS == 2.0


def test_a_broker_that_says_how_long_it_is_silent_gives_a_sign_of_life() -> None:
    pace = KafkaPace(MOST)
    assert not pace.moves(100.0)
    pace.on_throttle(2, 30.0, 100.0)
    assert pace.throttled(130.0)
    assert pace.moves(130.0)
    assert not pace.throttled(130.0 + SIGN_SECONDS)
    pace.on_throttle(2, 30.0, 130.0)
    pace.on_throttle(2, 0.0, 131.0)
    assert not pace.moves(131.0 + SIGN_SECONDS)


def test_the_reason_names_the_broker_whose_quota_it_is_and_the_rate() -> None:
    pace = KafkaPace(MOST)
    assert pace.reason(0.0) == ""
    pace.on_throttle(2, 3.0, 0.0)
    assert pace.reason(0.0) == "throttled by a quota of broker 2"
    pace.took(140_000, 2.0, 3.0)
    assert pace.slow_rate(3.0) == 70_000
    assert pace.reason(3.0) == "throttled by a quota of broker 2: 70 kB/s get through"
    pace.on_throttle(1, 3.0, 3.0)
    assert pace.reason(3.0) == "throttled by a quota of broker 1, 2: 70 kB/s get through"


def test_without_a_quota_the_reason_says_what_may_be_slow() -> None:
    pace = KafkaPace(MOST)
    pace.alive(0.0)
    assert pace.reason(0.0) == "Kafka is slow: a link, a broker or a replica"
    pace.took(246_000, 2.0, 0.0)
    assert pace.reason(0.0) == "Kafka is slow: a link, a broker or a replica: 120 kB/s get through"


def test_a_reason_lasts_and_changes_seldom() -> None:
    pace = KafkaPace(MOST)
    for second, seconds in enumerate((2.0, 2.2, 0.1, 1.9, 2.1)):
        pace.took(140_000, seconds, float(second))
        assert "70 kB/s" in pace.reason(float(second))
    for second in range(5, 20):
        pace.took(140_000, 4.0, float(second))
    assert "36 kB/s" in pace.reason(19.0) or "35 kB/s" in pace.reason(19.0)
    assert pace.reason(19.0 + LASTS_SECONDS) == ""
    assert pace.slow_rate(19.0 + LASTS_SECONDS) is None

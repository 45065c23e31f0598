"""The limits of the interface, in virtual time: each allows what it says and one more is refused."""

from __future__ import annotations

import pytest

from bridge_sandbox.provider.rate_limits import Limits, LimitSettings, Rule

NOW = 1_790_000_000.0
HOUR = 3600
DAY = 24 * HOUR


def rule(limits: Limits, now: float, revision: int | None) -> Rule | None:
    """Which limit an attempt breaks."""
    _, breach = limits.attempt(now, revision)
    return breach.rule if breach else None


def broken(limits: Limits, times: list[float], age: int | None) -> list[Rule | None]:
    """What attempts at these seconds break that each ask for recovery of `age` seconds."""
    return [rule(limits, NOW + t, None if age is None else int(NOW + t) - age) for t in times]


def test_reconnecting_for_ten_minutes_every_five_is_never_refused() -> None:
    limits = Limits()
    assert set(broken(limits, [300.0 * i for i in range(288)], 600)) == {None}
    assert limits.breaches == []


def test_reconnecting_for_thirty_minutes_every_five_is_refused_in_the_end() -> None:
    limits = Limits()
    assert broken(limits, [300.0 * i for i in range(5)], 1800) == [None, None, None, None, "bucket"]
    assert [breach.at for breach in limits.breaches] == [NOW + 1200]


@pytest.mark.parametrize(
    ("age", "window", "expected"),
    [(None, 1800, "initial"), (4 * DAY, 1800, "initial"), (0, 300, "proper"), (2 * HOUR, 1800, "large")],
)
def test_five_within_the_window_and_no_more(age: int | None, window: int, expected: Rule) -> None:
    spread = [window * i / 5 for i in range(5)]
    early, late = Limits(), Limits()
    assert broken(early, [*spread, window - 0.5], age) == [None] * 5 + [expected]
    assert broken(late, [*spread, float(window)], age) == [None] * 6


def test_another_provider_may_have_other_limits() -> None:
    settings = LimitSettings(proper_connections=2, proper_window_seconds=10, large_age_seconds=60)
    limits = Limits(settings=settings)
    assert broken(limits, [0.0, 1.0, 2.0, 20.0], 100) == [None, None, "proper", None]
    assert limits.attempt(NOW + 40, int(NOW) - 30)[0] == "large"
    drained = Limits(settings=LimitSettings(bucket_seconds=100, bucket_drain=1))
    assert broken(drained, [0.0, 1.0, 70.0], 60) == [None, "bucket", None]


def test_absent_and_too_small_share_a_window() -> None:
    limits = Limits()
    old = int(NOW) - 4 * DAY
    assert [rule(limits, NOW, revision) for revision in (None, 0, old, None, 0)] == [None] * 5
    assert rule(limits, NOW, old) == "initial"


@pytest.mark.parametrize("revision", [0, int(NOW) - 4 * DAY])
def test_zero_and_a_too_small_revision_are_older_than_an_hour_as_well(revision: int) -> None:
    limits = Limits()
    assert [rule(limits, NOW, revision) for _ in range(3)] == [None] * 3
    assert rule(limits, NOW, None) is None
    assert broken(limits, [300, 301, 302], 2 * HOUR) == [None, None, "large"]


def test_attempts_of_any_kind_are_five_in_five_minutes() -> None:
    limits = Limits()
    assert [rule(limits, NOW, revision) for revision in (None, 0, int(NOW), int(NOW), None)] == [None] * 5
    assert [rule(limits, NOW, revision) for revision in (None, int(NOW))] == ["proper"] * 2
    assert rule(limits, NOW + 300, int(NOW)) is None


def test_word_by_word_only_a_full_bucket_refuses() -> None:
    limits = Limits(bucket_may_overflow=True)
    assert broken(limits, [0, 0, 0], 3000) == [None, None, "bucket"]


@pytest.mark.parametrize(
    ("age", "kind"),
    [(3 * DAY + 1, "initial"), (3 * DAY, "large"), (HOUR + 1, "large"), (HOUR, "small"), (-60, "small")],
)
def test_an_attempt_is_classed_by_the_age_of_its_revision(age: int, kind: str) -> None:
    assert Limits().attempt(NOW, int(NOW) - age)[0] == kind


def test_a_large_recovery_spends_a_proper_connection() -> None:
    limits = Limits()
    assert broken(limits, [0, 1, 2], 2 * HOUR) == [None] * 3
    assert broken(limits, [3, 4, 5], 10) == [None, None, "proper"]


def test_the_bucket_drains_four_seconds_a_second() -> None:
    assert broken(Limits(), [0.0], HOUR) == [None]
    for wait, age, expected in ((10, 40, None), (10, 41, "bucket"), (900, HOUR, None)):
        limits = Limits()
        rule(limits, NOW, int(NOW) - HOUR)
        assert rule(limits, NOW + wait, int(NOW) + wait - age) == expected


def test_a_refused_attempt_counts_as_an_attempt() -> None:
    limits = Limits()
    assert broken(limits, [i * 10.0 for i in range(5)], 10) == [None] * 5
    assert set(broken(limits, [50.0 * i for i in range(1, 40)], 10)) == {"proper"}


@pytest.mark.parametrize("age", [None, 80_000, 1000, 450, 150, 0])
def test_scaled_limits_do_the_same_in_scaled_time(age: int | None) -> None:
    plain, scaled = Limits(), Limits(scale=4)
    start = int(NOW)
    for time in sorted(start + (i * i * 37) % 2000 for i in range(60)):
        revision = None if age is None else time - age
        expected = rule(plain, 4 * time, None if revision is None else 4 * revision)
        assert rule(scaled, time, revision) == expected
    assert scaled.breaches

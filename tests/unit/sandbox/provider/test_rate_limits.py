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


ZERO, OLD = int(NOW), 4 * DAY
"""Ages of the revision 0, and of one that is too small."""
Attempts = list[tuple[float, int | None]]


@pytest.mark.parametrize(
    ("attempts", "expected"),
    [
        pytest.param([(300 * i, 600) for i in range(288)], [None] * 288, id="ten minutes every five"),
        pytest.param([(300 * i, 1800) for i in range(5)], [None] * 4 + ["bucket"], id="half an hour"),
        pytest.param(
            [(0, age) for age in (None, ZERO, OLD, None, ZERO, OLD)],
            [None] * 5 + ["initial"],
            id="absent and too small share a window",
        ),
        *(
            pytest.param(
                [*[(0, age)] * 3, (0, None), *((300 + i, 2 * HOUR) for i in range(3))],
                [None] * 6 + ["large"],
                id=f"{name} is older than an hour as well",
            )
            for name, age in {"zero": ZERO, "one too small": OLD}.items()
        ),
        pytest.param(
            [*((0, age) for age in (None, ZERO, 0, 0, None, None, 0)), (300, 300)],
            [None] * 5 + ["proper"] * 2 + [None],
            id="five of any kind in five minutes",
        ),
        pytest.param(
            [*((i, 2 * HOUR) for i in range(3)), *((3 + i, 10) for i in range(3))],
            [None] * 5 + ["proper"],
            id="a large recovery spends a proper connection",
        ),
        pytest.param([(0, HOUR), (10, 40)], [None] * 2, id="the bucket drains four seconds a second"),
        pytest.param([(0, HOUR), (10, 41)], [None, "bucket"], id="and no more"),
        pytest.param([(0, HOUR), (900, HOUR)], [None] * 2, id="until it is empty"),
        pytest.param(
            [*((10 * i, 10) for i in range(5)), *((50 * i, 10) for i in range(1, 40))],
            [None] * 5 + ["proper"] * 39,
            id="a refused attempt counts",
        ),
    ],
)
def test_attempts_break_limits(attempts: Attempts, expected: list[Rule | None]) -> None:
    limits = Limits()
    assert [breach for at, age in attempts for breach in broken(limits, [at], age)] == expected
    refused = {NOW + at for (at, _), rule in zip(attempts, expected, strict=True) if rule}
    assert {breach.at for breach in limits.breaches} == refused


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


def test_word_by_word_only_a_full_bucket_refuses() -> None:
    limits = Limits(bucket_may_overflow=True)
    assert broken(limits, [0, 0, 0], 3000) == [None, None, "bucket"]


@pytest.mark.parametrize(
    ("age", "kind"),
    [(3 * DAY + 1, "initial"), (3 * DAY, "large"), (HOUR + 1, "large"), (HOUR, "small"), (-60, "small")],
)
def test_an_attempt_is_classed_by_the_age_of_its_revision(age: int, kind: str) -> None:
    assert Limits().attempt(NOW, int(NOW) - age)[0] == kind


@pytest.mark.parametrize("age", [None, 80_000, 1000, 450, 150, 0])
def test_scaled_limits_do_the_same_in_scaled_time(age: int | None) -> None:
    plain, scaled = Limits(), Limits(scale=4)
    start = int(NOW)
    for time in sorted(start + (i * i * 37) % 2000 for i in range(60)):
        revision = None if age is None else time - age
        expected = rule(plain, 4 * time, None if revision is None else 4 * revision)
        assert rule(scaled, time, revision) == expected
    assert scaled.breaches

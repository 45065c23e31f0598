"""How fast a replay goes, and when it will have caught up."""

from __future__ import annotations

import pytest

from bridge.feed.catch_up import CatchUp, CatchUpTracker

WALL = 1_790_000_000.0


def replay(seconds: int, *, rate: int, speed: float, behind: float) -> CatchUpTracker:
    """Looked at each second; `speed` is in seconds of the feed a second, `behind` as it began."""
    progress = CatchUpTracker()
    for second in range(seconds + 1):
        progress.observe(second, rate * second, WALL - behind + speed * second)
    return progress


def test_nothing_is_known_at_first() -> None:
    progress = CatchUpTracker()
    assert progress.catch_up(WALL) == CatchUp(None, 0.0, None)
    progress.observe(0.0, 10, None)
    assert progress.catch_up(WALL) == CatchUp(None, 0.0, None)
    progress.observe(1.0, 30, WALL - 100)
    assert progress.catch_up(WALL) == CatchUp(WALL - 100, 20.0, None)


def test_what_is_left_takes_what_is_behind_by_what_is_gained() -> None:
    progress = replay(10, rate=50, speed=11.0, behind=1000)
    found = progress.catch_up(WALL + 10)
    assert found.position == WALL - 1000 + 110
    assert found.rate == 50
    assert found.remaining == pytest.approx(90.0)  # 1000 behind, 100 of it gained


@pytest.mark.parametrize("speed", [0.0, 0.5, 1.0])
def test_a_replay_that_gains_nothing_has_no_end(speed: float) -> None:
    assert replay(10, rate=1, speed=speed, behind=100).catch_up(WALL + 10).remaining is None


def test_a_feed_at_now_has_nothing_left() -> None:
    progress = replay(10, rate=1, speed=20.0, behind=100)
    assert progress.catch_up(WALL + 10).remaining == 0


def test_only_what_was_lately_counts() -> None:
    progress = replay(60, rate=1000, speed=100, behind=100_000)
    for second in range(61, 100):
        progress.observe(second, 60_000 + 10 * (second - 60), WALL - 90_000)
    assert progress.catch_up(WALL).rate == 10
    assert progress.catch_up(WALL).remaining is None


def test_samples_are_a_second_apart() -> None:
    progress = CatchUpTracker()
    for tenth in range(100):
        progress.observe(tenth / 10, tenth, None)
    assert progress.catch_up(WALL).rate == pytest.approx(10)
    progress.observe(9.95, 10_000, None)
    assert progress.catch_up(WALL).rate == pytest.approx(10)

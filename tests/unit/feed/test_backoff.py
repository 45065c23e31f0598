"""The pause after a failure: longer each time, up to a limit, and forgotten after a good connection."""

from __future__ import annotations

import pytest

from bridge.feed.backoff import STEADY_SECONDS, UNREACHED_SECONDS, Backoff

NOW = 1000.0


def longest(scale: float = 1.0) -> Backoff:
    """Without jitter: always the longest pause."""
    return Backoff(scale, lambda _, high: high)


def pauses(backoff: Backoff, count: int, *, refused: bool) -> list[float]:
    found = []
    for _ in range(count):
        backoff.failed(NOW, lasted=0.0, refused=refused)
        found.append(backoff.left(NOW))
    return found


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        (False, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]),
        (True, [15, 30, 60, 120, 240, 300, 300]),
    ],
)
def test_a_pause_doubles_up_to_five_minutes(refused: bool, expected: list[float]) -> None:
    assert pauses(longest(), len(expected), refused=refused) == expected


def test_before_any_failure_there_is_no_pause() -> None:
    backoff = longest()
    assert backoff.left(NOW) == 0
    backoff.failed(NOW, lasted=0.0, refused=True)
    assert backoff.left(NOW + 14.5) == 0.5
    assert backoff.left(NOW + 15) == backoff.left(NOW + 100) == 0


@pytest.mark.parametrize(("lasted", "failures"), [(STEADY_SECONDS - 0.1, 4), (STEADY_SECONDS, 1)])
def test_a_connection_that_lasted_was_a_good_one(lasted: float, failures: int) -> None:
    backoff = longest()
    pauses(backoff, 3, refused=False)
    backoff.failed(NOW, lasted=lasted, refused=False)
    assert backoff.failures == failures
    assert backoff.left(NOW) == 2 ** (failures - 1)


def test_the_jitter_is_between_half_and_all_of_it() -> None:
    asked: list[tuple[float, float]] = []

    def lowest(low: float, high: float) -> float:
        asked.append((low, high))
        return low

    backoff = Backoff(1.0, lowest)
    backoff.failed(NOW, lasted=0.0, refused=True)
    assert asked == [(0.5, 1.0)]
    assert backoff.left(NOW) == 7.5


def test_the_pause_after_reaching_nobody_stays_short() -> None:
    backoff = longest()
    for _ in range(100):
        backoff.unreached(NOW)
        assert backoff.left(NOW) == UNREACHED_SECONDS == 2
    assert pauses(backoff, 2, refused=False) == [1, 2]


def test_a_scale_shortens_everything_alike() -> None:
    backoff = longest(scale=10.0)
    assert pauses(backoff, 2, refused=True) == [1.5, 3.0]
    backoff.failed(NOW, lasted=STEADY_SECONDS / 10, refused=True)
    assert backoff.failures == 1

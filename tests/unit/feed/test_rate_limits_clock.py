"""How old the ledger is, whatever is done to the clocks."""

from __future__ import annotations

import pytest

from bridge.clock import Instant
from bridge.feed.rate_limits import Attempt, Limiter
from tests.unit.feed.ledgers import NEVER_ANSWERED, NOW, at, attempt, limiter, wait

STEPS = [-86_400.0, -3600.0, -5.0, 5.0, 3600.0, 86_400.0]


def clocks(seconds: float, step: float) -> Instant:
    """So many seconds after NOW, the wall clock set by `step` meanwhile."""
    return Instant(NOW + seconds + step, NOW + seconds)


def five() -> Limiter:
    """Five attempts without a revision, of NOW, by a process that has seen that moment."""
    made = limiter(*[attempt(0)] * 5)
    made.usage(at())
    return made


def waits(made: Limiter, now: Instant) -> float:
    return made.decide(now, None).until - now.wall


@pytest.mark.parametrize("step", STEPS)
def test_a_wall_clock_that_is_set_shortens_and_lengthens_no_wait(step: float) -> None:
    made = five()
    assert waits(made, clocks(100, step)) == 1802 - 100
    assert waits(made, clocks(1801, step)) == 1
    assert waits(made, clocks(1802, step)) == 0


@pytest.mark.parametrize("step", STEPS)
def test_everything_that_asks_the_limiter_keeps_the_ledger_true(step: float) -> None:
    """A decision, an attempt, its answer, and a look at the usage."""
    decided, attempted, answered, looked = (limiter(attempt(0)) for _ in range(4))
    for made in (decided, attempted, answered, looked):
        made.usage(at())
    decided.decide(clocks(10, step), None)
    attempted.attempt(clocks(10, step), None)
    answered.answered(clocks(10, step), refused=False)
    looked.usage(clocks(10, step))
    moved = Attempt(NOW + step, 0, True, NOW + step)
    assert [made.ledger[0] for made in (decided, attempted, answered, looked)] == [moved] * 4


@pytest.mark.parametrize("step", STEPS)
def test_an_attempt_is_on_its_way_as_long_as_the_steady_clock_says(step: float) -> None:
    made = limiter()
    made.attempt(at(), int(NOW - 2000))
    made.answered(clocks(7, step), refused=False)
    assert made.ledger == (Attempt(NOW + step, 2000, False, NOW + step + 7),)
    assert made.usage(clocks(9, step))[-1].used == min(2009 + max(step, 0), 3600)


def test_a_ledger_from_the_future_happened_now_at_the_latest() -> None:
    ledger = (
        attempt(30, took=5),
        attempt(-500, took=5),
        attempt(-500, took=NEVER_ANSWERED),
        attempt(3, took=5),
    )
    made = limiter(*ledger)
    made.usage(at())
    assert made.ledger == (
        ledger[0],
        Attempt(NOW - 5, 0, True, NOW),
        Attempt(NOW, 0, True),
        Attempt(NOW - 5, 0, True, NOW),
    )


def test_the_steady_clock_of_another_process_says_nothing() -> None:
    made = limiter(*five().ledger)
    assert waits(made, Instant(NOW + 100, 5.0)) == 1802 - 100
    assert waits(made, Instant(NOW + 150, 55.0)) == 1802 - 150


@pytest.mark.parametrize(("took", "seen"), [(0.0, 2), (7.0, 9), (NEVER_ANSWERED, 22)])
def test_what_another_process_asked_counts_for_twice_the_skew_longer(took: float | None, seen: int) -> None:
    assert wait(limiter(*[attempt(100, took=took, own=False)] * 5, skew=5), None) == 1800 - 100 + seen + 10
    assert wait(limiter(*[attempt(100, took=took)] * 5, skew=5), None) == 1800 - 100 + seen


def test_what_another_process_asked_drains_from_the_bucket_later() -> None:
    made = limiter(attempt(12, 2000, own=False), skew=5)
    assert made.usage(at())[-1].used == 2000 + 12 + 5
    assert made.usage(at(1))[-1].used == 2000 + 12 + 5 - 4


@pytest.mark.parametrize("step", [0.0, *STEPS])
def test_whose_an_attempt_was_stays_known_however_the_clock_is_set(step: float) -> None:
    made = limiter(attempt(0, own=False), skew=5)
    made.attempt(at(), None)
    assert waits(made, clocks(10, step)) == 0
    made.answered(clocks(20, step), refused=False)
    assert [each.own for each in made.ledger] == [False, True]
    theirs, ours = made.ledger
    made.ledger = (theirs,) * 5
    assert waits(made, clocks(100, step)) == 1802 - 100 + 10
    made.ledger = (ours,) * 5
    assert waits(made, clocks(100, step)) == 1822 - 100

"""When the provider may be dialled, at exact moments."""

from __future__ import annotations

import pytest

from bridge.config import LimitsSettings
from bridge.feed.limits import MARGIN_SECONDS, Attempt, Limiter

NOW = 1_790_000_000.0
TIMEOUT = 10.0
WINDOW = 1800.0
BUCKET = 3600.0
DRAIN = 4.0


def limiter(*ledger: Attempt, **settings: float) -> Limiter:
    return Limiter(LimitsSettings(**settings), TIMEOUT, ledger)


def attempt(ago: float, recovery: int = 0, *, initial: bool = False, answered: bool = True) -> Attempt:
    """One of so many seconds ago, answered at once."""
    at = NOW - ago
    return Attempt(at, recovery, initial, at if answered else None)


def wait(made: Limiter, recovery: float | None = 0.0) -> float:
    """How long until an attempt is let in, checked to be exact: then it is, just before it is not."""
    revision = None if recovery is None else int(NOW - recovery)
    until = made.decide(NOW, revision).until
    if until > NOW:
        assert made.decide(until - 0.001, revision).until > until - 0.001
        assert made.decide(until + 0.000_001, revision).until == until + 0.000_001
    return until - NOW


def test_the_first_attempt_is_let_in_at_once() -> None:
    """With any revision and with none."""
    for recovery in (None, 0.0, BUCKET, 2 * 86_400.0):
        decision = limiter().decide(NOW, None if recovery is None else int(NOW - recovery))
        assert (decision.until, decision.reason) == (NOW, "")


@pytest.mark.parametrize("initial", [True, False])
def test_five_attempts_in_the_longest_window(initial: bool) -> None:
    """The sixth waits until the first leaves it, whatever kind they are of."""
    four = [attempt(ago, initial=initial) for ago in (1000, 900, 800, 700)]
    assert wait(limiter(*four), None) == 0
    made = limiter(*four, attempt(100))
    assert wait(made, None) == WINDOW - 1000 + MARGIN_SECONDS
    assert made.decide(NOW, None).reason == "5 connections in 1800 s"


def test_the_smallest_number_and_the_longest_window_count() -> None:
    """Each of the three kinds can be the strictest."""
    for kind in ("initial", "proper", "large"):
        made = limiter(
            attempt(50), attempt(20), **{f"{kind}_connections": 2, f"{kind}_window_seconds": 7200.0}
        )
        assert wait(made) == 7200 - 50 + MARGIN_SECONDS


def test_an_attempt_without_an_answer_counts_from_the_end_of_its_time_out() -> None:
    """The provider may have seen it as late as that."""
    made = limiter(*(attempt(1000, answered=False) for _ in range(5)))
    assert wait(made) == WINDOW - 1000 + TIMEOUT + MARGIN_SECONDS


def test_an_answer_counts_from_when_it_came() -> None:
    """Refused or not."""
    made = limiter(*(attempt(1000) for _ in range(4)))
    made.attempt(NOW - 1000, None)
    made.answered(NOW - 995, refused=True)
    assert made.ledger[-1] == Attempt(NOW - 1000, 0, True, NOW - 995, True)
    made.ledger = made.ledger[::-1]
    assert wait(made) == WINDOW - 1000 + MARGIN_SECONDS
    made.ledger = tuple(made.ledger[:1] * 5)
    assert wait(made) == WINDOW - 995 + MARGIN_SECONDS


def test_recoveries_that_fit_the_bucket_together_are_let_in() -> None:
    """The bucket is filled by the length of each and drains by four seconds a second."""
    filled = 2000 + MARGIN_SECONDS
    assert wait(limiter(attempt(MARGIN_SECONDS, 2000)), BUCKET - filled) == 0
    assert wait(limiter(attempt(MARGIN_SECONDS + 100, 2000)), BUCKET - filled + 100 * DRAIN) == 0


def test_a_recovery_waits_for_room_as_long_as_it_will_be_by_then() -> None:
    """It grows by one second a second while the bucket drains by four."""
    made = limiter(attempt(MARGIN_SECONDS, 2000))
    assert wait(made, BUCKET - 2002 + 300) == pytest.approx(100)
    assert made.decide(NOW, int(NOW - 3000)).reason == "recovery of 3600 s in the leaking bucket"


def test_a_recovery_that_fills_the_bucket_alone_is_let_in() -> None:
    """Level and length may be as much as the bucket holds, and not a second more."""
    assert wait(limiter(), BUCKET) == 0
    assert wait(limiter(attempt(2.0)), BUCKET - 1) == pytest.approx(1 / (DRAIN - 1))


def test_a_small_recovery_that_grows_large_while_it_waits() -> None:
    """It is let in as a large one, but only once the provider cannot take it for a small one any more."""
    made = limiter(attempt(2.0, 3000))
    assert wait(made, 3595) == 3600 + MARGIN_SECONDS - 3595


def test_a_large_recovery_does_not_go_into_the_bucket() -> None:
    """A full one does not hold it up; nor an attempt without a revision."""
    made = limiter(attempt(0, 3600), attempt(0, 3600))
    assert wait(made, BUCKET + MARGIN_SECONDS) == 0
    assert wait(made, 86_400) == 0
    assert wait(made, None) == 0


def test_the_bucket_is_asked_for_the_moment_at_which_the_window_is_free() -> None:
    """By then the recovery is longer, and may not fit any more."""
    made = limiter(*(attempt(WINDOW + MARGIN_SECONDS - 10) for _ in range(5)))
    assert wait(made, BUCKET - 11) == 10
    assert wait(made, BUCKET - 9) == 9 + MARGIN_SECONDS


def test_a_slow_connection_fills_the_bucket_by_the_time_it_took() -> None:
    """The provider looks at the age of the revision when the request reaches it, not when it was decided."""
    quick, slow = limiter(), limiter()
    for made, seconds in ((quick, 0.0), (slow, 10.0)):
        made.attempt(NOW - seconds, int(NOW - 2000))
        made.answered(NOW, refused=False)
    assert wait(quick, 2000) == wait(slow, 2000) > 0


def test_a_recovery_is_rounded_up_in_the_ledger() -> None:
    """A fraction of a second counts as a whole one; the future counts as nothing."""
    made = limiter()
    assert made.attempt(NOW + 0.25, int(NOW - 100)).recovery_seconds == 101
    assert made.attempt(NOW, int(NOW + 5)).recovery_seconds == 0
    assert made.attempt(NOW, None).initial


def test_a_decision_spends_nothing() -> None:
    """Only `attempt` enters something into the ledger."""
    made = limiter()
    for _ in range(10):
        made.decide(NOW, None)
    assert made.ledger == ()


def test_the_ledger_forgets_what_counts_no_more() -> None:
    """What has left the window and the bucket; all else stays, in the order of the attempts."""
    gone, still = attempt(WINDOW + MARGIN_SECONDS + 1, 3600), attempt(WINDOW + MARGIN_SECONDS, 10)
    young = attempt(300, 20)
    made = limiter(young, gone, still)
    entry = made.attempt(NOW, None)
    assert made.ledger == (young, still, entry)


def test_the_ledger_keeps_what_is_older_while_the_bucket_has_not_been_empty_since() -> None:
    """A chain of long recoveries carries the level of the first one along."""
    chain = [attempt(2000, 3500), attempt(1150, 3500), attempt(300, 3500)]
    made = limiter(*chain)
    before = made.decide(NOW + 1, int(NOW - 3000))
    made.attempt(NOW, int(NOW))
    assert made.ledger[:-1] == tuple(chain)
    assert made.decide(NOW + 1, int(NOW - 3000)).until >= before.until


def test_scale_makes_all_of_it_shorter() -> None:
    """Windows, bucket, margin and the age of a large recovery; the connect time-out is real time."""
    made = limiter(*(attempt(10, answered=False) for _ in range(5)), scale=100)
    assert wait(made, None) == pytest.approx(WINDOW / 100 + MARGIN_SECONDS / 100 + TIMEOUT - 10)
    full = limiter(attempt(MARGIN_SECONDS / 100, 36), scale=100)
    assert wait(full, (BUCKET + MARGIN_SECONDS) / 100 + 1) == 0
    assert wait(full, 30) == pytest.approx((BUCKET + MARGIN_SECONDS) / 100 - 30)

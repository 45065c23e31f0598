"""When a connection attempt is allowed: the windows, and what counts in which, at exact moments."""

from __future__ import annotations

from math import inf

import pytest

from bridge.feed.rate_limits import Attempt, Decision, LimitUsage
from tests.unit.feed.ledgers import NEVER_ANSWERED, NOW, at, attempt, limiter, used, wait

HOUR, DAYS = 3600, 259_200
"""Above the one a recovery is large, above the other the provider does not remember."""
INITIAL, SMALL, LARGE = None, 60, 86_400
"""What is asked for: nothing, a minute, a day."""


@pytest.mark.parametrize("recovery", [None, 0, SMALL, HOUR, LARGE, DAYS, int(NOW)])
def test_the_first_attempt_is_let_in_at_once(recovery: int | None) -> None:
    revision = None if recovery is None else int(NOW - recovery)
    assert limiter().decide(at(), revision) == Decision(NOW, "")


@pytest.mark.parametrize(
    ("recovery", "seconds", "reason"),
    [
        (INITIAL, 1800, "5 initial connection attempts in 30m"),
        (SMALL, 300, "5 proper connection attempts in 5m"),
        (LARGE, 1800, "5 large connection attempts in 30m"),
    ],
)
def test_the_sixth_waits_until_the_first_leaves_the_window(
    recovery: int | None, seconds: float, reason: str
) -> None:
    four = [attempt(ago, recovery) for ago in (100, 70, 60, 50)]
    assert wait(limiter(*four), recovery) == 0
    made = limiter(*four, attempt(10, recovery))
    assert wait(made, recovery) == seconds - 100 + 2
    assert made.decide(at(), None if recovery is None else int(NOW - recovery)).reason == reason


def test_an_attempt_with_zero_is_older_than_an_hour_as_well() -> None:
    three, two = [attempt(400, INITIAL)] * 3, [attempt(350, LARGE)] * 2
    assert wait(limiter(*three, *two), INITIAL) == wait(limiter(*three, *two), LARGE) == 1800 - 400 + 2
    assert wait(limiter(*three, *two), SMALL) == 0


def test_five_of_any_kind_are_all_there_are_in_five_minutes() -> None:
    assert wait(limiter(*[attempt(100, INITIAL)] * 3, *[attempt(50, SMALL)] * 2), SMALL) == 300 - 100 + 2
    assert wait(limiter(*[attempt(100, SMALL)] * 5), INITIAL) == 300 - 100 + 2
    assert wait(limiter(*[attempt(302, INITIAL)] * 4), SMALL) == 0


@pytest.mark.parametrize(("name", "recovery"), [("initial", INITIAL), ("proper", SMALL), ("large", LARGE)])
def test_each_window_has_its_settings(name: str, recovery: int | None) -> None:
    two = {f"{name}_connections": 2, f"{name}_window_seconds": 7200.0}
    assert wait(limiter(attempt(50, recovery), **two), recovery) == 0
    assert wait(limiter(attempt(50, recovery), attempt(20, recovery), **two), recovery) == 7200 - 50 + 2


def test_an_attempt_without_an_answer_counts_from_the_end_of_its_time_out() -> None:
    """The attempt may begin ten seconds after its decision, and be seen by the provider as late as that."""
    unanswered = [attempt(100, took=NEVER_ANSWERED)] * 5
    assert wait(limiter(*unanswered), INITIAL) == 1800 - 100 + 10 + 10 + 2
    assert wait(limiter(*unanswered, timeout=30), INITIAL) == 1800 - 100 + 10 + 30 + 2


@pytest.mark.parametrize("refused", [True, False])
def test_an_answered_attempt_counts_from_its_answer(refused: bool) -> None:
    made = limiter(*[attempt(0)] * 4)
    made.attempt(at(), None)
    made.answered(at(7), refused=refused)
    assert made.ledger[-1] == Attempt(NOW, 0, True, NOW + 7, refused)
    made.ledger = made.ledger[-1:] * 5
    assert made.decide(at(7), None).until == NOW + 7 + 1800 + 2


def test_a_second_answer_changes_only_the_verdict() -> None:
    made = limiter()
    made.attempt(at(), None)
    made.answered(at(7), refused=False)
    made.answered(at(90), refused=True)
    assert made.ledger == (Attempt(NOW, 0, True, NOW + 7, True),)


def test_only_the_last_attempt_is_answered_or_withdrawn() -> None:
    before = (attempt(50), attempt(40, took=NEVER_ANSWERED))
    made = limiter(*before)
    entry = made.attempt(at(), None)
    made.answered(at(1), refused=False)
    assert list(made.ledger) == [*before, Attempt(NOW, 0, True, NOW + 1)]
    made.withdraw()
    assert made.ledger == before
    assert entry == Attempt(NOW, 0, True)


def test_what_is_asked_for_is_rounded_up_in_the_ledger() -> None:
    made = limiter()
    assert made.attempt(at(0.25), int(NOW - 100)) == Attempt(NOW + 0.25, 101, initial=False)
    assert made.attempt(at(1), int(NOW + 1)).recovery_seconds == 0
    assert made.attempt(at(1), int(NOW + 5)).recovery_seconds == 0
    assert made.attempt(at(1), None) == Attempt(NOW + 1, 0, initial=True)


@pytest.mark.parametrize(
    ("recovery", "skew", "took", "classes"),
    [
        (INITIAL, 0, 0, "initial proper large"),
        # Two seconds of margin make it older, by which it may be a large one.
        (HOUR - 2, 0, 0, "proper bucket"),
        (HOUR - 1, 0, 0, "proper large bucket"),
        (HOUR - 9, 0, 7, "proper bucket"),
        (HOUR - 8, 0, 7, "proper large bucket"),
        (HOUR - 22, 0, NEVER_ANSWERED, "proper bucket"),
        (HOUR - 21, 0, NEVER_ANSWERED, "proper large bucket"),
        (HOUR - 7, 5, 0, "proper bucket"),
        (HOUR - 6, 5, 0, "proper large bucket"),
        # It was rounded up, by which it may still be a small one.
        (HOUR + 1, 0, 0, "proper large bucket"),
        (HOUR + 2, 0, 0, "proper large"),
        (HOUR + 6, 5, 0, "proper large bucket"),
        (HOUR + 7, 5, 0, "proper large"),
        (DAYS - 2, 0, 0, "proper large"),
        (DAYS - 1, 0, 0, "initial proper large"),
        (DAYS - 22, 0, NEVER_ANSWERED, "proper large"),
        (DAYS - 21, 0, NEVER_ANSWERED, "initial proper large"),
        (DAYS - 7, 5, 0, "proper large"),
        (DAYS - 6, 5, 0, "initial proper large"),
        (DAYS + 1, 0, 0, "initial proper large"),
        (DAYS + 2, 0, 0, "initial proper large"),
        (DAYS + 6, 5, 0, "initial proper large"),
        (DAYS + 7, 5, 0, "initial proper large"),
    ],
)
def test_an_attempt_counts_in_every_class_it_may_belong_to(
    recovery: int | None, skew: float, took: float | None, classes: str
) -> None:
    made = limiter(attempt(10, recovery, took), skew=skew)
    assert {name for name, amount in used(made).items() if amount} == set(classes.split())


@pytest.mark.parametrize(("skew", "first_large"), [(0, HOUR - 21), (5, HOUR - 26)])
def test_an_attempt_that_may_arrive_as_a_large_one_waits_for_both(skew: float, first_large: int) -> None:
    made = limiter(*[attempt(1000, LARGE)] * 5, skew=skew)
    assert wait(made, first_large - 10) == 0
    assert made.decide(at(), int(NOW - first_large)).until == NOW + 1800 - 1000 + 2
    assert made.decide(at(), int(NOW - first_large + 1)) == Decision(NOW, "")


@pytest.mark.parametrize("recovery", [DAYS - 100, DAYS, 2 * DAYS, int(NOW)])
def test_what_falls_out_of_the_memory_while_it_waits_is_taken_for_its_edge(recovery: int) -> None:
    longer = {"initial_connections": 1, "initial_window_seconds": 7200}
    made = limiter(*[attempt(1000, LARGE)] * 4, attempt(1000, INITIAL), **longer)
    assert wait(made, recovery) == 1800 - 1000 + 2


@pytest.mark.parametrize(
    ("seconds", "skew", "oldest_replayable"),
    [(0.0, 0, -DAYS + 23), (0.25, 0, -DAYS + 24), (0.0, 5, -DAYS + 28), (1.0, 0.5, -DAYS + 25)],
)
def test_the_edge_is_within_the_memory_when_the_attempt_arrives(
    seconds: float, skew: float, oldest_replayable: int
) -> None:
    assert limiter(skew=skew).oldest_replayable(NOW + seconds) == NOW + oldest_replayable


@pytest.mark.parametrize("fraction", [0.0, 0.125, 0.5, 0.999])
def test_an_attempt_at_the_edge_is_no_initial_one(fraction: float) -> None:
    made = limiter(skew=5)
    made.attempt(at(fraction), made.oldest_replayable(NOW + fraction))
    assert used(made) == {"initial": 0, "proper": 1, "large": 1, "bucket": 0}
    made.answered(at(fraction + 20), refused=False)
    assert used(made) == {"initial": 0, "proper": 1, "large": 1, "bucket": 0}


def test_the_ledger_forgets_what_counts_no_more() -> None:
    gone, still, young = attempt(1802.5, HOUR), attempt(1802, 10), attempt(300, 20)
    made = limiter(young, gone, still)
    entry = made.attempt(at(), None)
    assert made.ledger == (young, still, entry)
    made = limiter(gone)
    assert made.ledger == (gone,)
    entry = made.attempt(at(), None)
    assert made.ledger == (entry,)


@pytest.mark.parametrize("name", ["initial", "proper", "large"])
def test_the_ledger_keeps_the_longest_window(name: str) -> None:
    old = attempt(7000)
    made = limiter(old, **{f"{name}_window_seconds": 7200.0})
    made.attempt(at(), None)
    assert made.ledger[0] == old


def test_the_ledger_keeps_what_is_older_while_the_bucket_has_not_been_empty_since() -> None:
    before = attempt(2800, 398)  # it has drained just when the first of the chain is seen
    chain = [attempt(2700, 3500), attempt(1850, 3500), attempt(1000, 3500), attempt(150, 3500)]
    made = limiter(before, *chain)
    level = used(made)["bucket"]
    made.attempt(at(), None)
    assert made.ledger[:-1] == tuple(chain)
    assert used(made)["bucket"] == level == 4 * 3502 - 4 * (2698 - 148) - 4 * 148


def test_the_room_of_each_limit() -> None:
    made = limiter(attempt(1802, LARGE), attempt(1801, INITIAL), *[attempt(100, LARGE)] * 5)
    assert made.usage(at()) == (
        LimitUsage("initial", 1, 5, None),
        LimitUsage("proper", 5, 5, NOW + 202),
        LimitUsage("large", 6, 5, NOW + 1702),
        LimitUsage("bucket", 0, 3600, None),
    )


def test_the_room_of_the_bucket() -> None:
    made = limiter(attempt(27, 3600), attempt(2, 1998))
    assert made.usage(at())[-1] == LimitUsage("bucket", 5500, 3600, NOW + 475)
    assert made.usage(at(475))[-1] == LimitUsage("bucket", 3600, 3600, NOW + 475)
    assert made.usage(at(476))[-1] == LimitUsage("bucket", 3596, 3600, None)


def test_a_full_window_has_no_room_until_it_has() -> None:
    made = limiter(*[attempt(0)] * 5)
    assert made.usage(at(1801))[0] == LimitUsage("initial", 5, 5, NOW + 1802)
    assert made.usage(at(1802))[0] == LimitUsage("initial", 0, 5, None)


def test_scale_makes_the_limits_shorter_and_nothing_else() -> None:
    unanswered = attempt(10, took=NEVER_ANSWERED)
    assert wait(limiter(*[unanswered] * 5, scale=100), INITIAL) == 18 - 10 + 22
    assert wait(limiter(*[attempt(1, LARGE // 100)] * 5, scale=100), 60) == 18 + 1
    assert wait(limiter(*[attempt(1, 0)] * 5, scale=100), 0) == pytest.approx(3 + 1)
    assert limiter(scale=100).oldest_replayable(NOW) == NOW - DAYS // 100 + 23
    assert used(limiter(attempt(2, 30), scale=100))["bucket"] == 32
    assert limiter(scale=100).usage(at())[-1] == LimitUsage("bucket", 0, 36, None)
    assert used(limiter(attempt(2, 40), scale=100)) == {"initial": 0, "proper": 1, "large": 1, "bucket": 0}


@pytest.mark.parametrize(("asked", "most", "waited"), [(600, 3600, 600), (inf, 3600, 3600), (600, 0, 0)])
def test_the_pause_that_an_answer_asks_for_is_given(asked: float, most: float, waited: float) -> None:
    made = limiter(max_retry_after_seconds=most)
    made.attempt(at(-2), int(NOW - 60))
    made.answered(at(0), refused=False, retry_after=asked)
    assert wait(made, SMALL) == waited
    assert wait(limiter(*made.ledger, max_retry_after_seconds=100.0), SMALL) == min(waited, 100)


def test_a_pause_of_another_time_moves_with_its_attempt() -> None:
    made = limiter(Attempt(NOW + 50, 60, False, NOW + 51, retry_at=NOW + 651))
    assert made.decide(at(), int(NOW - 60)).until == NOW + 600

"""What the judge finds in a sequence of checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.judge.model import Anomaly
from tests.judge.timeline import Gap
from tests.unit.judge.trials import CASE, COUNTERS, FIRST, NOW, checkpoint, found, trial

BACK = Anomaly.CHECKPOINT_BACK
OPERATED = replace(CASE, has_operator=True)


def test_a_checkpoint_that_goes_back_is_found_unless_it_was_in_the_future_or_moved() -> None:
    back = [checkpoint(50, 60, 4), checkpoint(40, 61, 5), checkpoint(45, 62, 6)]
    moved = [back[0], checkpoint(40, 61, 5, moved={"at": 1})]
    gap = Gap(NOW + 30, NOW + 50, "PositionInFuture", NOW + 20, committed=NOW + 61)
    for taken, gaps, case, kinds in (
        (back, [], OPERATED, [BACK]),
        (moved, [], CASE, [BACK]),
        (moved, [], OPERATED, []),
        (back, [gap], CASE, []),
        (back, [gap._replace(committed=NOW + 60)], CASE, [BACK]),
        (back, [gap._replace(end=NOW + 45)], CASE, [BACK]),
        (back, [gap._replace(start=NOW + 45)], CASE, [BACK]),
        (back, [gap._replace(cause="TooOld")], CASE, [BACK]),
    ):
        assert list(found(trial(gaps=gaps, checkpoints=taken, case=case))) == kinds


def test_a_position_that_an_operator_set_back_promises_no_more_what_follows() -> None:
    moved = checkpoint(0, 40, 2, moved={"at": 40})
    for case, revisions in ((OPERATED, [-5, 0]), (CASE, [-5, 20])):
        of = trial(FIRST, checkpoints=[checkpoint(-5, 10), checkpoint(20, 30, 1), moved], case=case)
        assert [it.revision - NOW for it in of.checkpoints.promises] == revisions


def test_counters_balance_and_never_fall() -> None:
    def kinds(*counters: dict[str, int]) -> list[Any]:
        taken = [checkpoint(0, n, n, counters=COUNTERS | it) for n, it in enumerate(counters)]
        return list(found(trial(checkpoints=taken)))

    ends = ("published", "duplicates", "stale", "deadLettered", "pings", "empty")
    assert kinds({}, dict.fromkeys(ends, 1) | {"received": 6}) == []
    assert kinds({"received": 3, "redriven": 1, "published": 4, "corrections": 4}) == []
    for wrong in (
        [{"received": 1}],
        [{"pings": 1}],
        [{"received": 1, "published": 1, "corrections": 2}],
        [{"received": -1, "pings": -1}],
        [{"received": 2, "pings": 2}, {"received": 2, "pings": 1, "stale": 1}],
    ):
        assert kinds(*wrong) == [Anomaly.COUNTERS]


def test_counters_are_compared_with_the_topics() -> None:
    last = COUNTERS | {"received": 5, "redriven": 1, "published": 3, "deadLettered": 2, "pings": 1}
    for changes in ({}, {"published": 4}, {"deadLettered": 1}, {"redriven": 0}):
        of = trial(checkpoints=[checkpoint(0, 1, 7, counters=last)])
        of.checkpoints.judge_counts({"published": 3, "deadLettered": 2, "redriven": 1} | changes, 9)
        assert list(found(of)) == ([Anomaly.COUNTERS] if changes else [])
    none = trial()
    none.checkpoints.judge_counts({}, 0)
    assert list(found(none)) == [Anomaly.COUNTERS]

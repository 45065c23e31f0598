"""What the judge finds in a sequence of checkpoints."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.judge.model import Anomaly
from tests.judge.timeline import Gap
from tests.unit.judge.trials import CASE, COUNTERS, NOW, checkpoint, found, trial


def counted(**changes: int) -> dict[str, int]:
    return COUNTERS | changes


def kinds(*checkpoints: Any, gaps: tuple[Gap, ...] = ()) -> dict[Anomaly, str]:
    """What is found, with the first examples."""
    return {kind: first for kind, (_, first) in found(trial(gaps=gaps, checkpoints=checkpoints)).items()}


def test_checkpoints_that_go_on_are_clean() -> None:
    last = counted(received=9, published=4, duplicates=1, stale=1, deadLettered=1, pings=1, empty=1)
    assert kinds(checkpoint(0, 1), checkpoint(0, 2, 1), checkpoint(50, 60, 9, counters=last)) == {}
    assert kinds(checkpoint(0, 1, counters=counted(received=3, redriven=1, published=4, corrections=4))) == {}


def test_a_checkpoint_that_goes_back_is_found() -> None:
    back = [checkpoint(50, 60, 4), checkpoint(40, 61, 5), checkpoint(45, 62, 6)]
    assert kinds(*back) == {
        Anomaly.CHECKPOINT_BACK: "checkpoint at offset 5: revision 1790000050 at offset 4 becomes 1790000040"
    }
    moved = [back[0], checkpoint(40, 61, 5, moved={"at": 1})]
    assert list(kinds(*moved)) == [Anomaly.CHECKPOINT_BACK]
    assert found(trial(checkpoints=moved, case=replace(CASE, has_operator=True))) == {}
    gap = Gap(NOW + 30, NOW + 50, "PositionInFuture", NOW + 20, committed=NOW + 61)
    assert kinds(*back, gaps=(gap,)) == {}
    assert list(kinds(*back, gaps=(gap._replace(committed=NOW + 60),))) == [Anomaly.CHECKPOINT_BACK]
    assert list(kinds(*back, gaps=(gap._replace(end=NOW + 45),))) == [Anomaly.CHECKPOINT_BACK]
    assert list(kinds(*back, gaps=(gap._replace(start=NOW + 45),))) == [Anomaly.CHECKPOINT_BACK]
    assert list(kinds(*back, gaps=(gap._replace(cause="TooOld"),))) == [Anomaly.CHECKPOINT_BACK]


def test_counters_that_do_not_balance_are_found() -> None:
    for wrong in (
        counted(received=1),
        counted(pings=1),
        counted(received=1, published=1, corrections=2),
        counted(received=-1, pings=-1),
    ):
        assert list(kinds(checkpoint(0, 1, counters=wrong))) == [Anomaly.COUNTERS]
    falls = kinds(
        checkpoint(0, 1, 4, counters=counted(received=2, pings=2)),
        checkpoint(0, 2, 5, counters=counted(received=2, pings=1, stale=1)),
    )
    assert falls == {Anomaly.COUNTERS: "checkpoint at offset 5: pings falls from 2 to 1"}


def test_counters_are_compared_with_the_topics() -> None:
    last = counted(received=5, redriven=1, published=3, deadLettered=2, pings=1)
    for changes in ({}, {"published": 4}, {"deadLettered": 1}, {"redriven": 0}):
        of = trial(checkpoints=[checkpoint(0, 1, 7, counters=last)])
        of.checkpoints.judge_counts({"published": 3, "deadLettered": 2, "redriven": 1} | changes, 9)
        assert list(found(of)) == ([Anomaly.COUNTERS] if changes else [])
    none = trial()
    none.checkpoints.judge_counts({}, 0)
    assert found(none) == {Anomaly.COUNTERS: (1, "the feed has no checkpoint")}


def test_the_first_checkpoint_that_promised_a_message_is_found_by_the_clock_of_the_provider() -> None:
    of = trial(
        checkpoints=[
            checkpoint(0, 1, 0),
            checkpoint(20, 30, 1),
            checkpoint(10, 31, 2),
            checkpoint(25, 40, 3),
        ],
        gaps=[Gap(NOW, NOW + 20, "PositionInFuture", NOW + 5)],
    )
    places = [of.checkpoints.promise(NOW + at) for at in (-5, 0, 19.9, 20, 25)]
    assert [place and place.offset for place in places] == [0, 1, 1, 3, None]
    ahead = trial(checkpoints=[checkpoint(20, 30, 1)], clock_steps=[{"after": NOW + 5, "ahead": 10.0}])
    assert ahead.checkpoints.promise(NOW + 9.9) is not None
    assert ahead.checkpoints.promise(NOW + 10) is None

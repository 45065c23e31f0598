"""What the audit finds in a sequence of checkpoints and gaps."""

from __future__ import annotations

from dataclasses import fields, replace
from math import inf
from typing import Any

import pytest

from bridge.audit.checkpoints import CheckpointsCheck, covered
from bridge.audit.findings import AuditFinding, Findings, Proof
from bridge.feed.rate_limits import Attempt
from bridge.records.checkpoint import Checkpoint, Move, State
from bridge.records.counters import Counters
from bridge.records.gap import Cause, FeedGap

NOW = 1_790_000_000
SKEW = 15.0
FIRST = Checkpoint(
    feed="f",
    revision=NOW - 90,
    state=State.LIVE,
    ledger=(Attempt(NOW - 100.0, 0, initial=True),),
    counters=Counters(received=10, published=6, pings=4),
    updated_at=float(NOW),
    owner="me",
)


def later(before: Checkpoint, seconds: int = 10, **changes: Any) -> Checkpoint:
    """A checkpoint some seconds after another, with a ping more."""
    counters = before.counters
    return replace(
        before,
        **{
            "revision": before.revision + seconds,
            "updated_at": before.updated_at + seconds,
            "counters": replace(counters, received=counters.received + 1, pings=counters.pings + 1),
            **changes,
        },
    )


def gap(start: int, end: int, cause: Cause = Cause.TOO_OLD, feed: str = "f") -> FeedGap:
    return FeedGap(feed, start, end, cause, NOW)


def judged(
    *checkpoints: Checkpoint, gaps: tuple[FeedGap, ...] = (), since: float = -inf
) -> list[tuple[Proof, int | None]]:
    """Each violation with the offset of its checkpoint."""
    findings = Findings()
    check = CheckpointsCheck(findings, SKEW)
    for offset, checkpoint in enumerate(checkpoints):
        check.take(checkpoint, AuditFinding(Proof.IDENTITY, "", "checkpoints", 0, offset, NOW * 1000, "f"))
    check.conclude(gaps, since)
    return [(found.proof, found.offset) for found in findings.violations]


def test_a_feed_that_goes_on_has_no_violation() -> None:
    second = later(FIRST)
    other = replace(FIRST, feed="g", revision=1, counters=Counters())
    assert judged(FIRST, second, other, second, later(second, 3600), later(other)) == []


@pytest.mark.parametrize("counter", [c.name for c in fields(Counters) if c.name != "corrections"])
def test_outcomes_that_do_not_add_up_are_found(counter: str) -> None:
    wrong = replace(FIRST.counters, **{counter: getattr(FIRST.counters, counter) + 1})
    assert judged(replace(FIRST, counters=wrong)) == [(Proof.IDENTITY, 0)]


def test_a_counter_that_goes_back_is_found() -> None:
    fewer = Counters(received=9, published=5, pings=4)
    assert judged(FIRST, later(FIRST, counters=fewer)) == [(Proof.COUNTERS, 1)]


BACK = later(FIRST, revision=FIRST.revision - 500)


def test_a_position_that_goes_back_must_be_declared() -> None:
    undeclared = [(Proof.POSITION, 1)]
    assert judged(FIRST, BACK) == undeclared
    future = Cause.POSITION_IN_FUTURE
    assert judged(FIRST, BACK, gaps=(gap(FIRST.revision - 600, FIRST.revision, future),)) == []
    for wrong in (
        gap(FIRST.revision - 600, FIRST.revision),
        gap(FIRST.revision - 600, FIRST.revision - 1, future),
        gap(FIRST.revision - 499, FIRST.revision, future),
        gap(FIRST.revision - 600, FIRST.revision, future, feed="g"),
    ):
        assert judged(FIRST, BACK, gaps=(wrong,)) == undeclared
    moved = Move(NOW, "somebody", FIRST.revision, BACK.revision)
    assert judged(FIRST, replace(BACK, moved=moved)) == []
    assert judged(replace(FIRST, moved=moved), replace(BACK, moved=moved)) == undeclared


def test_a_position_that_moves_without_a_message_needs_gaps_over_all_of_it() -> None:
    begin, end = FIRST.revision, FIRST.revision + 600
    jumped = later(FIRST, revision=end, updated_at=NOW + 700.0, counters=FIRST.counters)
    undeclared = [(Proof.GAP, 1)]
    assert judged(FIRST, jumped) == undeclared
    assert judged(FIRST, later(FIRST, revision=end, updated_at=NOW + 700.0)) == []
    assert judged(FIRST, jumped, gaps=(gap(begin + 300, end), gap(begin, begin + 300))) == []
    assert judged(FIRST, jumped, gaps=(gap(begin - 5, end + 5),)) == []
    for wrong in (gap(begin, end - 1), gap(begin + 1, end), gap(begin, end, feed="g")):
        assert judged(FIRST, jumped, gaps=(wrong,)) == undeclared


def test_what_a_deleted_gap_may_have_explained_is_no_violation() -> None:
    jumped = later(FIRST, revision=FIRST.revision + 600, updated_at=NOW + 700.0, counters=FIRST.counters)
    for suspicious in ([FIRST, jumped], [FIRST, BACK], [replace(FIRST, revision=NOW + 31)]):
        for since, found in ((-inf, 1), (NOW * 1000 - 1, 1), (NOW * 1000, 0), (inf, 0)):
            assert len(judged(*suspicious, since=since)) == found


def test_before_the_first_attempt_a_position_promises_nothing() -> None:
    start = replace(FIRST, ledger=(), counters=Counters())
    assert judged(start, later(start, counters=Counters())) == []


def test_a_position_later_than_every_commit_is_found() -> None:
    ahead = replace(FIRST, revision=NOW + 31)
    assert judged(ahead) == [(Proof.AHEAD, 0)]
    assert judged(replace(FIRST, revision=NOW + 30)) == []
    assert judged(ahead, gaps=(gap(NOW - 500, NOW + 31, Cause.POSITION_IN_FUTURE),)) == []
    assert judged(FIRST, later(FIRST, updated_at=NOW - 500.0)) == []


def test_a_removed_checkpoint_begins_the_feed_anew() -> None:
    findings = Findings()
    check = CheckpointsCheck(findings, SKEW)
    place = AuditFinding(Proof.IDENTITY, "", "checkpoints", 0, 0, NOW * 1000, "f")
    check.take(FIRST, place)
    check.removed("f")
    assert check.last == {}
    check.take(replace(FIRST, revision=5, counters=Counters()), place)
    check.conclude([], -inf)
    assert findings.violations == []


def test_the_newest_settlement_of_each_hour_is_to_be_looked_for() -> None:
    findings = Findings()
    check = CheckpointsCheck(findings, SKEW)
    for minutes, newest in ((0, NOW - 5.5), (1, NOW - 4.25), (61, NOW + 3000.0)):
        at = (NOW - NOW % 3600 + minutes * 60) * 1000
        check.take(replace(FIRST, newest=newest), AuditFinding(Proof.IDENTITY, "", "c", 0, minutes, at, "f"))
    assert {micros: found.offset for micros, found in check.newest.items()} == {
        NOW * 1_000_000 - 4_250_000: 1,
        (NOW + 3000) * 1_000_000: 61,
    }


def test_an_interval_is_covered_without_a_hole() -> None:
    assert covered(1, 1, [])
    assert covered(1, 9, [gap(5, 9), gap(0, 3), gap(2, 5)])
    assert not covered(1, 9, [gap(6, 9), gap(0, 5)])

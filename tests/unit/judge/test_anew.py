"""Topics that were made anew: what only the old one had must be there again, while the provider has it."""

from __future__ import annotations

import pytest

from tests.judge.gaps import judge_gaps
from tests.judge.log import COMMITTED, UNTRANSACTED, Batch
from tests.judge.model import Anomaly, Case, Findings
from tests.judge.timeline import Gap
from tests.judge.topics import Record
from tests.judge.visible import judge_visible
from tests.unit.judge.trials import CASE, FIRST, NOW, attempt, bet, checkpoint, found, trial

ANEW = Case("", "", "", "", made_anew=(("bets", NOW + 35),), has_operator=True)
LATER = attempt(40, -10)


@pytest.mark.parametrize(
    ("records", "case", "anomalies"),
    [
        ("1a 2b 3c", ANEW, set()),
        ("3c", ANEW, set()),  # what the replay brings back is stale by then
        ("2b 3c", CASE, {Anomaly.LOST_WRITE}),
        ("1a 2b", ANEW, {Anomaly.LOST_WRITE}),  # nothing is newer than the third
        ("3c 1a", ANEW, {Anomaly.NON_MONOTONIC}),
    ],
)
def test_of_a_bet_the_newest_must_be_there_again(records: str, case: Case, anomalies: set[Anomaly]) -> None:
    assert bet("1a 2b 3c", records, trial(FIRST, LATER, case=case)).keys() == anomalies


def test_what_the_provider_has_forgotten_cannot_come_back() -> None:
    forgotten = [{"at": NOW + 38, "before": NOW + 15}]
    assert bet("1a", "", trial(FIRST, LATER, case=ANEW, forgotten=forgotten)) == {}
    assert bet("1a", "", trial(FIRST, LATER, case=ANEW)).keys() == {Anomaly.LOST_WRITE}


def test_a_gap_over_what_a_topic_lacks_excuses_nothing_that_can_come_back() -> None:
    gap = Gap(NOW - 10, NOW + 30, "RecordsLost", NOW + 36)
    assert bet("1a", "", trial(FIRST, LATER, gaps=[gap], case=ANEW)).keys() == {Anomaly.LOST_WRITE}
    for case, anomalies in ((ANEW, set()), (CASE, {Anomaly.GAP_IN_VAIN})):
        of = trial(FIRST, LATER, gaps=[gap], case=case)
        judge_gaps([gap], of.timeline, [], case, of.findings)
        assert found(of).keys() == anomalies


def test_a_position_that_an_operator_set_back_promises_no_more_what_follows() -> None:
    moved = checkpoint(0, 40, 2, moved={"at": 40})
    for case, revisions in ((ANEW, [-5, 0]), (CASE, [-5, 20])):
        of = trial(FIRST, checkpoints=[checkpoint(-5, 10), checkpoint(20, 30, 1), moved], case=case)
        assert [it.revision - NOW for it in of.checkpoints.promises] == revisions


def test_copied_records_are_in_no_transaction() -> None:
    record, batch = Record(0, 0, NOW, b"k", b"v", {}), Batch(0, 0, 1, "1/0", UNTRANSACTED, NOW)
    for legal, count in (((COMMITTED,), 1), ((COMMITTED, UNTRANSACTED), 0)):
        findings = Findings()
        assert list(judge_visible(("bets", 0), [record], [batch], findings, legal)) == [(record, NOW)]
        assert len(findings.found()) == count

"""What the judge finds in the history of one bet: the messages, and the records that are there."""

from __future__ import annotations

import pytest

from tests.judge.bets import explained, judge_bet
from tests.judge.model import Anomaly, Case
from tests.judge.timeline import Gap
from tests.unit.judge.trials import (
    CASE,
    COUNTERS,
    FIRST,
    NOW,
    attempt,
    bet,
    checkpoint,
    found,
    sent,
    stored,
    trial,
)

LOST, DUPLICATE, BACK = Anomaly.LOST_WRITE, Anomaly.DUPLICATE, Anomaly.NON_MONOTONIC
GAP, IN_VAIN = Anomaly.UNDECLARED_GAP, Anomaly.GAP_IN_VAIN
ANEW = Case("", "", "", "", made_anew=(("bets", NOW + 35),), has_operator=True)
LATER = attempt(40, -10)


@pytest.mark.parametrize(
    ("messages", "records", "anomalies"),
    [
        ("1a 1b 1a", "1a 1b 1a", []),  # a correction which is taken back
        ("2b 1a", "2b", []),  # stale
        ("1a 1b 1b 1a 1a 1b", "1a 1b 1a 1b", []),
        ("1a 2b", "2b", [LOST]),
        ("1a 1b", "1a", [LOST]),
        ("1a", "1a 1a", [DUPLICATE]),
        ("1a 1b", "1a 1b 1a", [DUPLICATE]),
        ("1a 2b", "2b 1a", [BACK]),
        ("1a 1b", "1b 1a", [BACK]),
        ("1a 2b", "1a 2b 1a 2b", [DUPLICATE, DUPLICATE, BACK]),
        ("1a 2b", "1a 2x", [Anomaly.WRONG_FIELD]),
        ("1a 2b", "1a 5b", [Anomaly.WRONG_FIELD]),
        ("", "1a", [Anomaly.ABORTED_READ]),
    ],
)
def test_a_history_is_explained_or_not(messages: str, records: str, anomalies: list[Anomaly]) -> None:
    kinds = bet(messages, records)
    assert [kind for kind, (count, _) in kinds.items() for _ in range(count)] == anomalies


def test_a_correction_that_is_taken_back_may_be_dropped_after_a_replay_that_began_behind_it() -> None:
    assert bet("1a 1b 1a", "1a 1b", trial(FIRST, attempt(25, 15))) == {}
    for others in ([], [attempt(8, 5)], [attempt(25, 10)]):  # no replay, an earlier one, one with B
        assert list(bet("1a 1b 1a", "1a 1b", trial(FIRST, *others))) == [LOST]
    for since, kinds in ((35, []), (20, [LOST])):
        assert list(bet("1a 1b 1a 1b 1a", "1a 1b 1a 1b", trial(FIRST, attempt(45, since)))) == kinds


def test_what_the_provider_could_not_replay_is_an_undeclared_gap() -> None:
    late = attempt(2000, 1500)
    forgotten = [{"at": NOW + 20, "before": NOW + 15}]
    for of, kind in (
        (trial(attempt(0, -10), attempt(1, -10), late), GAP),
        (trial(FIRST, attempt(500, 100), late), LOST),
        (trial(FIRST, attempt(30, 15), forgotten=forgotten), GAP),
        (trial(FIRST, attempt(30, 15)), LOST),
        (trial(attempt(9, 5)), LOST),
    ):
        assert list(bet("1a 2b", "1a", of)) == [kind]


def test_what_a_gap_covers_need_not_be_there_unless_it_could_be_replayed() -> None:
    old = Gap(NOW - 5, NOW + 50, "TooOld", NOW + 30)
    for messages, gap, begin, kinds in (
        ("1a 2b", old, -10, [IN_VAIN]),
        ("2b 2b 1a", old, -10, []),  # the last is stale
        ("1a 2b", old._replace(cause="MovedByOperator"), -10, []),
        ("1a 2b", old, 5, []),
        ("1a 2b", old._replace(detected_at=NOW + 60), -10, []),  # in no time it would have been
    ):
        of = trial(attempt(max(0, begin), begin), gaps=[gap], remembers_seconds=100.0)
        assert list(bet(messages, "2b", of)) == kinds
    wide = Gap(NOW + 5, NOW + 1500, "TooOld", NOW + 2000)
    of = trial(FIRST, attempt(2000, 1000), gaps=[wide])
    moved = [it._replace(at=NOW + at) for it, at in zip(sent("1a 2b", of), (500, 1400), strict=True)]
    judge_bet("b", [it._replace(is_due=of.is_due(it.at)) for it in moved], [], of)
    assert found(of)[IN_VAIN][0] == 1


@pytest.mark.parametrize(
    ("published", "committed", "kinds"),
    [
        (1, 9.002, []),  # its marker is later in this partition
        (0, 9.002, [Anomaly.CHECKPOINT_AHEAD]),  # the next transaction
        (1, 12.001, [Anomaly.CHECKPOINT_AHEAD]),
        (2, 9.002, []),  # one is there already
    ],
)
@pytest.mark.parametrize("uncounted", [0, 3])  # of a topic of checkpoints that was made anew since
def test_data_in_another_transaction_than_its_promise_is_found(
    published: int, committed: float, kinds: list[Anomaly], uncounted: int
) -> None:
    counters = COUNTERS | {"received": published, "published": published}
    promises = [checkpoint(5, 9, 6, counters=counters), checkpoint(5, 12, 7, counters=counters)]
    of = trial(checkpoints=[checkpoint(-5, 7, 5), *promises])
    for n in range(uncounted):
        of.checkpoints.committed("published", NOW + 4 + n)
    for _ in range(published - 1):
        of.checkpoints.committed("published", NOW + 8)
    of.checkpoints.committed("published", NOW + committed)
    [record] = stored("1a", after=8)
    judge_bet("b", sent("1a", of), [record._replace(committed=NOW + committed)], of)
    assert list(of.findings.found()) == kinds


def test_a_bet_with_thousands_of_messages_is_compared_without_its_order() -> None:
    of = trial()
    [message], [record] = sent("1a", of), stored("1a")
    many = [message._replace(content=str(n).encode(), seq=n) for n in range(3000)]
    records = [record._replace(content=str(n).encode(), offset=n) for n in range(3000)]
    for left, wrong in ((records[::2], ([*range(1, 3000, 2)], [])), ([records[0], *records], ([], [1]))):
        assert explained(many, left, of.may_be_repeated)[:2] == wrong


@pytest.mark.parametrize(
    ("records", "case", "anomalies"),
    [
        ("3c", ANEW, []),  # what the replay brings back is stale by then
        ("2b 3c", CASE, [LOST]),
        ("1a 2b", ANEW, [LOST]),  # nothing is newer than the third
        ("3c 1a", ANEW, [BACK]),
    ],
)
def test_of_a_bet_in_a_topic_made_anew_the_newest_must_be_there_again(
    records: str, case: Case, anomalies: list[Anomaly]
) -> None:
    assert list(bet("1a 2b 3c", records, trial(FIRST, LATER, case=case))) == anomalies


def test_what_the_provider_has_forgotten_cannot_come_back_and_no_gap_excuses_the_rest() -> None:
    forgotten = [{"at": NOW + 38, "before": NOW + 15}]
    assert bet("1a", "", trial(FIRST, LATER, case=ANEW, forgotten=forgotten)) == {}
    gap = Gap(NOW - 10, NOW + 30, "RecordsLost", NOW + 36)
    for gaps in ([], [gap]):
        assert list(bet("1a", "", trial(FIRST, LATER, gaps=gaps, case=ANEW))) == [LOST]

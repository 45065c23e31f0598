"""What the judge finds in the history of one bet: the messages, and the records that are there."""

from __future__ import annotations

import pytest

from tests.judge.bets import explained, judge_bet
from tests.judge.model import Anomaly
from tests.judge.timeline import Gap
from tests.unit.judge.trials import COUNTERS, FIRST, NOW, attempt, bet, checkpoint, sent, stored, trial


@pytest.mark.parametrize(
    ("messages", "records"),
    [
        ("1a", "1a"),
        ("1a 2b", "1a 2b"),
        ("1a 1b", "1a 1b"),  # a correction
        ("1a 1b 1a", "1a 1b 1a"),  # which is taken back
        ("2b 1a", "2b"),  # stale
        ("1a 1a", "1a"),  # sent twice
        ("1a 2b 2b 1a 3c", "1a 2b 3c"),
        ("1a 1b 1b 1a 1a 1b", "1a 1b 1a 1b"),
    ],
)
def test_a_legal_history_is_clean(messages: str, records: str) -> None:
    assert bet(messages, records) == {}


def test_a_correction_that_is_taken_back_may_be_dropped_after_a_replay_that_began_behind_it() -> None:
    assert bet("1a 1b 1a", "1a 1b", trial(FIRST, attempt(25, 15))) == {}
    for others in ([], [attempt(8, 5)], [attempt(25, 10)]):  # no replay, an earlier one, one with B
        lost = bet("1a 1b 1a", "1a 1b", trial(FIRST, *others))
        assert list(lost) == [Anomaly.LOST_WRITE]
        assert "version 1, message 2, published at 1790000020.000" in lost[Anomaly.LOST_WRITE][1]


@pytest.mark.parametrize(
    ("messages", "records", "number"),
    [("1a", "", 0), ("1a 2b", "2b", 0), ("1a 2b", "1a", 1), ("1a 1b", "1a", 1), ("1a 1b 2c", "1a 2c", 1)],
)
def test_a_lost_write_is_found(messages: str, records: str, number: int) -> None:
    count, first = bet(messages, records)[Anomaly.LOST_WRITE]
    assert (count, f"message {number}," in first) == (1, True)
    assert list(bet(messages, records)) == [Anomaly.LOST_WRITE]


def test_a_replay_excuses_only_what_follows_the_last_other_content() -> None:
    for since, kinds in ((35, []), (20, [Anomaly.LOST_WRITE])):
        of = trial(FIRST, attempt(45, since))
        assert list(bet("1a 1b 1a 1b 1a", "1a 1b 1a 1b", of)) == kinds


def test_what_was_published_before_the_first_attempt_asked_need_not_be_there() -> None:
    for records in ("1a 2b", "2b"):
        assert bet("1a 2b", records, trial(attempt(9, 5))) == {}
    assert list(bet("1a 2b", "1a", trial(attempt(9, 5)))) == [Anomaly.LOST_WRITE]


@pytest.mark.parametrize(
    ("messages", "records", "offset"),
    [
        ("1a", "1a 1a", 101),
        ("1a 1a", "1a 1a", 101),
        ("1a 2b", "1a 1a 2b", 101),
        ("1a 1b", "1a 1b 1a", 102),
        ("1a", "1a 1a 1a", 101),
    ],
)
def test_a_duplicate_is_found(messages: str, records: str, offset: int) -> None:
    found = bet(messages, records)
    assert list(found) == [Anomaly.DUPLICATE]
    assert f"offset {offset}," in found[Anomaly.DUPLICATE][1]


def test_a_version_that_goes_back_is_found() -> None:
    wrong = bet("1a 2b", "2b 1a")
    assert list(wrong) == [Anomaly.NON_MONOTONIC]
    assert wrong[Anomaly.NON_MONOTONIC][1].startswith(
        "bet b goes back from version 2 (version 2 in partition 3"
    )
    again = bet("1a 2b", "1a 2b 1a 2b")
    assert {kind: count for kind, (count, _) in again.items()} == {
        Anomaly.DUPLICATE: 2,
        Anomaly.NON_MONOTONIC: 1,
    }


def test_corrections_in_the_wrong_order_are_found() -> None:
    assert list(bet("1a 1b", "1b 1a")) == [Anomaly.NON_MONOTONIC]


def test_a_wrong_field_is_found_and_is_not_also_lost() -> None:
    for records in ("1a 2x", "1a 5b"):
        found = bet("1a 2b", records)
        assert list(found) == [Anomaly.WRONG_FIELD]
        assert found[Anomaly.WRONG_FIELD][1].endswith("data.x differs at (3, 101)")


def test_a_bet_in_two_partitions_is_found() -> None:
    of = trial()
    one, other = stored("1a 2b")
    judge_bet("b", sent("1a 2b", of), [one, other._replace(partition=4)], of)
    [(kind, it)] = of.findings.found().items()
    assert (kind, it.first) == (Anomaly.WRONG_FIELD, "bet b is in partition 3 and in 4, offset 101")


def test_a_record_that_nobody_published_is_found() -> None:
    found = bet("", "1a")
    assert found == {
        Anomaly.ABORTED_READ: (
            1,
            "bet b: version 1 in partition 3, offset 100, received at 1790000100.000 was never published by "
            "the provider",
        )
    }


def test_what_the_provider_could_not_replay_is_an_undeclared_gap() -> None:
    late = [attempt(2000, 1500)]
    assert list(bet("1a 2b", "1a", trial(attempt(0, -10), attempt(1, -10), *late))) == [
        Anomaly.UNDECLARED_GAP
    ]
    assert list(bet("1a 2b", "1a", trial(FIRST, attempt(500, 100), *late))) == [Anomaly.LOST_WRITE]
    assert list(bet("1a 2b", "1a", trial(FIRST, attempt(12, 11), *late))) == [Anomaly.LOST_WRITE]
    forgotten = [{"at": NOW + 20, "before": NOW + 15}]
    of = trial(FIRST, attempt(30, 15), forgotten=forgotten)
    assert list(bet("1a 2b", "1a", of)) == [Anomaly.UNDECLARED_GAP]
    assert list(bet("1a 2b", "1a", trial(FIRST, attempt(30, 15)))) == [Anomaly.LOST_WRITE]


def test_what_a_gap_covers_need_not_be_there_unless_it_could_be_replayed() -> None:
    attempts = [FIRST, attempt(2000, 1000)]
    gap = Gap(NOW + 5, NOW + 1000, "TooOld", NOW + 2000)
    for records in ("1a", "1a 2b", "1a 3c", "1a 2b 3c"):
        assert bet("1a 2b 3c", records, trial(*attempts, gaps=[gap])) == {}
    assert found_in_gap("2b 1a", "2b", Gap(NOW - 5, NOW + 50, "TooOld", NOW + 30)) == []  # 1a is stale
    assert found_in_gap("1a 2b", "2b", Gap(NOW - 5, NOW + 50, "TooOld", NOW + 30)) == [Anomaly.GAP_IN_VAIN]
    assert found_in_gap("1a 2b", "2b", Gap(NOW - 5, NOW + 50, "MovedByOperator", NOW + 30)) == []
    assert found_in_gap("1a 2b", "2b", Gap(NOW - 5, NOW + 50, "TooOld", NOW + 30), begin=5) == []
    assert found_in_gap("1a 2b", "2b", Gap(NOW - 5, NOW + 50, "TooOld", NOW + 60)) == []  # in no time
    wide = gap._replace(end=NOW + 1500)
    of = trial(*attempts, gaps=[wide])
    messages = [it._replace(at=NOW + at) for it, at in zip(sent("1a 2b", of), (500, 1400), strict=True)]
    judge_bet("b", [it._replace(is_due=of.is_due(it.at)) for it in messages], [], of)
    [(kind, it)] = of.findings.found().items()
    assert (kind, it.count) == (Anomaly.GAP_IN_VAIN, 1)
    assert "bet b: version 2, message 1, published at 1790001400.000" in it.first


def found_in_gap(messages: str, records: str, gap: Gap, begin: float = -10) -> list[Anomaly]:
    """What is found of a provider that remembers the last hundred seconds."""
    return list(
        bet(messages, records, trial(attempt(max(0, begin), begin), gaps=[gap], remembers_seconds=100.0))
    )


def test_a_checkpoint_before_its_data_is_found() -> None:
    promise = [checkpoint(5, 9, 6), checkpoint(5, 12, 7), checkpoint(5, 20, 8)]
    assert bet("1a", "1a", trial(checkpoints=promise), after=9) == {}
    received = bet("1a", "1a", trial(checkpoints=promise), after=9.5)
    assert list(received) == [Anomaly.CHECKPOINT_AHEAD]
    assert (
        "received at 1790000009.500: after the checkpoint at offset 6,"
        in received[Anomaly.CHECKPOINT_AHEAD][1]
    )
    assert (
        bet("1a", "1a", trial(checkpoints=[checkpoint(0, 9)]), after=500) == {}
    )  # it promises nothing of it


@pytest.mark.parametrize(
    ("published", "committed", "kinds"),
    [
        (1, 9.0, []),
        (1, 9.002, []),  # its marker is later in this partition
        (0, 9.002, [Anomaly.CHECKPOINT_AHEAD]),  # the next transaction
        (1, 12.001, [Anomaly.CHECKPOINT_AHEAD]),
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
    of.checkpoints.committed("published", NOW + committed)
    [record] = stored("1a", after=8)
    judge_bet("b", sent("1a", of), [record._replace(committed=NOW + committed)], of)
    assert list(of.findings.found()) == kinds


def test_a_message_is_judged_by_its_first_record() -> None:
    of = trial(checkpoints=[checkpoint(5, 9, 6), checkpoint(5, 12, 7)])
    assert list(bet("1a", "1a 1a", of, after=5)) == [Anomaly.DUPLICATE]


def test_a_bet_with_thousands_of_messages_is_compared_without_its_order() -> None:
    of = trial()
    [message], [record] = sent("1a", of), stored("1a")
    many = [message._replace(content=str(n).encode(), seq=n) for n in range(3000)]
    records = [record._replace(content=str(n).encode(), offset=n) for n in range(3000)]
    for left, wrong in (
        (records, ([], [])),
        (records[:-1], ([2999], [])),
        (records[::2], ([*range(1, 3000, 2)], [])),
        ([records[0], *records], ([], [1])),
    ):
        assert explained(many, left, of.may_be_repeated)[:2] == wrong

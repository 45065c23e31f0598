"""What the judge finds in connections and gaps, and in what readers see."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO
from typing import Any

import pytest

from tests.judge.connections import judge_connections
from tests.judge.gaps import judge_gaps
from tests.judge.log import COMMITTED, UNTRANSACTED, Batch, _Raw, batches
from tests.judge.model import Anomaly, Excuse, Findings, Report
from tests.judge.provider import Provider
from tests.judge.timeline import Gap
from tests.judge.topics import Record
from tests.judge.visible import STUCK_SECONDS, Standstill, judge_visible
from tests.unit.judge.trials import CASE, FIRST, NOW, attempt, found, trial


def connections(
    attempts: list[dict[str, Any]], breaches: list[dict[str, Any]], *excused: Excuse
) -> dict[Anomaly, str]:
    findings = Findings()
    judge_connections(attempts, breaches, excused, findings)
    return {kind: it.first for kind, it in findings.found().items()}


def breach(rule: str, at: float = 3.0, holder: str = "") -> dict[str, Any]:
    return {"at": NOW + at, "revision": 5, "rule": rule, "reason": f"{rule}: why", "holder": holder}


def test_a_second_connection_is_found_outside_what_is_excused() -> None:
    replaces = attempt(5, 0, replaced=True)
    for attempts, breaches in (([FIRST, replaces], []), ([FIRST], [breach("active", 5.0)])):
        assert list(connections(attempts, breaches)) == [Anomaly.SECOND_CONNECTION]
        assert list(connections(attempts, breaches, Excuse(NOW, NOW + 4))) == [Anomaly.SECOND_CONNECTION]
        assert connections(attempts, breaches, Excuse(NOW, NOW + 1), Excuse(NOW + 4, NOW + 6)) == {}


@pytest.mark.parametrize("holder", ["a", None])
def test_what_happened_to_a_holder_explains_that_it_lost_one_connection(holder: str | None) -> None:
    first, second = Excuse(NOW, NOW + 9, holder), Excuse(NOW, NOW + 6, holder)
    replaces = [attempt(at, 0, replaced=True, holder="a") for at in (5, 8)]
    assert list(connections(replaces, [], first)) == [Anomaly.SECOND_CONNECTION]
    assert connections(replaces, [], first, second) == {}
    assert connections(replaces[:1], [], first._replace(holder="b")) != {}
    refused = [breach("active", at, "a") for at in (5.0, 6.0, 7.0)]
    for breaches, excused in ((refused, 4), ([], 1)):
        assert judge_connections(replaces[:1], breaches, [first], Findings()) == excused


def test_a_breach_of_a_limit_is_found() -> None:
    assert list(connections([FIRST], [breach("bucket")], Excuse(NOW, NOW + 9))) == [Anomaly.LIMIT_BREACHED]


@pytest.mark.parametrize(
    ("gap", "is_in_vain"),
    [
        (Gap(NOW - 2000, NOW - 990, "TooOld", NOW), False),
        (Gap(NOW - 950, NOW - 941, "TooOld", NOW), False),  # in no time it would have been
        (Gap(NOW - 900, NOW - 800, "TooOld", NOW), True),
        (Gap(NOW - 2000, NOW - 939, "TooOld", NOW), True),  # it ends too late
        (Gap(NOW - 900, NOW - 800, "MissingInReplay", NOW), True),
        (Gap(NOW - 999, NOW - 800, "MissingInReplay", NOW), False),
        (Gap(NOW - 998, NOW - 800, "MissingInReplay", NOW), True),  # it was seen in a replay
        (Gap(NOW - 900, NOW - 800, "MissingInReplay", NOW + 20), False),  # forgotten meanwhile
        (Gap(NOW - 900, NOW + 50, "PositionInFuture", NOW), False),
        (Gap(NOW - 900, NOW - 1, "PositionInFuture", NOW), True),
        (Gap(NOW - 900, NOW - 800, "MovedByOperator", NOW), True),
    ],
)
def test_a_gap_in_vain_is_found(gap: Gap, is_in_vain: bool) -> None:
    asked = attempt(-1, -10, revision=int(gap.start))
    of = trial(asked, forgotten=[{"at": NOW + 10, "before": NOW}])
    judge_gaps([gap], of.timeline, [], CASE, of.findings)
    assert list(found(of)) == ([Anomaly.GAP_IN_VAIN] if is_in_vain else [])


def test_everything_is_due_that_the_first_attempt_had_to_ask_for() -> None:
    late = attempt(0, 0, revision=int(NOW + 10_000))
    assert trial(late).timeline.begin == NOW
    assert trial(late, case=replace(CASE, start_age=60.0)).timeline.begin == NOW - 60
    assert trial(attempt(0, -300), case=replace(CASE, start_age=60.0)).timeline.begin == NOW - 300
    assert trial(clock_steps=[{"after": NOW + 5, "ahead": 10.0}]).timeline.first(NOW + 20) == NOW + 10


def raw(
    first: int, last: int, producer: int, *, commits: bool | None = None, transactional: bool = True
) -> _Raw:
    return _Raw(first, last, last - first + 1, producer, 0, transactional, commits, NOW + last)


def test_a_transaction_whose_marker_lies_behind_the_end_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    log = [
        raw(0, 1, 7),
        raw(2, 2, 8, transactional=False),
        raw(3, 4, 9),
        raw(5, 5, 7, commits=True),
        raw(6, 7, 7),
        raw(8, 8, 9, commits=False),
    ]

    def endless(*_: object) -> Iterator[_Raw]:
        yield from log
        raise TimeoutError

    monkeypatch.setattr("tests.judge.log.raw_batches", endless)
    found = [(it.first, it.fate) for it in batches(lambda: ("", 0), "t", 0, 5)]
    assert found == [(0, COMMITTED), (2, UNTRANSACTED), (3, "aborted")]
    assert [it.first for it in batches(lambda: ("", 0), "t", 0, 2)] == [0]
    with pytest.raises(TimeoutError):
        list(batches(lambda: ("", 0), "t", 0, 8))


def test_a_truth_that_is_cut_off_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = b"".join(b'{"at": %d, "seq": %d, "sha256": "", "body": ""}\n' % (n, n) for n in range(3))

    def answer(url: str, **_: object) -> BytesIO:
        return BytesIO(b'{"count": 3}' if "/count" in url else rows)

    monkeypatch.setattr("tests.judge.provider.urlopen", answer)
    assert [it.seq for it in Provider("").truth(0, 9)] == [0, 1, 2]
    rows = rows[: rows.rindex(b"{")]
    with pytest.raises(OSError, match="1 messages fewer"):
        list(Provider("").truth(0, 9))


def batch(first: int, last: int, fate: str = COMMITTED) -> Batch:
    return Batch(first, last, last - first + 1, "7/0", fate, NOW + last)


def visible(
    log: list[Batch], *offsets: int, legal: Any = (COMMITTED,)
) -> tuple[dict[Anomaly, str], list[float]]:
    """What is found if readers see these offsets, and when these were committed, in seconds after NOW."""
    findings = Findings()
    records = [Record(0, offset, NOW, b"k", b"v", {}) for offset in offsets]
    seen = [at - NOW for _, at in judge_visible(("bets", 0), records, log, findings, legal)]
    return {kind: it.first for kind, it in findings.found().items()}, seen


def test_what_transactions_have_committed_is_visible_and_nothing_else() -> None:
    log = [batch(0, 1), batch(3, 5, "aborted"), batch(7, 7), batch(8, 8), batch(10, 11, "aborted")]
    assert visible(log, 0, 1, 7, 8) == ({}, [1.0, 1.0, 7.0, 8.0])
    for seen, kind in (
        ((0, 1, 4, 7, 8), Anomaly.ABORTED_READ),
        ((0, 1, 7, 8, 10), Anomaly.ABORTED_READ),
        ((0, 7, 8), Anomaly.LOST_WRITE),
        ((0, 1, 8), Anomaly.LOST_WRITE),
        ((0, 1, 7), Anomaly.LOST_WRITE),
    ):
        assert list(visible(log, *seen)[0]) == [kind]
    untransacted = [batch(0, 0, UNTRANSACTED)]
    assert list(visible(untransacted, 0)[0]) == [Anomaly.ABORTED_READ]
    assert visible(untransacted, 0, legal=(COMMITTED, UNTRANSACTED))[0] == {}  # copied records


def test_a_last_stable_offset_that_stands_still_is_found() -> None:
    place = ("bets", 3)
    stuck = Standstill({place: 10, ("gaps", 0): 0})
    for now in range(int(STUCK_SECONDS)):
        assert stuck.look(float(now), {place: 8, ("gaps", 0): 0})
    assert stuck.look(STUCK_SECONDS - 1, {place: 9, ("gaps", 0): 0})  # it moves
    assert not stuck.look(2 * STUCK_SECONDS, {place: 9, ("gaps", 0): 0})
    assert stuck.hidden == {place: 9}
    assert not Standstill({place: 10}).look(0.0, {place: 12})


def test_a_report_is_true_when_nothing_was_found() -> None:
    assert Report({}, {"bets": 1200}, 7)
    findings = Findings()
    findings.add(Anomaly.DUPLICATE, 2.0, "the second")
    findings.add(Anomaly.DUPLICATE, 1.0, lambda: "the first")
    report = Report(findings.found(), {"bets": 1}, 7)
    assert not report
    assert report.json()["anomalies"] == {"duplicate": {"count": 2, "first": "the first"}}

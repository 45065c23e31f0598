"""What the audit finds in a sequence of bets."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.audit import bets
from bridge.audit.bets import BetsCheck, passes_over
from bridge.audit.findings import HOUR_MS, Findings, Hour, Proof
from bridge.errors import ForeignRecord, SchemaNotFound
from bridge.kafka.partitioner import partition_of

AT = 500_000 * HOUR_MS
Record = tuple[bytes | None, bytes | None]


def value(bet_id: str, version: int = 1, content: str = "", settled: int = 0) -> bytes:
    """A bet in a format of these tests."""
    return f"{bet_id} {version} {settled} {content}".encode()


def read(data: bytes) -> dict[str, Any]:
    bet_id, version, settled, _ = data.split(b" ", 3)
    if bet_id == b"lost":
        raise SchemaNotFound("lost")
    if bet_id == b"junk":
        raise ForeignRecord("junk")
    return {"betId": bet_id.decode(), "settlementVersion": int(version), "settlementTime": int(settled)}


def judged(
    *records: Record, partitions: int = 1, passes: int = 1, wanted: set[int] | None = None
) -> tuple[Findings, BetsCheck]:
    """The findings in records of partition 0, an hour apart."""
    findings = Findings()
    check = BetsCheck("bets", partitions, read, findings, set() if wanted is None else wanted)
    for number in range(passes):
        check.begin(0, number, passes)
        for offset, (key, data) in enumerate(records):
            check.take(key, data, offset, AT + offset * HOUR_MS)
        check.end()
    check.conclude()
    return findings, check


def found(findings: Findings) -> list[tuple[Proof, int | None]]:
    """Each violation with its offset."""
    return [(violation.proof, violation.offset) for violation in findings.violations]


def test_settlements_in_order_are_no_violation() -> None:
    findings, check = judged(
        (b"a", value("a", 1)),
        (b"a", value("a", 1, "corrected")),
        (b"b", value("b", 7)),
        (b"a", value("a", 3)),
    )
    assert found(findings) == []
    assert check.records == 4
    assert findings.hours == {
        500_000: Hour(bets=1),
        500_001: Hour(bets=1, corrections=1),
        500_002: Hour(bets=1),
        500_003: Hour(bets=1),
    }


@pytest.mark.parametrize("passes", [1, 3])
def test_a_bet_that_goes_back_is_found(passes: int) -> None:
    records = [
        (b"a", value("a", 2)),
        (b"a", value("a", 1)),
        (b"b", value("b")),
        (b"a", value("a", 1, "again")),
    ]
    findings, check = judged(*records, passes=passes)
    assert found(findings) == [(Proof.VERSION, 1), (Proof.VERSION, 3)]
    assert findings.violations[0].text == "version 1 after version 2"
    assert (findings.violations[0].key, findings.hours[500_001].violations) == ("a", 1)
    assert check.records == 4


def test_a_content_that_is_there_already_is_doubled() -> None:
    a, b = (b"a", value("a", 1, "A")), (b"a", value("a", 1, "B"))
    assert found(judged(a, b, a)[0]) == []
    assert found(judged(a, a)[0]) == [(Proof.DOUBLED, 1)]


def test_only_the_last_record_of_a_key_must_be_readable() -> None:
    good = (b"a", value("a"))
    findings, _ = judged((b"a", value("junk")), good)
    assert (found(findings), findings.warned[Proof.UNREADABLE]) == ([], 1)
    bad: list[Record] = [
        (b"a", value("junk")),
        (b"a", None),
        (None, value("a")),
        (b"", b""),
    ]
    for record in bad:
        assert found(judged(good, record)[0]) == [(Proof.UNREADABLE, 1)]
        assert judged(good, record)[1].records == 1


def test_more_unreadable_records_than_are_kept_are_all_counted() -> None:
    findings, _ = judged(*((b"%d" % n, value("junk")) for n in range(250)))
    assert findings.counts[Proof.UNREADABLE] == 250


def test_more_unreadable_records_than_are_kept_are_no_violation_once_superseded() -> None:
    junk = [(b"%d" % n, value("junk")) for n in range(250)]
    good = [(b"%d" % n, value(str(n))) for n in range(250)]
    findings, _ = judged(*junk, *good)
    assert (findings.counts[Proof.UNREADABLE], findings.warned[Proof.UNREADABLE]) == (0, 250)
    findings, _ = judged(*junk, *good[:240], junk[0], junk[200])
    assert (findings.counts[Proof.UNREADABLE], findings.warned[Proof.UNREADABLE]) == (12, 240)


def test_a_bet_whose_schema_the_registry_has_lost_is_not_superseded() -> None:
    findings, _ = judged((b"a", value("lost")), (b"a", value("a")))
    assert found(findings) == [(Proof.UNREADABLE, 0)]
    assert findings.warned[Proof.UNREADABLE] == 0


def test_a_key_that_is_not_the_bet_id_is_found() -> None:
    assert found(judged((b"a", value("b")))[0]) == [(Proof.KEY, 0)]


def test_settlement_times_that_must_occur_are_looked_for() -> None:
    missing = {5, 6}
    judged((b"a", value("a", settled=5)), wanted=missing)
    assert missing == {6}


def test_a_record_in_another_partition_is_found() -> None:
    keys = [b"%d" % n for n in range(40)]
    right = [(key, value(key.decode())) for key in keys if partition_of(key, 6) == 0]
    wrong = next(key for key in keys if partition_of(key, 6) == 5)
    records: list[Record] = [*right, (wrong, value(wrong.decode()))]
    for passes in (1, 2):
        findings, check = judged(*records, partitions=6, passes=passes)
        # with one partition before, it could be there: only its neighbours in other partitions tell
        assert findings.warned[Proof.PARTITION] + findings.counts[Proof.PARTITION] == 1
        assert check.first == {0: (0, AT)}


@pytest.mark.parametrize(("offsets", "passes"), [(0, 1), (1, 1), (10, 1), (11, 2), (95, 10)])
def test_a_table_is_never_larger_than_its_bound(
    monkeypatch: pytest.MonkeyPatch, offsets: int, passes: int
) -> None:
    monkeypatch.setattr(bets, "ROWS", 10)
    assert passes_over(offsets) == passes


def test_an_error_of_the_registry_leaves_nothing_counted() -> None:
    def away(_: bytes) -> dict[str, Any]:
        raise ConnectionError

    findings = Findings()
    check = BetsCheck("bets", 1, away, findings, set())
    check.begin(0, 0, 1)
    with pytest.raises(ConnectionError):
        check.take(b"a", value("a"), 0, AT)
    assert (check.records, findings.hours) == (0, {})

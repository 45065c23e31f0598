"""Records in other partitions than those of their keys: planted, or from before partitions were added."""

from __future__ import annotations

import pytest

from bridge.audit.findings import AuditFinding, Findings, Proof
from bridge.audit.placement import Placement
from bridge.kafka.partitioner import partition_of

KEYS = [b"bet-%d" % n for n in range(600)]


def judged(records: list[tuple[bytes, int, int]], partitions: int) -> Findings:
    """The findings of records as (key, partition, timestamp), in the order of their partitions."""
    placement, findings = Placement(partitions), Findings()
    for partition in range(partitions):
        placement.begin(partition)
        for key, _, at in (record for record in records if record[1] == partition):
            if not placement.right(key, partition, at):
                placement.keep(
                    AuditFinding(Proof.PARTITION, "elsewhere", "bets", partition, 0, at, key.decode())
                )
    placement.conclude(findings)
    return findings


@pytest.mark.parametrize("before", [1, 2, 4, 5])
def test_added_partitions_are_a_warning(before: int) -> None:
    records = [(key, partition_of(key, before if at < 300 else 6), at) for at, key in enumerate(KEYS)]
    findings = judged(records, 6)
    assert findings.violations == []
    elsewhere = sum(partition_of(key, 6) != partition for key, partition, _ in records)
    assert findings.warned[Proof.PARTITION] == elsewhere > 0
    assert f"as {before} partition" in findings.warnings[0].text


@pytest.mark.parametrize("partition", range(6))
def test_one_record_elsewhere_is_a_violation(partition: int) -> None:
    records = [(key, partition_of(key, 6), at) for at, key in enumerate(KEYS)]
    wrong = next(key for key in KEYS if partition_of(key, 6) != partition)
    findings = judged([*records, (wrong, partition, 1_000)], 6)
    assert [(found.key, found.partition) for found in findings.violations] == [(wrong.decode(), partition)]
    assert (findings.counts[Proof.PARTITION], findings.warnings) == (1, [])


def test_all_records_elsewhere_are_counted() -> None:
    records = [(key, (partition_of(key, 6) + 1) % 6, at) for at, key in enumerate(KEYS)]
    findings = judged(records, 6)
    assert findings.counts[Proof.PARTITION] == len(KEYS)
    assert len(findings.violations) == 100


def test_records_in_their_partitions_are_no_finding() -> None:
    findings = judged([(key, partition_of(key, 6), 0) for key in KEYS], 6)
    assert (findings.violations, findings.warnings) == ([], [])

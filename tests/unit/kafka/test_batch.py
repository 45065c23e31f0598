"""When a batch is full, and when it is old enough."""

from __future__ import annotations

from bridge.config import BatchSettings
from bridge.kafka.batch import (
    BACKLOG,
    MAX_LINGER_SECONDS,
    OVERHEAD_BYTES,
    Batch,
    Record,
    batch_linger,
)

LIMITS = BatchSettings(max_records=3, max_bytes=1000, max_age_ms=20)


def record(size: int) -> Record:
    return Record("topic", b"key", bytes(size), 0)


def test_a_batch_is_full_by_bytes() -> None:
    batch = Batch()
    batch.add(record(1000 - OVERHEAD_BYTES - 1))
    assert not batch.full(LIMITS)
    batch = Batch()
    batch.add(record(1000 - OVERHEAD_BYTES))
    assert batch.full(LIMITS)


def test_the_linger_grows_with_the_backlog() -> None:
    assert batch_linger(LIMITS, 0) == 0.02
    assert batch_linger(LIMITS, BACKLOG) == 0.04
    assert batch_linger(LIMITS, 10_000_000) == MAX_LINGER_SECONDS
    grows = [batch_linger(LIMITS, backlog) for backlog in range(0, 10_000, 10)]
    assert grows == sorted(grows)


def test_a_setting_above_the_bound_is_as_it_is_set() -> None:
    slow = BatchSettings(max_age_ms=3_000)
    assert [batch_linger(slow, backlog) for backlog in (0, 10_000)] == [3.0, 3.0]


def test_what_was_written_before_is_not_counted_again_however_a_batch_is_parted() -> None:
    batch = Batch()
    for number in range(10):
        batch.add(Record("bets", b"k", b"%d" % number, 0, partition=number % 2))
    batch.restore([Record("bets", b"k", b"%d" % number, 0, partition=0) for number in range(100, 120)])
    assert batch.reached({("bets", 0): 50}) == {("bets", 0): (75, 0)}
    head = batch.split(800, 1, "gaps")
    assert head is not None
    head.extend(batch)
    assert head.again == 20
    assert [record.first for record in head.records].count(True) == 2
    assert head.reached({("bets", 0): 50, ("bets", 1): 7}) == {("bets", 0): (75, 0), ("bets", 1): (12, 0)}

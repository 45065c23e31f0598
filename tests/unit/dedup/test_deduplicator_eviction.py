"""Which rows the deduplicator evicts, and how much memory it takes."""

from __future__ import annotations

import tracemalloc

import pytest

from bridge.dedup.deduplicator import DROPPED_AT_ONCE, Deduplicator, DedupResult, fingerprint

NOW = 1_700_000_000.0
DAY = 86_400.0
A, B = fingerprint(b"\0\0\0\0\1a"), fingerprint(b"\0\0\0\0\1b")


@pytest.fixture(autouse=True)
def keeps_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """No rows stay because they are the last."""
    monkeypatch.setattr("bridge.dedup.deduplicator.KEPT", 0)


def bet(n: int) -> bytes:
    """Return a key as long as those of the feed."""
    return b"01234567-89ab-cdef-0123-%012d" % n


def shown(revision: float) -> Deduplicator:
    """Return a deduplicator on a connection from this revision, with a lateness of zero measured."""
    deduplicator = Deduplicator()
    deduplicator.connected(revision)
    for _ in range(1_000):
        deduplicator.observe(revision)
    return deduplicator


def knows(deduplicator: Deduplicator, key: bytes, version: int = 1, content: bytes = A) -> bool:
    """Return whether the content would not be published at once."""
    found = deduplicator.judge(key, version, content, lambda _: None, replaying=True)
    return found in (DedupResult.DUPLICATE, DedupResult.UNDECIDED)


def test_only_old_rows_are_evicted() -> None:
    deduplicator = Deduplicator()
    for at in range(10):
        deduplicator.publish(b"bet %d" % at, 1, A, at=at)
        deduplicator.record_dead_letter(b"letter %d" % at, at=at)
        deduplicator.evict(keep_from=0)
    deduplicator.evict(keep_from=7)
    assert len(deduplicator) == 6
    assert not knows(deduplicator, b"bet 6")
    assert knows(deduplicator, b"bet 7")
    assert deduplicator.dead_letter_time(b"letter 7") == 7
    assert deduplicator.dead_letter_time(b"letter 6") is None


def test_the_last_rows_stay_however_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.dedup.deduplicator.KEPT", 4)
    deduplicator = Deduplicator()
    for at in range(10):
        deduplicator.publish(bet(at), 1, A, at=at)
        deduplicator.evict(keep_from=0)
    for _ in range(2):
        deduplicator.evict(keep_from=20)
        assert [knows(deduplicator, bet(at)) for at in range(10)] == [False] * 6 + [True] * 4
    for at in range(10, 13):
        deduplicator.publish(bet(at), 1, A, at=30)
    deduplicator.evict(keep_from=20)
    assert [knows(deduplicator, bet(at)) for at in range(13)] == [False] * 9 + [True] * 4


def test_a_bet_that_is_settled_again_is_young_again() -> None:
    deduplicator = Deduplicator()
    for key in (b"version", b"content", b"neither"):
        deduplicator.publish(key, 1, A, at=0)
    deduplicator.record_dead_letter(A, at=0)
    deduplicator.record_dead_letter(B, at=0)
    deduplicator.evict(keep_from=0)
    deduplicator.publish(b"version", 2, A, at=5)
    deduplicator.publish(b"content", 1, B, at=5)
    deduplicator.record_dead_letter(A, at=5)
    deduplicator.evict(keep_from=5)
    assert len(deduplicator) == 3
    assert not knows(deduplicator, b"neither")
    assert knows(deduplicator, b"version", version=2)
    assert deduplicator.dead_letter_time(A) == 5
    deduplicator.connected()
    assert not knows(deduplicator, b"content")  # its first content is as old as a bet that is evicted
    assert knows(deduplicator, b"content", content=B)
    deduplicator.evict(keep_from=5.001)
    assert len(deduplicator) == 0


def test_an_evicted_bet_leaves_none_of_its_contents_behind() -> None:
    deduplicator = Deduplicator()
    deduplicator.publish(b"bet", 1, A, at=0)
    deduplicator.publish(b"bet", 1, B, at=0)
    deduplicator.evict(keep_from=1)
    deduplicator.publish(b"bet", 1, B, at=2)
    deduplicator.connected()
    assert not knows(deduplicator, b"bet", content=A)
    assert knows(deduplicator, b"bet", content=B)


def test_a_bet_that_is_evicted_after_it_was_judged_is_published_as_new() -> None:
    deduplicator = Deduplicator()
    deduplicator.publish(b"bet", 2, A, at=0)
    assert knows(deduplicator, b"bet", version=2)
    deduplicator.evict(keep_from=1)
    assert not knows(deduplicator, b"bet", version=2)
    assert not deduplicator.proves_replay(b"bet")
    deduplicator.publish(b"bet", 1, B, at=2)
    assert knows(deduplicator, b"bet", content=B)


def test_a_dead_letter_is_not_taken_for_a_bet() -> None:
    deduplicator = Deduplicator()
    deduplicator.record_dead_letter(b"name", at=1)
    assert deduplicator.judge(b"name", 1, A, lambda _: None, replaying=True) is DedupResult.NEW
    deduplicator.publish(b"name", 1, A, at=2)
    assert deduplicator.dead_letter_time(b"name") == 1
    assert len(deduplicator) == 2


def test_a_large_eviction_is_spread_over_later_calls() -> None:
    deduplicator = Deduplicator()
    count = DROPPED_AT_ONCE + 40
    for n in range(count):
        deduplicator.publish(bet(n), 1, A, at=0)
    deduplicator.evict(keep_from=1)
    assert len(deduplicator) == 40
    deduplicator.publish(bet(count), 1, A, at=2)
    assert len(deduplicator) == 37
    deduplicator.evict(keep_from=1)
    assert len(deduplicator) == 1
    assert knows(deduplicator, bet(count))


def test_catching_up_takes_no_more_memory_than_an_hour_of_the_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.dedup.deduplicator.CROWDED", 0)
    deduplicator = shown(NOW - 3 * DAY)
    sizes = []
    for n in range(64_800):
        settled_at = NOW - 3 * DAY + 4 * n
        deduplicator.publish(bet(n), 1, A, NOW, settled_at)
        if n % 500 == 0:
            deduplicator.evict(keep_from=settled_at - 120)
            sizes.append(len(deduplicator))
    # 900 of the hour, one block that is not complete and one that says when those before it were published.
    assert max(sizes) <= 900 + 2_000 + 500
    assert knows(deduplicator, bet(n))
    assert knows(deduplicator, bet(n - 900))


def test_a_small_table_is_evicted_by_receipt_alone() -> None:
    deduplicator = shown(NOW - 3 * DAY)
    for n in range(5_000):
        deduplicator.publish(bet(n), 1, A, NOW, NOW - 3 * DAY + 40 * n)
    deduplicator.evict(keep_from=NOW - 60)
    assert len(deduplicator) == 5_000


def test_restored_rows_count_by_their_receipt_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridge.dedup.deduplicator.CROWDED", 0)
    deduplicator = shown(NOW - DAY)
    for n in range(5_000):
        deduplicator.publish(bet(n), 1, A, NOW - 60)
    deduplicator.evict(keep_from=NOW - DAY)
    assert len(deduplicator) == 5_000
    for n in range(5_000, 7_000):
        deduplicator.publish(bet(n), 1, A, NOW, NOW - DAY + n)
    for _ in range(3):
        deduplicator.evict(keep_from=NOW - DAY + 10_600)
    assert len(deduplicator) == 1_000


def test_a_bet_takes_at_most_80_bytes() -> None:
    count = 40_000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    deduplicator = Deduplicator()
    for n in range(count):
        deduplicator.publish(bet(n), 1, A, at=float(n))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(deduplicator) == count
    assert 44 < (after - before) / count < 80


def test_contents_of_one_bet_are_evicted_with_their_rows() -> None:
    count = 20_000
    deduplicator = Deduplicator()
    tracemalloc.start()
    for n in range(count):
        if n == count // 4:
            before, _ = tracemalloc.get_traced_memory()
        deduplicator.publish(b"bet", 1, fingerprint(b"\0\0\0\0\1%d" % n), at=float(n))
        if n % 100 == 0:
            deduplicator.evict(keep_from=n - 5_000)
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (after - before) < 10 * (count * 3 // 4)


def test_what_is_left_of_the_contents_of_a_bet_is_walked() -> None:
    contents = [fingerprint(b"\0\0\0\0\1%d" % (n % 3)) for n in range(12)]
    deduplicator = Deduplicator()
    for at, content in enumerate(contents):
        deduplicator.publish(b"bet", 1, content, at=float(at))
        deduplicator.evict(keep_from=0)
    deduplicator.evict(keep_from=3)
    deduplicator.connected()
    assert deduplicator.proves_replay(b"bet")
    for at in range(3, 9):
        assert knows(deduplicator, b"bet", content=contents[at])
    deduplicator.evict(keep_from=8)
    for at in range(9, 12):
        assert knows(deduplicator, b"bet", content=contents[at])
    assert not knows(deduplicator, b"bet", content=contents[9])
    assert knows(deduplicator, b"bet", content=contents[11])
    deduplicator.publish(b"bet", 1, contents[9], at=12.0)
    deduplicator.evict(keep_from=12)
    assert not deduplicator.proves_replay(b"bet")

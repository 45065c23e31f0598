"""What the guard forgets, and what memory it takes."""

from __future__ import annotations

import tracemalloc

import pytest

from bridge.state.deduplicator import DROPPED_AT_ONCE, Guard, Verdict, fingerprint

NOW = 1_700_000_000.0
DAY = 86_400.0
A, B = fingerprint(b"\0\0\0\0\1a"), fingerprint(b"\0\0\0\0\1b")


def bet(n: int) -> bytes:
    """A key as long as those of the feed."""
    return b"01234567-89ab-cdef-0123-%012d" % n


def shown(revision: float) -> Guard:
    """A guard on a connection from there, whose beginning has shown that the provider is not late."""
    guard = Guard()
    guard.connected(revision)
    for _ in range(1_000):
        guard.came(revision)
    return guard


def knows(guard: Guard, key: bytes, version: int = 1, content: bytes = A) -> bool:
    """Whether the content would be dropped as a duplicate."""
    return guard.judge(key, version, content, lambda _: None, replaying=True) is Verdict.DUPLICATE


def test_what_is_old_is_evicted_and_nothing_younger() -> None:
    """What was received at the very moment to keep from stays; bets and dead letters go alike."""
    guard = Guard()
    for at in range(10):
        guard.publish(b"bet %d" % at, 1, A, at=at)
        guard.bury(b"letter %d" % at, at=at)
        guard.evict(keep_from=0)
    guard.evict(keep_from=7)
    assert len(guard) == 6
    assert not knows(guard, b"bet 6")
    assert knows(guard, b"bet 7")
    assert guard.buried_at(b"letter 7") == 7
    assert guard.buried_at(b"letter 6") is None


def test_a_bet_that_is_settled_again_is_young_again() -> None:
    """Another version or another content, and a dead letter that came again, count from the last time."""
    guard = Guard()
    for key in (b"version", b"content", b"neither"):
        guard.publish(key, 1, A, at=0)
    guard.bury(A, at=0)
    guard.bury(B, at=0)
    guard.evict(keep_from=0)
    guard.publish(b"version", 2, A, at=5)
    guard.publish(b"content", 1, B, at=5)
    guard.bury(A, at=5)
    guard.evict(keep_from=5)
    assert len(guard) == 3
    assert not knows(guard, b"neither")
    assert knows(guard, b"version", version=2)
    assert guard.buried_at(A) == 5
    guard.connected()
    assert knows(guard, b"content")  # all of its contents at that version are known still
    guard.evict(keep_from=5.001)
    assert len(guard) == 0


def test_an_evicted_bet_leaves_none_of_its_contents_behind() -> None:
    """When it comes anew it has one again, and nothing that came before."""
    guard = Guard()
    guard.publish(b"bet", 1, A, at=0)
    guard.publish(b"bet", 1, B, at=0)
    guard.evict(keep_from=1)
    guard.publish(b"bet", 1, B, at=2)
    guard.connected()
    assert not knows(guard, b"bet", content=A)
    assert knows(guard, b"bet", content=B)


def test_a_bet_that_is_evicted_after_it_was_judged_is_published_as_new() -> None:
    """What was found a moment ago is looked for again."""
    guard = Guard()
    guard.publish(b"bet", 2, A, at=0)
    assert knows(guard, b"bet", version=2)
    guard.evict(keep_from=1)
    assert not knows(guard, b"bet", version=2)
    assert not guard.knew(b"bet")
    guard.publish(b"bet", 1, B, at=2)
    assert knows(guard, b"bet", content=B)


def test_a_dead_letter_is_not_taken_for_a_bet() -> None:
    """Even where the one has the other's name."""
    guard = Guard()
    guard.bury(b"name", at=1)
    assert guard.judge(b"name", 1, A, lambda _: None, replaying=True) is Verdict.NEW
    guard.publish(b"name", 1, A, at=2)
    assert guard.buried_at(b"name") == 1
    assert len(guard) == 2


def test_much_is_forgotten_little_by_little() -> None:
    """An eviction stops after some rows; each publication takes a few more along."""
    guard = Guard()
    count = DROPPED_AT_ONCE + 40
    for n in range(count):
        guard.publish(bet(n), 1, A, at=0)
    guard.evict(keep_from=1)
    assert len(guard) == 40
    guard.publish(bet(count), 1, A, at=2)
    assert len(guard) == 37
    guard.evict(keep_from=1)
    assert len(guard) == 1
    assert knows(guard, bet(count))


def test_catching_up_takes_no_more_memory_than_an_hour_of_the_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A quarter of a bet a second for three days: all are received now, and an hour of them is kept."""
    monkeypatch.setattr("bridge.state.deduplicator.CROWDED", 0)
    guard = shown(NOW - 3 * DAY)
    sizes = []
    for n in range(64_800):
        settled_at = NOW - 3 * DAY + 4 * n
        guard.publish(bet(n), 1, A, NOW, settled_at)
        if n % 500 == 0:
            guard.evict(keep_from=settled_at - 120)
            sizes.append(len(guard))
    # 900 of the hour, one block that is not complete and one that says when those before it were published.
    assert max(sizes) <= 900 + 2_000 + 500
    assert knows(guard, bet(n))
    assert knows(guard, bet(n - 900))


def test_where_there_are_few_all_that_was_received_since_is_kept() -> None:
    """Nothing is assumed of the provider before memory asks for it."""
    guard = shown(NOW - 3 * DAY)
    for n in range(5_000):
        guard.publish(bet(n), 1, A, NOW, NOW - 3 * DAY + 40 * n)
    guard.evict(keep_from=NOW - 60)
    assert len(guard) == 5_000


def test_what_is_read_back_says_nothing_of_when_it_was_published(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only its receipt counts, until the feed shows how far it is."""
    monkeypatch.setattr("bridge.state.deduplicator.CROWDED", 0)
    guard = shown(NOW - DAY)
    for n in range(5_000):
        guard.publish(bet(n), 1, A, NOW - 60)
    guard.evict(keep_from=NOW - DAY)
    assert len(guard) == 5_000
    for n in range(5_000, 7_000):
        guard.publish(bet(n), 1, A, NOW, NOW - DAY + n)
    for _ in range(3):
        guard.evict(keep_from=NOW - DAY + 10_600)
    assert len(guard) == 1_000


def test_a_bet_takes_some_tens_of_bytes() -> None:
    """At most 80, everything included."""
    count = 40_000
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    guard = Guard()
    for n in range(count):
        guard.publish(bet(n), 1, A, at=float(n))
    after, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(guard) == count
    assert 44 < (after - before) / count < 80

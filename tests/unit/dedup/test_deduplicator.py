"""The deduplicator distinguishes new bets from repeated ones."""

from __future__ import annotations

import pytest
from xxhash import xxh3_128_digest

from bridge.dedup.deduplicator import Deduplicator, DedupResult, Rewrite, fingerprint

KEY = b"bet"
TODAY, BEFORE = b"\0\0\0\7", b"\0\0\0\2"
"""Ids of schemas."""


def content(body: bytes, schema: bytes = TODAY) -> bytes:
    return fingerprint(b"\0" + schema + body)


def unfit(schema: bytes) -> None:
    """Rewrite a content that does not fit into any other schema."""


A, B, C = content(b"a"), content(b"b"), content(b"c")
OLD_A, OLD_B = content(b"a", BEFORE), content(b"b", BEFORE)
NEW, CORRECTION, DUPLICATE, STALE, UNDECIDED = (
    DedupResult.NEW,
    DedupResult.CORRECTION,
    DedupResult.DUPLICATE,
    DedupResult.STALE,
    DedupResult.UNDECIDED,
)


def offer(
    deduplicator: Deduplicator,
    *contents: bytes,
    version: int = 1,
    rewrite: Rewrite = unfit,
    replaying: bool = True,
) -> list[DedupResult]:
    """Judge contents of one bet, and publish them as the pipeline does."""
    verdicts = []
    for each in contents:
        verdicts.append(deduplicator.judge(KEY, version, each, rewrite, replaying=replaying))
        if verdicts[-1] in (NEW, CORRECTION):
            deduplicator.publish(KEY, version, each, at=0.0)
    return verdicts


def restored(*contents: bytes, version: int = 1) -> Deduplicator:
    """Return a deduplicator as restored after a crash, on a new connection."""
    deduplicator = Deduplicator()
    for each in contents:
        deduplicator.publish(KEY, version, each, at=0.0)
    deduplicator.connected()
    return deduplicator


def test_a_value_is_known_by_its_schema_and_a_hash_of_its_bytes() -> None:
    assert content(b"a") == TODAY + xxh3_128_digest(b"\0" + TODAY + b"a")
    assert len({A, B, C, OLD_A, OLD_B}) == 5
    assert len(content(b"a" * 10_000)) == 20


def test_an_unknown_bet_and_a_higher_version_are_new() -> None:
    deduplicator = restored()
    assert offer(deduplicator, A) == [NEW]
    assert offer(deduplicator, A, version=2) == [NEW]


def test_a_lower_version_is_stale() -> None:
    deduplicator = restored(A, version=2)
    assert offer(deduplicator, A, B, version=1) == [STALE, STALE]


@pytest.mark.parametrize("committed", range(4))
def test_there_and_back_in_a_replay_goes_on_where_it_was_cut(committed: int) -> None:
    verdicts = offer(restored(*[A, B, A][:committed]), A, B, A, C)
    known = [DUPLICATE, UNDECIDED, DUPLICATE] if committed != 2 else [UNDECIDED, DUPLICATE]
    assert verdicts[:committed] == known[:committed]
    assert set(verdicts[committed:]) <= {NEW, CORRECTION}


def test_an_earlier_content_is_undecided_until_the_last_one_comes() -> None:
    assert offer(restored(A, B), A) == [UNDECIDED]
    assert offer(restored(A, B, A), A, B) == [DUPLICATE, UNDECIDED]
    assert offer(restored(A, B, C), A, B, A) == [UNDECIDED, UNDECIDED, CORRECTION]
    assert offer(restored(A, B), A, replaying=False) == [CORRECTION]


def test_the_walk_ends_with_the_first_new_content() -> None:
    assert offer(restored(A, B), A, B, C, B) == [UNDECIDED, DUPLICATE, CORRECTION, CORRECTION]


def test_judging_publishes_nothing() -> None:
    deduplicator = restored()
    assert [deduplicator.judge(KEY, 1, A, unfit, replaying=True) for _ in range(2)] == [NEW, NEW]
    assert len(deduplicator) == 0


def test_a_lower_version_that_was_published_is_ignored() -> None:
    deduplicator = restored(B, version=2)
    deduplicator.publish(KEY, 1, A, at=0.0)
    assert offer(deduplicator, B, version=2, replaying=False) == [DUPLICATE]


@pytest.mark.parametrize("replaying", [True, False])
def test_a_content_in_an_earlier_schema_is_compared_in_that_schema(replaying: bool) -> None:
    asked = []

    def rewrite(schema: bytes) -> bytes:
        asked.append(schema)
        return OLD_A

    assert offer(restored(OLD_A), A, rewrite=rewrite, replaying=replaying) == [DUPLICATE]
    assert offer(restored(OLD_B), A, rewrite=rewrite, replaying=replaying) == [CORRECTION]
    assert set(asked) == {BEFORE}
    assert offer(restored(OLD_A), A, rewrite=unfit, replaying=replaying) == [CORRECTION]


def test_a_content_in_the_same_schema_is_not_rewritten() -> None:
    assert offer(restored(A), B, rewrite=lambda _: A, replaying=False) == [CORRECTION]


def test_a_replay_walks_across_a_change_of_schema() -> None:
    deduplicator = restored(OLD_A, OLD_B, A)
    assert offer(deduplicator, A, rewrite=lambda _: OLD_A) == [DUPLICATE]
    assert offer(deduplicator, B, rewrite=lambda _: OLD_B) == [UNDECIDED]
    assert offer(deduplicator, A, C) == [DUPLICATE, CORRECTION]


def test_a_dead_letter_is_known_by_its_bytes() -> None:
    deduplicator = Deduplicator()
    assert deduplicator.dead_letter_time(A) is None
    deduplicator.record_dead_letter(A, at=0.0)
    assert deduplicator.dead_letter_time(A) == 0
    assert deduplicator.dead_letter_time(B) is None
    deduplicator.record_dead_letter(A, at=7.0)
    assert deduplicator.dead_letter_time(A) == 7


def test_bets_known_before_the_connection_are_distinguished_from_its_own() -> None:
    deduplicator = restored(A)
    assert deduplicator.proves_replay(KEY)
    assert not deduplicator.proves_replay(b"other")
    assert offer(deduplicator, A) == [DUPLICATE]
    assert deduplicator.proves_replay(KEY)
    deduplicator.connected()
    assert deduplicator.proves_replay(KEY)


def test_what_the_unproven_replay_of_an_earlier_process_has_brought_shows_nothing() -> None:
    deduplicator, keys = Deduplicator(), (b"before", b"brought", b"ours")

    def proving() -> list[bytes]:
        return [key for key in keys if deduplicator.proves_replay(key)]

    deduplicator.publish(b"brought", 1, A, at=10.0, brought=True)
    deduplicator.publish(b"before", 1, A, at=9.0)  # in another partition
    deduplicator.connected(replay_unproven=True)
    assert proving() == [b"before"]
    deduplicator.publish(b"ours", 1, A, at=11.0, settled_at=10.0)
    deduplicator.connected(replay_unproven=True)
    assert proving() == [b"before"]
    deduplicator.connected()
    assert proving() == [*keys]


def test_a_correction_leaves_a_bet_known_and_a_new_version_does_not() -> None:
    deduplicator = restored(A)
    assert offer(deduplicator, B) == [CORRECTION]
    assert deduplicator.proves_replay(KEY)
    assert offer(deduplicator, A, version=2) == [NEW]
    assert not deduplicator.proves_replay(KEY)

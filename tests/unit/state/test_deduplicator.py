"""What is new, and what a replay brings back."""

from __future__ import annotations

from hashlib import blake2b

import pytest

from bridge.state.deduplicator import Deduplicator, DedupResult, Rewrite, fingerprint

KEY = b"bet"
TODAY, BEFORE = b"\0\0\0\7", b"\0\0\0\2"
"""Ids of schemas."""


def content(body: bytes, schema: bytes = TODAY) -> bytes:
    """The fingerprint of a record in wire format."""
    return fingerprint(b"\0" + schema + body)


def unfit(schema: bytes) -> None:
    """What is in hand does not fit into any other schema."""


A, B, C = content(b"a"), content(b"b"), content(b"c")
OLD_A, OLD_B = content(b"a", BEFORE), content(b"b", BEFORE)
NEW, CORRECTION, DUPLICATE, STALE = (
    DedupResult.NEW,
    DedupResult.CORRECTION,
    DedupResult.DUPLICATE,
    DedupResult.STALE,
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
    """A guard as it is after a crash, on a new connection."""
    deduplicator = Deduplicator()
    for each in contents:
        deduplicator.publish(KEY, version, each, at=0.0)
    deduplicator.connected()
    return deduplicator


def test_a_value_is_known_by_its_schema_and_a_hash_of_its_bytes() -> None:
    """Twenty bytes, whatever its length; the first byte of the wire format is the same for all."""
    assert content(b"a") == TODAY + blake2b(b"a", digest_size=16).digest()
    assert len({A, B, C, OLD_A, OLD_B}) == 5
    assert len(content(b"a" * 10_000)) == 20


def test_a_bet_that_nobody_knows_is_new() -> None:
    """And so is a higher version of one that is known, whatever it says."""
    deduplicator = restored()
    assert offer(deduplicator, A) == [NEW]
    assert offer(deduplicator, A, version=2) == [NEW]


def test_a_lower_version_is_stale() -> None:
    """Whatever it says: a consumer never sees a bet go back."""
    deduplicator = restored(A, version=2)
    assert offer(deduplicator, A, B, version=1) == [STALE, STALE]


@pytest.mark.parametrize("replaying", [True, False])
def test_the_same_content_in_a_row_is_a_duplicate(replaying: bool) -> None:
    """Live as well: it changes nothing for anybody."""
    assert offer(restored(), A, A, B, B, replaying=replaying) == [NEW, DUPLICATE, CORRECTION, DUPLICATE]


@pytest.mark.parametrize("replaying", [True, False])
def test_there_and_back_is_published(replaying: bool) -> None:
    """A, B, A that comes for the first time is two changes, even while the connection replays."""
    assert offer(restored(), A, B, A, replaying=replaying) == [NEW, CORRECTION, CORRECTION]


@pytest.mark.parametrize("committed", range(4))
def test_there_and_back_in_a_replay_goes_on_where_it_was_cut(committed: int) -> None:
    """Whatever part of A, B, A was committed before, the rest of it is published, and only that."""
    verdicts = offer(restored(*[A, B, A][:committed]), A, B, A, C)
    assert verdicts[:committed] == [DUPLICATE] * committed
    assert set(verdicts[committed:]) <= {NEW, CORRECTION}


def test_a_replay_may_begin_in_the_middle() -> None:
    """The contents before its first are passed over."""
    assert offer(restored(A, B, C), B, C, A) == [DUPLICATE, DUPLICATE, CORRECTION]


def test_a_content_twice_in_a_row_does_not_upset_the_walk() -> None:
    """The provider's A, A, B became A, B in the topic; its replay adds nothing to that."""
    assert offer(restored(A, B), A, A, B, B) == [DUPLICATE] * 4


def test_the_walk_ends_with_the_first_new_content() -> None:
    """After A, B and then C, a B is a change back, not the B that was known before."""
    assert offer(restored(A, B), A, B, C, B) == [DUPLICATE, DUPLICATE, CORRECTION, CORRECTION]


def test_each_connection_walks_from_the_beginning() -> None:
    """What was published on the connection before can come again on this one."""
    deduplicator = restored()
    offer(deduplicator, A, B)
    deduplicator.connected()
    assert offer(deduplicator, A, B, A) == [DUPLICATE, DUPLICATE, CORRECTION]


def test_what_was_published_on_this_connection_cannot_come_again_on_it() -> None:
    """Only what was known when it began is looked for."""
    deduplicator = restored()
    deduplicator.publish(KEY, 1, A, at=0.0)
    deduplicator.publish(KEY, 1, B, at=0.0)
    assert offer(deduplicator, A) == [CORRECTION]


def test_a_known_content_that_comes_live_is_a_change() -> None:
    """Nothing is looked for among what was known once the connection does not replay any more."""
    assert offer(restored(A, B), A, replaying=False) == [CORRECTION]


def test_judging_publishes_nothing() -> None:
    """Only `publish` makes a content known."""
    deduplicator = restored()
    assert [deduplicator.judge(KEY, 1, A, unfit, replaying=True) for _ in range(2)] == [NEW, NEW]
    assert len(deduplicator) == 0


def test_a_lower_version_that_was_published_is_ignored() -> None:
    """The later one stays the last word."""
    deduplicator = restored(B, version=2)
    deduplicator.publish(KEY, 1, A, at=0.0)
    assert offer(deduplicator, B, version=2, replaying=False) == [DUPLICATE]


@pytest.mark.parametrize("replaying", [True, False])
def test_what_was_published_with_an_earlier_schema_is_compared_in_it(replaying: bool) -> None:
    """It is a duplicate when it says the same there, and a correction when it does not, or does not fit."""
    asked = []

    def rewrite(schema: bytes) -> bytes:
        asked.append(schema)
        return OLD_A

    assert offer(restored(OLD_A), A, rewrite=rewrite, replaying=replaying) == [DUPLICATE]
    assert offer(restored(OLD_B), A, rewrite=rewrite, replaying=replaying) == [CORRECTION]
    assert set(asked) == {BEFORE}
    assert offer(restored(OLD_A), A, rewrite=unfit, replaying=replaying) == [CORRECTION]


def test_what_was_published_with_the_same_schema_is_compared_as_it_is() -> None:
    """Another content stays another, whatever a rewriting would make of it."""
    assert offer(restored(A), B, rewrite=lambda _: A, replaying=False) == [CORRECTION]


def test_a_replay_walks_across_a_change_of_schema() -> None:
    """Each content is compared in the schema in which it was published."""
    deduplicator = restored(OLD_A, OLD_B, A)
    assert offer(deduplicator, A, rewrite=lambda _: OLD_A) == [DUPLICATE]
    assert offer(deduplicator, B, rewrite=lambda _: OLD_B) == [DUPLICATE]
    assert offer(deduplicator, A, C) == [DUPLICATE, CORRECTION]


def test_a_dead_letter_is_known_by_its_bytes() -> None:
    """And by when it was received, the last time."""
    deduplicator = Deduplicator()
    assert deduplicator.dead_letter_time(A) is None
    deduplicator.record_dead_letter(A, at=0.0)
    assert deduplicator.dead_letter_time(A) == 0
    assert deduplicator.dead_letter_time(B) is None
    deduplicator.record_dead_letter(A, at=7.0)
    assert deduplicator.dead_letter_time(A) == 7


def test_what_was_known_before_the_connection_is_told_from_what_came_on_it() -> None:
    """Whether the replay has looked at it yet or not: only that shows that the provider remembers."""
    deduplicator = restored(A)
    assert deduplicator.knew(KEY)
    assert not deduplicator.knew(b"other")
    assert offer(deduplicator, A) == [DUPLICATE]
    assert deduplicator.knew(KEY)
    deduplicator.connected()
    assert deduplicator.knew(KEY)


def test_what_came_on_this_connection_was_not_known_before_it() -> None:
    """However often it comes; on the next connection it was."""
    deduplicator = restored()
    assert offer(deduplicator, A, A) == [NEW, DUPLICATE]
    assert not deduplicator.knew(KEY)
    deduplicator.connected()
    assert deduplicator.knew(KEY)


def test_a_correction_of_what_was_known_leaves_it_known_and_a_new_version_does_not() -> None:
    """Of the last version alone it is told: one that was not there before says nothing of the replay."""
    deduplicator = restored(A)
    assert offer(deduplicator, B) == [CORRECTION]
    assert deduplicator.knew(KEY)
    assert offer(deduplicator, A, version=2) == [NEW]
    assert not deduplicator.knew(KEY)


def test_several_contents_of_one_connection_are_not_known_before_the_next() -> None:
    """The first row of the connection, and its corrections, are as new as any other."""
    deduplicator = restored()
    assert offer(deduplicator, A, B) == [NEW, CORRECTION]
    assert not deduplicator.knew(KEY)
    deduplicator.connected()
    assert deduplicator.knew(KEY)

"""However often a bridge crashes and a replay begins anew, the topic says what the provider said.

The provider's sequence of a bet: versions that never fall, and contents that may come again. In the
topic must be that sequence without what repeats the content just before it at the same version. Any
connection may write with another schema than the one before.

One thing cannot be decided: if contents change under one version, a replay that begins in the middle may
begin at any of them. After A, B an A may be the first one again, or a change back. So a replay begins here
no later than at the last message that was published, and where a content comes twice among those of its
version, no later than at the first of them.
"""

from __future__ import annotations

from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.dedup.deduplicator import Deduplicator, DedupResult, Rewrite

KEY = b"bet"
SCHEMAS = [b"\0\0\0\1", b"\0\0\0\2"]
A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
"""Hashes of contents."""
Message = tuple[int, bytes]


@st.composite
def sequences(draw: st.DrawFn) -> list[Message]:
    """Return a bet as the provider sends it."""
    steps = draw(
        st.lists(st.tuples(st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from([A, B, C])), max_size=12)
    )
    version, found = 1, []
    for rise, content in steps:
        version += rise
        found.append((version, content))
    return found


def changes(sequence: list[Message]) -> list[Message]:
    """Return the sequence without immediate repetitions."""
    return [message for message, _ in groupby(sequence)]


def latest_start(sequence: list[Message], published: int) -> int:
    """Return the latest message at which a replay may begin."""
    if not published:
        return 0
    version = sequence[published - 1][0]
    run = [n for n in range(published) if sequence[n][0] == version]
    contents = [content for _, content in changes([sequence[n] for n in run])]
    if len(contents) == 1:
        return published
    return published - 1 if len(contents) == len(set(contents)) else run[0]


@settings(max_examples=400, deadline=None)
@given(data=st.data(), sequence=sequences())
def test_the_topic_is_the_providers_sequence(data: st.DataObject, sequence: list[Message]) -> None:
    topic: list[Message] = []  # what is committed
    written: list[Message] = []  # the same, each as its schema has it
    reached = 0
    deduplicator = Deduplicator()
    for _ in range(data.draw(st.integers(1, 4), "connections")):
        if data.draw(st.booleans(), "crash"):
            deduplicator = Deduplicator()
            for version, content in written:
                deduplicator.publish(KEY, version, content, at=0.0)
        deduplicator.connected()
        schema = data.draw(st.sampled_from(SCHEMAS), "schema")
        start = data.draw(st.integers(0, latest_start(sequence, reached)), "start")
        end = data.draw(st.integers(start, len(sequence)), "end")
        known = topic[-1][0] if topic else None
        published = feed(deduplicator, sequence[start:end], schema=schema)
        topic += published
        assert deduplicator.proves_replay(KEY) == (known is not None and topic[-1][0] == known)
        written += [(version, schema + content) for version, content in published]
        reached = max(reached, end)
        assert topic == changes(sequence[:reached])


@settings(deadline=None)
@given(sequence=sequences(), others=sequences())
def test_bets_do_not_affect_each_other(sequence: list[Message], others: list[Message]) -> None:
    deduplicator = Deduplicator()
    for version, content in others:
        deduplicator.publish(b"other", version, SCHEMAS[0] + content, at=0.0)
    deduplicator.connected()
    assert feed(deduplicator, sequence) == changes(sequence)


@settings(deadline=None)
@given(sequence=sequences(), caught_up=st.integers(0, 12))
def test_going_live_in_the_middle_changes_nothing(sequence: list[Message], caught_up: int) -> None:
    deduplicator = Deduplicator()
    deduplicator.connected()
    topic = feed(deduplicator, sequence[:caught_up])
    topic += feed(deduplicator, sequence[caught_up:], replaying=False)
    assert topic == changes(sequence)


def feed(
    deduplicator: Deduplicator, messages: list[Message], *, schema: bytes = SCHEMAS[0], replaying: bool = True
) -> list[Message]:
    """Judge the messages; publish and return those to be published."""
    published = []
    for version, content in messages:
        result = deduplicator.judge(KEY, version, schema + content, written_as(content), replaying=replaying)
        if result in (DedupResult.NEW, DedupResult.CORRECTION):
            deduplicator.publish(KEY, version, schema + content, at=0.0)
            published.append((version, content))
    return published


def written_as(content: bytes) -> Rewrite:
    """Return the content in a schema."""
    return lambda schema: schema + content

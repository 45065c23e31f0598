"""A bet that was changed back while nobody was connected: wherever a replay begins, it ends where it should.

The pipeline itself, with restarts, replays from anywhere and connections that break anywhere.
"""

from __future__ import annotations

from itertools import groupby

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.dedup.deduplicator import Deduplicator, fingerprint
from bridge.service.held import OVER
from tests.unit.service.test_pipeline import BETS, NOW, Line, bet

Contents = list[float]
"""Of one version of a bet, as the provider sends them."""
A, B, C = 1.0, 2.0, 3.0


class Feed:
    """A bet's contents as the provider sends them, and what a bridge makes of them."""

    def __init__(self, sequence: Contents) -> None:
        self.sequence = sequence
        self.topic: Contents = []
        self.reached = 0
        """How many of the contents lie before the position."""
        self._number = 0

    def connect(self, start: int, end: int, *, to_its_end: bool) -> None:
        """Replay contents after a restart, and new bets after them unless the connection breaks before."""
        deduplicator = Deduplicator()
        for content in self.topic:
            value = BETS.encode(BETS.decode(_value(content)))
            deduplicator.publish(b"b", 1, fingerprint(value), at=NOW)
        line = Line(deduplicator=deduplicator)
        before = line.term.position.revision
        for content in self.sequence[start:end]:
            line.handle(bet(payout=content))
        if to_its_end:
            for _ in range(OVER + 1):
                self._number += 1
                line.handle(bet(bet_id=f"new-{self._number}"))
        held = sum(map(len, line.pipeline.replay.held.bets.values()))
        assert line.term.position.held == bool(held)
        assert not held or line.term.position.revision == before
        records = [BETS.decode(record.value or b"") for record in line.records]
        self.topic += [record["payout"] for record in records if record["betId"] == "b"]
        counted = end - start + (OVER + 1 if to_its_end else 0) - held
        assert line.counters.received == counted
        assert line.counters.balanced
        if held:
            assert not to_its_end
        else:
            self.reached = max(self.reached, end)


def _value(content: float) -> bytes:
    line = Line()
    line.handle(bet(payout=content))
    [record] = line.records
    return record.value or b""


def changes(sequence: Contents) -> Contents:
    """Return the sequence without immediate repetitions."""
    return [content for content, _ in groupby(sequence)]


def test_a_bet_that_was_changed_back_is_published() -> None:
    feed = Feed([A, B, A])
    feed.connect(0, 2, to_its_end=True)
    feed.connect(2, 3, to_its_end=True)
    assert feed.topic == [A, B, A]


def test_a_bet_that_was_changed_back_is_held_until_the_connection_breaks() -> None:
    feed = Feed([A, B, A])
    feed.connect(0, 2, to_its_end=True)
    feed.connect(2, 3, to_its_end=False)
    assert (feed.topic, feed.reached) == ([A, B], 2)
    feed.connect(0, 3, to_its_end=True)
    assert feed.topic == [A, B, A]


@settings(max_examples=150, deadline=None)
@given(
    sequence=st.lists(st.sampled_from([A, B, C]), max_size=7),
    draw=st.data(),
)
def test_no_content_is_doubled_and_the_last_one_is_that_of_the_provider(
    sequence: Contents, draw: st.DataObject
) -> None:
    feed = Feed(sequence)
    for _ in range(draw.draw(st.integers(1, 4), "connections")):
        start = draw.draw(st.integers(0, feed.reached), "start")
        end = draw.draw(st.integers(start, len(sequence)), "end")
        end = max(end, feed.reached)
        feed.connect(start, end, to_its_end=draw.draw(st.booleans(), "to its end"))
        assert feed.topic == changes(feed.topic)
        assert feed.topic[-1:] == sequence[: feed.reached][-1:]
        assert is_within(feed.topic, changes(sequence))


@settings(max_examples=150, deadline=None)
@given(sequence=st.lists(st.sampled_from([A, B, C]), max_size=7), reached=st.integers(0, 7))
def test_nothing_is_left_out_of_what_ends_otherwise(sequence: Contents, reached: int) -> None:
    feed = Feed(sequence)
    reached = min(reached, len(sequence))
    feed.connect(0, reached, to_its_end=True)
    feed.connect(reached, len(sequence), to_its_end=True)
    if reached and sequence[reached - 1] in sequence[reached:]:
        assert feed.topic[-1] == sequence[-1]
    else:
        assert feed.topic == changes(sequence)


def is_within(found: Contents, expected: Contents) -> bool:
    """Return whether the contents are among the expected ones, in order."""
    left = iter(expected)
    return all(any(content == one for one in left) for content in found)
